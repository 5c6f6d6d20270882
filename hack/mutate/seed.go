// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// seededKind is the kind of the mutants that are seeded bugs.
const seededKind = "seeded bug"

// Bug is a mistake of several lines that somebody could make: a piece of one function, and what stands there instead.
type Bug struct {
	// Name says what is wrong, in a few words.
	Name string
	File string
	// Old must be in the file exactly once.
	Old, New string
}

// seed puts a changed copy of the function before its own body.
func (f *finder) seed(bug Bug) error {
	if n := strings.Count(string(f.text), bug.Old); n != 1 {
		return fmt.Errorf("seeded bug %q: its text is %d times in %s, want once", bug.Name, n, bug.File)
	}
	at := strings.Index(string(f.text), bug.Old)
	for _, declaration := range f.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil || f.offset(function.Body.Pos()) > at || f.offset(function.Body.Rbrace) < at+len(bug.Old) {
			continue
		}
		f.function = function.Name.Name
		name := f.number(seededKind, function, bug.Name)
		body := f.of(function.Body)
		end := ""
		if function.Type.Results == nil {
			end = "\nreturn"
		}
		f.edits = append(f.edits, edit{mutant: f.next, offset: f.offset(function.Body.Lbrace) + 1,
			text: "if " + name + " {" + strings.Replace(body[1:len(body)-1], bug.Old, bug.New, 1) + end + "\n};"})
		return nil
	}
	return fmt.Errorf("seeded bug %q: its text is not in one function of %s", bug.Name, bug.File)
}
