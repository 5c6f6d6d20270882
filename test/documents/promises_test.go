// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	promises    = "docs/promises.md"
	description = "config/manifests/bases/middleware-operator.clusterserviceversion.yaml"
)

// promisesByPage are the promises of the page that collects them, as they stand in their pages.
func promisesByPage(t *testing.T) map[string][]string {
	t.Helper()
	byPage, page := map[string][]string{}, ""
	for _, l := range linesOf(t, promises) {
		if match := regexp.MustCompile(`^## \[.*\]\((.*)\)$`).FindStringSubmatch(l.text); match != nil {
			page = filepath.Join("docs", match[1])
			continue
		}
		cells := strings.Split(strings.Trim(l.text, "| "), " | ")
		if len(cells) == 2 && cells[1] != "shown by" {
			byPage[page] = append(byPage[page], cells[0])
		}
	}
	return byPage
}

// flat is text without line breaks and indentation.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// Each promise is in the words of its page, and nothing by which people decide is left out: each page, each point of README's "Why
// this one", and each feature that OLM shows has one. TestTheProofsExist finds the tests.
func TestPromisesAreThoseOfThePages(t *testing.T) {
	byPage, count := promisesByPage(t), 0
	for page, list := range byPage {
		text := flat(read(t, page))
		for _, promise := range list {
			count++
			if !strings.Contains(text, promise) {
				t.Errorf("%s does not say %q any more; %s does", page, promise, promises)
			}
		}
	}
	t.Logf("%d promises", count)
	for _, page := range pagesOf(t) {
		if filepath.Dir(page) == "docs" && byPage[page] == nil && page != promises && page != "docs/README.md" {
			t.Errorf("%s has no promise of %s", promises, page)
		}
	}
	points := 0
	for _, l := range linesOf(t, "README.md") {
		if l.section == "Why this one" && strings.HasPrefix(l.text, "- ") {
			points++
			shown(t, byPage["README.md"], "README.md", l.text)
		}
	}
	_, features, _ := strings.Cut(read(t, description), "    ## Features\n")
	features, _, _ = strings.Cut(features, "\n    ### ")
	for feature := range strings.SplitSeq(features, "\n    * ") {
		if feature = flat(feature); feature != "" {
			points++
			shown(t, byPage[description], description, feature)
		}
	}
	if points < 20 {
		t.Errorf("only %d points were found", points)
	}
}

// shown checks that a point holds one of the promises of its page.
func shown(t *testing.T, promises []string, page, point string) {
	t.Helper()
	for _, promise := range promises {
		if strings.Contains(point, promise) {
			return
		}
	}
	t.Errorf("%s: no test shows anything of %q", page, point)
}
