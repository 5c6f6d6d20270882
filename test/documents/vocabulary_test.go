// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const glossary = "docs/glossary.md"

// refusedWords are the patterns of the glossary that are not to be written, and what is instead.
func refusedWords(t *testing.T) map[*regexp.Regexp]string {
	t.Helper()
	refused := map[*regexp.Regexp]string{}
	for _, row := range rowsOf(t, glossary, "| not | but |") {
		for _, pattern := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			refused[regexp.MustCompile(strings.ReplaceAll(pattern[1], `\|`, "|"))] = row[1]
		}
	}
	if len(refused) < 20 {
		t.Fatalf("the glossary refuses %d patterns", len(refused))
	}
	return refused
}

// written are the files that people write and read: pages, code, charts and manifests; not what engines say or other projects
// wrote.
func written(t *testing.T) []string {
	t.Helper()
	files := pagesOf(t)
	for _, folder := range []string{"api", "cmd", "config", "deploy", "examples", "hack", "helm-charts", "internal", "test"} {
		files = append(files, filesOf(t, folder)...)
	}
	files = append(files, "Makefile", "docs/reference/api.md")
	return slices.DeleteFunc(files, func(file string) bool {
		return file == glossary || strings.Contains(file, "/testdata/") || strings.HasPrefix(file, "hack/tools/") ||
			!regexp.MustCompile(`(\.(go|md|yaml|tpl|sh)|Makefile)$`).MatchString(file)
	})
}

// TestOneLanguage: what Redis and Kubernetes have a word for is called by it.
func TestOneLanguage(t *testing.T) {
	refused := refusedWords(t)
	for _, file := range written(t) {
		for i, text := range strings.Split(read(t, file), "\n") {
			for pattern, instead := range refused {
				if word := pattern.FindString(text); word != "" {
					t.Errorf("%s:%d: %q: write %s", file, i+1, word, instead)
				}
			}
		}
	}
}
