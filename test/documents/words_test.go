// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	redisPage           = "docs/rediscluster.md"
	redisOperationsPage = "docs/rediscluster-operations.md"
	redisStatusPage     = "docs/rediscluster-status.md"
	redisRefusalsPage   = "docs/rediscluster-refusals.md"
	words               = "docs/conditions.md"
)

// wordsOf are what the groups of a pattern match in the Go files of folders, tests left out.
func wordsOf(t *testing.T, pattern string, folders ...string) []string {
	t.Helper()
	var found []string
	for _, folder := range folders {
		for _, file := range goFiles(t, folder) {
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
				found = append(found, match[1:]...)
			}
		}
	}
	return found
}

// column are the code-quoted words of one column of the tables with a heading.
func column(t *testing.T, page, heading string, n int) []string {
	t.Helper()
	var found []string
	for _, row := range rowsOf(t, page, heading) {
		if n < len(row) {
			found = append(found, quoted(row[n])...)
		}
	}
	return found
}

// sentence are the code-quoted words of the paragraph of a page that begins so.
func sentence(t *testing.T, page, beginning string) []string {
	t.Helper()
	for _, l := range linesOf(t, page) {
		if strings.HasPrefix(l.text, beginning) {
			return quoted(l.text)
		}
	}
	t.Fatalf("%s has no paragraph that begins with %q", page, beginning)
	return nil
}

// literal is a word in quotes, as reasons and Events are written in the code.
const literal = `"([A-Z][a-z]+[A-Za-z]*)"`

// named is the value of constants whose names begin so.
func named(prefix string) string {
	return `(?m)^\s*(?:const )?` + prefix + `[A-Za-z]* *(?:[A-Z][A-Za-z]* )?= "([A-Za-z]+)"`
}

// vocabulary are words of the code, and those of a page about them.
type vocabulary struct {
	name       string
	code, page []string
	// besides are words of one side alone, with the reason why.
	besides map[string]string
}

func redisWords(t *testing.T) []vocabulary {
	t.Helper()
	const api, table = "api/rediscluster/v1alpha1", "| type | `True` when | reasons |"
	causes := append(wordsOf(t, `(?:[cC]ause: *|refuse\()`+literal, "internal/rediscluster"), "CannotExpand")
	situations := []string{"Absent", "Forming", "Healing", "ScalingOut", "ScalingIn", "RollingOut",
		"Hibernating", "Hibernated", "Waking", "Paused", "Deleting", "Failed", "TimedOut"}
	return []vocabulary{
		{"conditions of a RedisCluster", wordsOf(t, named("Condition"), api), column(t, redisStatusPage, table, 0), nil},
		{"the same, in the list", wordsOf(t, named("Condition"), api), listed(t, "## RedisCluster"), nil},
		{"reasons of a RedisCluster",
			slices.Concat(wordsOf(t, literal, "internal/rediscluster/status"), wordsOf(t, named("ReasonArchive"), api),
				wordsOf(t, named("ReasonExternal"), api), wordsOf(t, named("ReasonAutoscale"), api), wordsOf(t, named("ReasonFence"), api),
				wordsOf(t, named("ReasonUpgrade"), api), situations),
			append(column(t, redisStatusPage, table, 2), sentence(t, redisStatusPage, "`nodes[].status` is")...),
			map[string]string{"True": "a status", "False": "a status", "Unknown": "a status", "Stalled": "a condition", "spreadMasters": "a field"}},
		{"phases", wordsOf(t, named("Phase"), api), column(t, redisStatusPage, "| phase | when |", 0), nil},
		{"reasons of Stalled", causes, column(t, redisStatusPage, "| reason | what to do |", 0), nil},
		{"what stalls hold back", causes, column(t, redisStatusPage, "| reason | holds back |", 0), nil},
		{"steps", append(wordsOf(t, `Name\(\) string *{ return "([A-Za-z]+)" }`, "internal/rediscluster/plan"), "Rollout"),
			column(t, redisStatusPage, "| step | what it does |", 0),
			map[string]string{"Hold": "a paused cluster shows the step that it holds back"}},
		{"rules of safety", wordsOf(t, `Predicate = "([a-z_]+)"`, "internal/rediscluster/plan"), column(t, redisStatusPage, "| rule | says |", 0),
			map[string]string{"node_gone": "lets a step be, and holds none back", "majority_lost": "likewise"}},
	}
}

func otherWords(t *testing.T) []vocabulary {
	t.Helper()
	const release, reasonsTable = "| type | `True` when | reasons when `True` | reasons when `False` |", "| reason | meaning | what to do |"
	return []vocabulary{
		{"conditions of chart kinds", wordsOf(t, named("Type"), "internal/release"), column(t, words, release, 0), nil},
		{"reasons of chart kinds",
			append(wordsOf(t, named("Reason"), "internal/release", "internal/apply", "internal/pause"),
				"Seen", "Reconcilable", "NotStalled", "NotFailed"),
			slices.Concat(column(t, words, release, 2), column(t, words, release, 3), column(t, words, reasonsTable, 0),
				sentence(t, words, "What passes by itself is tried again")),
			map[string]string{"Ready": "a condition", "Irreconcilable": "a condition", "False": "a status"}},
		{"Events of chart kinds", wordsOf(t, `(?:normal\(|EventTypeWarning, )`+literal, "internal/release"),
			sentence(t, words, "Events: `Installed`"), nil},
		{"conditions of a FooBar", wordsOf(t, named("Condition"), "api/foobar"),
			column(t, "docs/foobar.md", "| condition | `True` when | other reasons |", 0), nil},
		{"conditions of an Application", wordsOf(t, named("Condition"), "api/application"),
			column(t, "docs/application.md", "| condition | `True` when |", 0), nil},
		{"the same, in the list", wordsOf(t, named("Condition"), "api/application"), listed(t, "## Application"), nil},
		{"reasons of an Application", wordsOf(t, named("Reason"), "api/application", "internal/pause"),
			column(t, "docs/application.md", reasonsTable, 0), nil},
		{"reasons of Upgradeable",
			append(wordsOf(t, named("Reason"), "internal/upgradeable"), wordsOf(t, `Work = `+literal, "internal/upgradeable")...),
			reasons(t, "docs/olm.md"), nil},
	}
}

// The tables of conditions, reasons, steps, phases, rules and Events have the words of the code: all of them, and no other.
func TestWordsAreThoseOfTheCode(t *testing.T) {
	for _, row := range append(redisWords(t), otherWords(t)...) {
		t.Run(row.name, func(t *testing.T) {
			if len(row.code) == 0 {
				t.Fatal("no word was found in the code")
			}
			for word, why := range row.besides {
				if slices.Contains(row.code, word) == slices.Contains(row.page, word) {
					t.Errorf("%s (%s) is no exception", word, why)
				}
			}
			keep := func(list []string) []string {
				list = slices.DeleteFunc(slices.Clone(list), func(word string) bool { _, is := row.besides[word]; return is })
				slices.Sort(list)
				return slices.Compact(list)
			}
			if diff := cmp.Diff(keep(row.code), keep(row.page)); diff != "" {
				t.Errorf("the words of the code are not those of the page (-code +page):\n%s", diff)
			}
		})
	}
}

// listed are the conditions that conditions.md lists under a heading.
func listed(t *testing.T, heading string) []string {
	t.Helper()
	_, text, found := strings.Cut(read(t, words), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %s", words, heading)
	}
	list, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return quoted(list)
}

// reasons are those that a page lists in a sentence that begins with "Reasons:".
func reasons(t *testing.T, page string) []string {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), "Reasons: ")
	if !found {
		t.Fatalf("%s lists no reasons", page)
	}
	list, _, _ := strings.Cut(text, ".")
	return quoted(list)
}
