// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// limit is a time, a size or another number that a page states, and where it is decided.
type limit struct{ document, sentence, file, code string }

// Each time that a document states is what the code says. Who changes one changes the other, and the row.
func TestDocumentedTimes(t *testing.T) {
	for _, row := range slices.Concat(times, sizes, said, versions, figures) {
		for file, part := range map[string]string{row.document: row.sentence, row.file: row.code} {
			if !strings.Contains(read(t, file), part) {
				t.Errorf("%s does not say %q; %s is to say %q, because %s says %q", file, part, row.document, row.sentence, row.file, row.code)
			}
		}
	}
}

// measured are sections whose figures are those of a run, or of other software; the last column is the heading of one.
var measured = map[string][]string{
	"README.md": {"Why this one"}, // figures has them
	"docs/reliability.md": {"Situations", "Failover: 200 masters killed", "Faults of networks, disks and processes", "What clients should do",
		"Rollouts"},
	"docs/external-access.md": {"What was measured"},
	"docs/security.md":        {"What hostile neighbours cost"},
	"docs/performance.md":     nil, // all of it
	"docs/promises.md":        nil, // repeats those of other pages
}

// notOurs are sentences with a time that nothing of this project decides.
var notOurs = []string{
	"takes the canary's Ingress for a second rule of the same host", // no time
	"as a rule of thumb",                                        // no time
	"takes two minutes of its clock",                            // the simulation
	"which takes 45 min",                                        // a run
	"0.43 to 0.64 s; 1.24 s in one of 21 runs",                  // runs
	"the proof on OLM (a quarter of an hour, and as long again", // a run
	"rendering everything once a minute",                        // helm-operator
	"(a second or two) before",                                  // a slice and what comes before it
	"`2Gi`",                                                     // a value that is refused
	"Valkey 9 introduces itself again once a minute as long as it runs",      // the engine
	"DNS servers of clusters answer for up to 30 seconds what was so before", // CoreDNS
	"can make a master which has switched over answer `CLUSTERDOWN` for up to a second",
}

// Each time and size that a page states outside of its examples is in a row of TestDocumentedTimes, or was measured.
func TestEveryStatedTimeIsCheckedAgainstTheCode(t *testing.T) {
	amount := `(?:\d[\d,.]*|half an?|an?|one|two|three|five|ten|fifteen|thirty)`
	stated := regexp.MustCompile(`\b` + amount + ` (?:ms|s|seconds?|min|minutes?|hours?|days?|KiB|MiB)\b|\b\d+(?:Mi|Gi)\b`)
	rows, found := slices.Concat(times, sizes, figures), 0
	for _, page := range pagesOf(t) {
		if sections, some := measured[page]; strings.HasPrefix(page, "docs/adr/") || some && sections == nil ||
			strings.HasPrefix(page, "test/") || strings.HasPrefix(page, "hack/") || strings.HasPrefix(page, "docs/reference/") ||
			strings.HasPrefix(page, "deploy/") {
			continue // decisions are dated, and references are made from the code
		}
		for _, l := range linesOf(t, page) {
			if l.fenced || slices.Contains(measured[page], l.section) {
				continue
			}
			text := l.text
			for _, row := range rows {
				if row.document == page {
					text = strings.ReplaceAll(text, row.sentence, "")
				}
			}
			for _, sentence := range notOurs {
				text = strings.ReplaceAll(text, sentence, "")
			}
			for _, match := range stated.FindAllStringIndex(text, -1) {
				t.Errorf("%s:%d: nothing checks this: …%s…", page, l.number, text[max(0, match[0]-60):min(len(text), match[1]+40)])
			}
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d lines were looked at", found)
	}
}
