// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// architecture.md names the rules of both planners, each once, in the order of the code.
func TestRulesAreInTheirOrder(t *testing.T) {
	rule := regexp.MustCompile("\\bplan[A-Z][A-Za-z]+")
	for _, planner := range []struct{ section, file, begin, end string }{
		{"Chart kinds", "internal/release/plan.go", "range []func(Desired, Snapshot, time.Time) Step{", "\n\t} {"},
		{"RedisCluster", "internal/rediscluster/plan/plan.go", "\nvar rules = []func(input) Step{", "\n}"},
	} {
		_, list, found := strings.Cut(read(t, planner.file), planner.begin)
		list, _, ended := strings.Cut(list, planner.end)
		if !found || !ended {
			t.Fatalf("%s has no list of rules", planner.file)
		}
		var said []string
		for _, l := range linesOf(t, "docs/architecture.md") {
			if l.section == planner.section && regexp.MustCompile(`^\d+\. `).MatchString(l.text) {
				said = append(said, rule.FindAllString(l.text, -1)...)
			}
		}
		if diff := cmp.Diff(rule.FindAllString(list, -1), said); diff != "" {
			t.Errorf("the rules of %s are not those of docs/architecture.md (-code +page):\n%s", planner.file, diff)
		}
	}
}
