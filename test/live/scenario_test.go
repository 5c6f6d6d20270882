// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A run is one letter: p passed, f failed, o passed and left something open, b failed and left something open; after a | nothing
// may be repeated.
func TestConclude(t *testing.T) {
	for outcomes, want := range map[string]struct {
		runs int
		open bool
	}{
		"p": {1, false}, "f": {1, false}, "b": {1, false}, "op": {2, false}, "of": {2, false}, "ob": {2, false},
		"oop": {3, false}, "oof": {3, false}, "ooo": {3, true}, "ooob": {3, true},
		"o|p": {1, true}, "oo|p": {2, true}, "p|": {1, false},
	} {
		count := 0
		open := conclude(func() bool { return outcomes[count] != '|' }, func(number int) (bool, []string) {
			if count++; number != count {
				t.Errorf("%s: run %d is called %d", outcomes, count, number)
			}
			outcome := outcomes[count-1]
			if outcome == 'o' || outcome == 'b' {
				return outcome == 'o', []string{"open"}
			}
			return outcome == 'p', nil
		})
		if count != want.runs || (len(open) > 0) != want.open {
			t.Errorf("%s: %d runs and left open: %v, want %d and %v", outcomes, count, open, want.runs, want.open)
		}
	}
}

// scenarios are run in a process of their own, in place of the test.
var scenarios = map[string]func(*testing.T, *Run){
	"passes": func(*testing.T, *Run) {},
	"open":   func(_ *testing.T, run *Run) { run.open = []string{"it stalled"} },
	"fails":  func(t *testing.T, run *Run) { run.open = []string{"it stalled"}; t.Error("lost a write") },
}

// What stays open is never counted as passed: it is in the list, and where nobody keeps one, it has failed.
func TestScenario(t *testing.T) {
	if body := scenarios[os.Getenv("SCENARIO")]; body != nil {
		Scenario(t, body)
		return
	}
	for _, tt := range []struct {
		name, scenario string
		listed         bool
		passes         bool
		says           string
		list           string
	}{
		{"what passes", "passes", true, true, "--- PASS: TestScenario/run_1", ""},
		{"what stays open", "open", true, true, "--- SKIP: TestScenario/run_3", "TestScenario: it stalled\n"},
		{"what stays open and nobody lists", "open", false, false, "inconclusive: it stalled", ""},
		{"what fails, however open", "fails", true, false, "--- FAIL: TestScenario/run_1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := filepath.Join(t.TempDir(), "open")
			path := ""
			if tt.listed {
				path = list
			}
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestScenario$", "-test.v")
			command.Env = append(os.Environ(), "SCENARIO="+tt.scenario, listOfOpen+"="+path)
			out, err := command.CombinedOutput()
			if (err == nil) != tt.passes || !strings.Contains(string(out), tt.says) {
				t.Errorf("%v, want it to say %q:\n%s", err, tt.says, out)
			}
			got, err := os.ReadFile(list)
			if string(got) != tt.list || err != nil && !os.IsNotExist(err) {
				t.Errorf("the list is %q (%v), want %q", got, err, tt.list)
			}
		})
	}
}
