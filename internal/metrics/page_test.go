// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md anew")

const introduction = "# Metrics\n\nMade from the code: `go test ./internal/metrics -run TestMetricsPage -update`. Where they are served, and " +
	"who may read them: [installation](../installation.md#metrics). Series of an object go with the object. Those of controller-runtime " +
	"(queues, reconciliations, webhooks, API client), of Go and of operator-lib (`resource_created_at_seconds`: when each object of the " +
	"five kinds, and of chart kinds of yours, was created; labels `namespace`, `name`, `group`, `version`, `kind`) come on top.\n\n" +
	"What is told of an instance is what it said when the operator last looked at its cluster, at least every sixth `--redis-poll-interval` " +
	"unless that fails: some thirty series each. Six thousand instances are 24 MB a scrape, 2 MB compressed, for which " +
	"the operator takes 90 MB of memory. `--instance-metrics=false` leaves them out.\n"

// description is how the library writes a metric's name, help and labels down.
var description = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", (?:unit: "[^"]*", )?constLabels: {}, variableLabels: {([^}]*)}`)

func page(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString(introduction)
	text.WriteString("\n| metric | labels | meaning |\n|---|---|---|\n")
	for _, collector := range collectors {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			collector.Describe(descs)
		}()
		for desc := range descs {
			is := description.FindStringSubmatch(desc.String())
			if is == nil {
				t.Fatalf("%s", desc)
			}
			labels := "`" + strings.ReplaceAll(is[3], ",", "`, `") + "`"
			if is[3] == "" {
				labels = ""
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", is[1], labels, is[2])
		}
	}
	return text.String()
}

func TestMetricsPage(t *testing.T) {
	const path = "../../docs/reference/metrics.md"
	want := page(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("go test ./internal/metrics -run TestMetricsPage -update (-want +got):\n%s", diff)
	}
}
