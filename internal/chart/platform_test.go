// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"path/filepath"
	"strings"
	"testing"
)

// A chart that asks who gives user IDs is told, and its digest tells the two apart; one that does not ask stays what it is. Whether a
// chart was told does not reach the chart that it was made from.
func TestWithPlatformUserIDs(t *testing.T) {
	values := map[string]map[string]any{
		"app": {"image": "web:1"}, "crontab": {"cronSpec": "@daily", "image": "report:1"}, "foobar": {"command": "true"},
	}
	for name, spec := range values {
		t.Run(name, func(t *testing.T) {
			c, err := LoadDir(filepath.Join("..", "..", "helm-charts", name))
			if err != nil {
				t.Fatal(err)
			}
			release := Release{Name: "x", Namespace: "shop", Revision: 1, IsInstall: true}
			for _, test := range []struct {
				chart *Chart
				ids   int
			}{{c.WithPlatformUserIDs(), 0}, {c, 3}} {
				rendered, err := test.chart.Render(spec, release, Capabilities{})
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Count(rendered.Manifest, "65532"); got != test.ids || !strings.Contains(rendered.Manifest, "runAsNonRoot: true") {
					t.Errorf("%d user and group IDs, not %d, in\n%s", got, test.ids, rendered.Manifest)
				}
			}
			told, err := c.WithPlatformUserIDs().DigestFor(spec, release, Capabilities{})
			if err != nil {
				t.Fatal(err)
			}
			if untold, err := c.DigestFor(spec, release, Capabilities{}); err != nil || told == untold {
				t.Errorf("the digests are %s and %s (%v)", told, untold, err)
			}
		})
	}
	deaf, err := LoadDir(filepath.Join("..", "..", "helm-charts", "app"))
	if err != nil {
		t.Fatal(err)
	}
	deaf.helm.Templates = nil
	if deaf.WithPlatformUserIDs() != deaf {
		t.Error("a chart that does not ask was changed")
	}
}
