// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notID  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// Each link of a page to the checkout leads to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	anchors, found := map[string]map[string]bool{}, 0
	for _, page := range append(pagesOf(t), "CHANGELOG.md") {
		for _, l := range linesOf(t, page) {
			if l.fenced {
				continue
			}
			for _, match := range link.FindAllStringSubmatch(l.text, -1) {
				if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
					continue
				}
				found++
				path, anchor, _ := strings.Cut(match[1], "#")
				target := page
				if path != "" {
					target = filepath.Join(filepath.Dir(page), path)
				}
				if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
					t.Errorf("%s:%d: %s leads nowhere", page, l.number, match[1])
				} else if anchor != "" {
					if anchors[target] == nil {
						anchors[target] = anchorsOf(t, target)
					}
					if !anchors[target][anchor] {
						t.Errorf("%s:%d: %s has no heading #%s", page, l.number, target, anchor)
					}
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d links were found", found)
	}
}

// anchorsOf are the names by which the headings of a page are linked to, as GitHub makes them.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	anchors := map[string]bool{}
	for _, l := range linesOf(t, page) {
		if l.fenced || !strings.HasPrefix(l.text, "#") {
			continue
		}
		heading := linked.ReplaceAllString(l.section, "$1")
		anchors[strings.ReplaceAll(notID.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")] = true
	}
	return anchors
}
