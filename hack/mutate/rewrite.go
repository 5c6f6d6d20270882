// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// edit is text that is put into a file.
type edit struct {
	mutant int
	offset int
	text   string
	// closes is set for what ends something: where several edits meet, ends come first, the innermost before the others.
	closes bool
}

// open puts text of the newest mutant before a node.
func (f *finder) open(n ast.Node, text string) {
	f.edits = append(f.edits, edit{mutant: f.next, offset: f.offset(n.Pos()), text: text})
}

// around puts text of the newest mutant around a node.
func (f *finder) around(n ast.Node, before, after string) { f.aroundFor(f.next, n, before, after) }

func (f *finder) aroundFor(mutant int, n ast.Node, before, after string) {
	f.edits = append(f.edits, edit{mutant: mutant, offset: f.offset(n.Pos()), text: before},
		edit{mutant: mutant, offset: f.offset(n.End()), text: after, closes: true})
}

// edited is the text with the edits of all mutants but those left out. They were found from the outside in.
func edited(text []byte, edits []edit, without map[int]bool) []byte {
	var order []int
	for i, e := range edits {
		if !without[e.mutant] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := edits[a], edits[b]
		switch {
		case x.offset != y.offset:
			return cmp.Compare(x.offset, y.offset)
		case x.closes && y.closes:
			return cmp.Compare(b, a)
		case x.closes:
			return -1
		case y.closes:
			return 1
		}
		return cmp.Compare(a, b)
	})
	var out strings.Builder
	last := 0
	for _, i := range order {
		e := edits[i]
		out.Write(text[last:e.offset])
		out.WriteString(e.text)
		last = e.offset
	}
	out.Write(text[last:])
	return []byte(out.String())
}

// selector is the file that every mutated package gets: it knows from the environment which mutant runs, and in TRACE it
// writes down which mutants are reached.
func selector(name string) []byte {
	return fmt.Appendf(nil, `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var selected__, _ = strconv.Atoi(os.Getenv("MUTANT"))

var trace__ = os.Getenv("MUTANT_TRACE")

var (
	lock__    sync.Mutex
	reached__ = map[int]bool{}
)

func mutant__(n int) bool {
	if trace__ != "" {
		note__(n)
	}
	return n == selected__
}

func mutated__(n int, call func() error) error {
	if mutant__(n) {
		return nil
	}
	return call()
}

func note__(n int) {
	lock__.Lock()
	defer lock__.Unlock()
	if reached__[n] {
		return
	}
	reached__[n] = true
	f, err := os.OpenFile(trace__, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, n)
}
`, name)
}
