// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each target that a page or a block of commands tells to make is in the Makefile.
func TestMakeTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9 -]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		for target := range strings.FieldsSeq(match[1]) {
			targets[target] = true
		}
	}
	command := regexp.MustCompile("(?:^|[`&;] *|[A-Z]=\\S+ )make ((?:[a-z0-9-]+ ?)+)")
	found := 0
	for _, page := range pagesOf(t) {
		for _, l := range linesOf(t, page) {
			text := l.text
			if l.fenced {
				text, _, _ = strings.Cut(text, "#")
			}
			for _, match := range command.FindAllStringSubmatch(text, -1) {
				for target := range strings.FieldsSeq(match[1]) {
					found++
					if !targets[target] {
						t.Errorf("%s:%d: there is no target %q in the Makefile", page, l.number, target)
					}
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d targets are named; do pages still write `make TARGET`?", found)
	}
}

// made are paths that commands of the pages make.
var made = []string{"config/rbac/go_role.yaml", "config/crd/released/VERSION"}

// Each path of the checkout that a page names, in code quotes or in a command, is there.
func TestPathsExist(t *testing.T) {
	path := regexp.MustCompile("(?:^|[\\s`=(])((?:api|bundle|catalog|cmd|config|deploy|docs|examples|hack|helm-charts|internal|pkg|test|\\.ci)/" +
		"[A-Za-z0-9_./<>-]*[A-Za-z0-9_>])")
	found := 0
	for _, page := range pagesOf(t) {
		if !strings.HasPrefix(page, "docs/") && strings.Contains(page, "/") { // the pages of a part name its own files
			continue
		}
		for _, l := range linesOf(t, page) {
			for _, match := range path.FindAllStringSubmatch(l.text, -1) {
				if l.fenced && l.language != "sh" || slices.Contains(made, match[1]) {
					continue
				}
				found++
				pattern := regexp.MustCompile(`<[a-z]+>`).ReplaceAllString(match[1], "*")
				there, err := filepath.Glob(filepath.Join(repository, pattern))
				if err != nil || len(there) == 0 {
					t.Errorf("%s:%d: %s is not there (%v)", page, l.number, match[1], err)
				}
			}
		}
	}
	if found < 150 {
		t.Errorf("only %d paths are named", found)
	}
}

// No page names a metric that the generated table does not have.
func TestMetricsAreThoseOfTheOperator(t *testing.T) {
	var listed []string
	for _, row := range rowsOf(t, "docs/reference/metrics.md", "| metric | labels | meaning |") {
		listed = append(listed, quoted(row[0])[0])
	}
	for _, page := range pagesOf(t) {
		for _, name := range regexp.MustCompile(`middleware_operator_[a-z_]+[a-z]`).FindAllString(read(t, page), -1) {
			if !slices.ContainsFunc(listed, func(metric string) bool { return strings.HasPrefix(metric, name) }) {
				t.Errorf("%s names %s, and the operator has no such metric", page, name)
			}
		}
	}
}

// Each object of the operator that a page names is in config, or made by the code or by a command of that page.
func TestNamedObjectsExist(t *testing.T) {
	var made strings.Builder
	for _, file := range slices.Concat(goFiles(t, "internal"), goFiles(t, "cmd"), filesOf(t, "config")) {
		made.WriteString(read(t, file))
	}
	name := regexp.MustCompile(`middleware-operator-[a-z]+(?:-[a-z]+)*`)
	for _, page := range pagesOf(t) {
		for _, found := range name.FindAllString(read(t, page), -1) {
			if !strings.Contains(made.String(), found) && found != "middleware-operator-catalog" { // that one is OLM's page's own
				t.Errorf("%s names %s, which is in no manifest", page, found)
			}
		}
	}
}

// Each verb of the local cluster's command, each tool, and each flag of a benchmark that a page names is there.
func TestVerbsAndToolsExist(t *testing.T) {
	var cluster, bench strings.Builder
	for _, file := range goFiles(t, "test/cluster/internal/cli") {
		cluster.WriteString(read(t, file))
	}
	for _, file := range slices.Concat(goFiles(t, "test/bench"), goFiles(t, "test/benchhelm"), goFiles(t, "test/benchscale")) {
		bench.WriteString(read(t, file))
	}
	found := 0
	for _, page := range pagesOf(t) {
		text := read(t, page)
		check := func(pattern string, exists func(word string) bool) {
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
				for _, word := range match[1:] {
					found++
					if word != "" && !exists(word) {
						t.Errorf("%s: %s: there is no %s", page, match[0], word)
					}
				}
			}
		}
		verb := func(word string) bool {
			return regexp.MustCompile(`Use:\s+"` + word + `[ "]`).MatchString(cluster.String())
		}
		check(`hack/cluster\.sh ([a-z][a-z-]+)`, verb)
		check(`hack/cluster\.sh (?:node|olm) ([a-z]+)`, verb)
		check(`hack/cluster\.sh [a-z ]*--([a-z-]+)`, func(word string) bool { return strings.Contains(cluster.String(), `"`+word+`"`) })
		check(`hack/tool\.sh ([a-z][a-z-]+)`, func(word string) bool {
			there, err := filepath.Glob(filepath.Join(repository, "hack/tools", word))
			return err == nil && len(there) == 1 || word == "test"
		})
		for _, arguments := range regexp.MustCompile(`BENCH="([^"]+)"`).FindAllStringSubmatch(text, -1) {
			for _, flag := range regexp.MustCompile(`--([a-z]+)`).FindAllStringSubmatch(arguments[1], -1) {
				found++
				if !strings.Contains(bench.String(), `"`+flag[1]+`"`) {
					t.Errorf("%s: %s: no benchmark has the flag %s", page, arguments[0], flag[0])
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d words were found", found)
	}
}

// The clients that clients.md lists are generated, one for each kind and no other.
func TestClientsAreThoseOfThePage(t *testing.T) {
	var generated strings.Builder
	for _, file := range goFiles(t, "pkg/generated") {
		generated.WriteString(read(t, file))
	}
	rows, all := rowsOf(t, "docs/clients.md", "| kind | clientset | informers |"), kinds(t)
	if len(rows) != len(all) {
		t.Errorf("docs/clients.md lists %d kinds of %d", len(rows), len(all))
	}
	for _, row := range rows {
		for _, match := range regexp.MustCompile(`([A-Z][A-Za-z0-9]+)\(`).FindAllStringSubmatch(row[1]+row[2], -1) {
			if !regexp.MustCompile(`(?m)^\s*(?:func \([^)]*\) )?` + match[1] + `\(`).MatchString(generated.String()) {
				t.Errorf("docs/clients.md: %s: pkg/generated has no method %s", row[0], match[1])
			}
		}
	}
}
