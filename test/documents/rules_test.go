// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// architecture.md names the rules of both planners, each once, in the order of the code.
func TestRulesAreInTheirOrder(t *testing.T) {
	rule := regexp.MustCompile(`\bplan[A-Z][A-Za-z]+`)
	for _, planner := range []struct{ section, file, begin, end string }{
		{"Chart kinds", "internal/release/plan.go", "range []func(Desired, Snapshot, time.Time) Step{", "\n\t} {"},
		{"RedisCluster", "internal/rediscluster/plan/rules.go", "\nvar rules = []rule{", "\n}"},
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
		if diff := gocmp.Diff(rule.FindAllString(list, -1), said); diff != "" {
			t.Errorf("the rules of %s are not those of docs/architecture.md (-code +page):\n%s", planner.file, diff)
		}
	}
}

// What a stall holds back is what the page says. Causes that the planner does not know are found when its step is carried out; they
// hold back what an invalid spec does.
func TestStallsReachAsFarAsThePageSays(t *testing.T) {
	for _, row := range rowsOf(t, redisStatusPage, "| reason | holds back |") {
		said := plan.ItsPart
		switch {
		case strings.HasPrefix(row[1], "everything"):
			said = plan.Everything
		case strings.HasPrefix(row[1], "all that the spec asks for"):
			said = plan.WhatTheSpecSays
		}
		for _, cause := range quoted(row[0]) {
			if reach := cmp.Or(plan.Reaches[cause], plan.WhatTheSpecSays); reach != said {
				t.Errorf("%s holds back %s; %s says %s: %s", cause, reach, redisStatusPage, said, row[1])
			}
		}
	}
}
