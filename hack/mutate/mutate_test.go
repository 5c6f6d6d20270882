// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is mutated in a function, and that all of it together is still Go.
func TestMutantsOfAFunction(t *testing.T) {
	const text = `package p

type Verdict struct {
	Holds  bool
	Reason string
}

func holds() Verdict { return Verdict{Holds: true} }

func begin() {}

func write(n int) error { return nil }

func rule(n int, names []string, ready bool) (Verdict, error) {
	if n > 3 && ready || len(names) == 0 {
		return holds(), nil
	}
	begin()
	begin()
	for i := 0; i < n; i++ {
		n--
	}
	switch {
	case !ready:
		return holds(), write(n)
	}
	Reason := "why"
	Reason = "because"
	_ = Reason
	return holds(), write(n)
}

func proven() Verdict { return holds() }
`
	f, err := mutated(text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range f.mutants {
		if m.Function == "rule" || m.Function == "proven" {
			got = append(got, m.Kind+": "+m.Text)
		}
	}
	want := []string{
		"condition negated: n > 3 && ready || len(names) == 0", "condition never true: n > 3 && ready || len(names) == 0",
		"disjunct dropped: n > 3 && ready", "disjunct dropped: len(names) == 0", "conjunct dropped: n > 3", "conjunct dropped: ready",
		"border moved: n > 3 → n >= 3", "constant moved: n > 3 → n > 3+1", "comparison negated: len(names) == 0",
		"constant moved: len(names) == 0 → len(names) == 0+1",
		"calls swapped: begin() ⇄ begin()", "call dropped: begin()", "call dropped: begin() (2)",
		"loop dropped: i < n", "border moved: i < n → i <= n", "assignment dropped: n--",
		"condition negated: !ready", "condition never true: !ready", "call dropped: write(n)", "call dropped: write(n) (2)",
		"verdict turned round: return holds()",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mutants (-want +got):\n%s", diff)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", edited(f.text, f.edits, nil), 0); err != nil {
		t.Errorf("with all mutants it is no Go: %v", err)
	}
	if diff := cmp.Diff(text, string(edited(f.text, nil, nil))); diff != "" {
		t.Errorf("without mutants it is another text: %s", diff)
	}
}

// mutated finds the mutants of one file.
func mutated(text string) (*finder, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, "p.go", text, 0)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: importer.Default()}).Check("p", fset, []*ast.File{syntax}, info); err != nil {
		return nil, err
	}
	f := &finder{source: &source{path: "p.go", text: []byte(text), syntax: syntax, fset: fset, info: info}, seen: map[string]int{}}
	f.file()
	return f, nil
}

// Each seeded bug still has its place, and each mutant that is said to change nothing still is one.
func TestListsMatchTheCode(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folders := slices.Sorted(maps.Keys(suites))
	m, err := find(root, folders, bugs)
	if err != nil {
		t.Fatal(err)
	}
	same, err := equivalents("equivalent.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := unmatched(same, m.mutants(), folders); err != nil {
		t.Error(err)
	}
	for key, reason := range same {
		if strings.TrimSpace(reason) == "" {
			t.Errorf("no reason: %s", key)
		}
	}
	seeded := 0
	for _, mutant := range m.mutants() {
		if mutant.Kind == seededKind {
			seeded++
		}
	}
	if seeded != len(bugs) || seeded < 30 {
		t.Errorf("%d of %d seeded bugs have their place", seeded, len(bugs))
	}
}
