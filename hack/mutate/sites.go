// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// Mutant is one change of a line.
type Mutant struct {
	ID int `json:"-"`
	// File is relative to the root of the module, Function the one that the change is in.
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
	// Kind is what is done, Text the code that it is done to.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// key is what a mutant is recognised by when lines above it change.
func (m Mutant) key() string {
	return strings.Join([]string{m.File, m.Function, m.Kind, m.Text}, " | ")
}

func (m Mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.File, m.Line, m.Kind, m.Text)
}

// finder finds the mutants of one file and the edits that put all of them into it, each behind its number.
type finder struct {
	*source
	next     int
	mutants  []Mutant
	edits    []edit
	function string
	// results are those of the functions around the node, innermost last.
	results [][]types.Type
	// negated are expressions that have been negated already.
	negated map[ast.Expr]bool
	// cases are conditions of switches without a tag.
	cases map[ast.Expr]bool
	// later are calls that are not made where they stand: deferred ones, and goroutines.
	later map[*ast.CallExpr]bool
	// seen counts mutants that read the same.
	seen map[string]int
}

// number makes a mutant and returns the call that asks whether it is the one that runs.
func (f *finder) number(kind string, at ast.Node, text string) string {
	f.next++
	m := Mutant{ID: f.next, File: f.path, Line: f.fset.Position(at.Pos()).Line, Function: f.function, Kind: kind, Text: oneLine(text)}
	f.seen[m.key()]++
	if n := f.seen[m.key()]; n > 1 {
		m.Text += fmt.Sprintf(" (%d)", n)
	}
	f.mutants = append(f.mutants, m)
	return fmt.Sprintf("mutant__(%d)", f.next)
}

func oneLine(text string) string {
	const most = 110
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// file finds the mutants of all functions.
func (f *finder) file() {
	f.negated, f.cases, f.later = map[ast.Expr]bool{}, map[ast.Expr]bool{}, map[*ast.CallExpr]bool{}
	for _, declaration := range f.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil || f.speaks(function) {
			continue
		}
		f.function = function.Name.Name
		f.results = append(f.results[:0], f.resultsOf(function.Type))
		f.walk(function.Body)
	}
}

// speaks reports whether a function makes a sentence: its only result is a string, and it formats or joins it.
func (f *finder) speaks(function *ast.FuncDecl) bool {
	results := f.resultsOf(function.Type)
	if len(results) != 1 || !isBasic(results[0], types.IsString) {
		return false
	}
	found := false
	ast.Inspect(function.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name := f.of(call.Fun)
			found = found || strings.HasPrefix(name, "fmt.Sprint") || name == "strings.Join"
		}
		return !found
	})
	return found
}

func (f *finder) resultsOf(function *ast.FuncType) []types.Type {
	var results []types.Type
	if function.Results == nil {
		return nil
	}
	for _, field := range function.Results.List {
		for range max(1, len(field.Names)) {
			results = append(results, f.info.Types[field.Type].Type)
		}
	}
	return results
}

// walk visits a node and what is below it; outer edits come before inner ones.
func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.results = append(f.results, f.resultsOf(n.Type))
			f.walk(n.Body)
			f.results = f.results[:len(f.results)-1]
			return false
		case *ast.BlockStmt:
			f.statements(n.List)
			return false
		case *ast.CaseClause, *ast.CommClause, *ast.IfStmt, *ast.SwitchStmt, *ast.ForStmt:
			return f.branch(n)
		case *ast.DeferStmt:
			f.later[n.Call] = true
		case *ast.GoStmt:
			f.later[n.Call] = true
		case *ast.CallExpr:
			if f.says(n) {
				return false
			}
			if !f.later[n] {
				f.failing(n)
			}
		case *ast.CompositeLit:
			return n.Type == nil || f.of(n.Type) != "base" // the reason of a step
		case *ast.KeyValueExpr:
			return !isText(f.of(n.Key))
		case *ast.BinaryExpr:
			f.binary(n)
		}
		return true
	})
}

// branch mutates the conditions of a statement that branches; it reports whether what is below it is still to be visited.
func (f *finder) branch(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CaseClause:
		for _, e := range n.List {
			if f.cases[e] {
				f.condition(e, "condition negated", "condition never true")
			}
			f.walk(e)
		}
		f.statements(n.Body)
		return false
	case *ast.CommClause:
		f.statements(n.Body) // what is sent or received stays
		return false
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				f.cases[e] = n.Tag == nil
			}
		}
	case *ast.IfStmt:
		if n.Init != nil {
			f.walk(n.Init)
		}
		f.condition(n.Cond, "condition negated", "condition never true")
		f.walk(n.Cond)
		f.walk(n.Body)
		if n.Else != nil {
			f.walk(n.Else)
		}
		return false
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond, "", "loop dropped")
		}
	}
	return true
}

// isText reports whether a field or variable holds a sentence for people.
func isText(name string) bool {
	name = name[strings.LastIndex(name, ".")+1:]
	switch strings.ToLower(name) {
	case "reason", "message", "why", "names", "note", "overdue":
		return true
	}
	return false
}

// says reports whether a call only makes text, or logs it: what is in it is not mutated.
func (f *finder) says(call *ast.CallExpr) bool {
	name := f.of(call.Fun)
	for _, prefix := range []string{"fmt.", "errors.New", "fails", "log.", "logger.", "panic", "klog."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// condition mutates what a branch depends on. An empty kind is left out.
func (f *finder) condition(e ast.Expr, negate, never string) {
	if !f.isBool(e) {
		return
	}
	if negate != "" {
		f.negated[e] = true
		f.around(e, "("+f.number(negate, e, f.of(e))+" != (", "))")
	}
	f.around(e, "(!"+f.number(never, e, f.of(e))+" && (", "))")
}

// isBool reports whether an expression is a plain bool, and no constant.
func (f *finder) isBool(e ast.Expr) bool {
	t, ok := f.info.Types[e]
	if !ok || t.Value != nil {
		return false
	}
	basic, ok := t.Type.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

func isBasic(t types.Type, info types.BasicInfo) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&info != 0
}

// binary mutates && and || (an operand is dropped) and comparisons.
func (f *finder) binary(b *ast.BinaryExpr) {
	_, ordered := moved[b.Op]
	switch {
	case b.Op == token.LAND || b.Op == token.LOR:
		for _, operand := range []ast.Expr{b.X, b.Y} {
			if inner, ok := ast.Unparen(operand).(*ast.BinaryExpr); ok && inner.Op == b.Op || !f.isBool(operand) {
				continue // its operands are dropped one by one
			}
			if b.Op == token.LAND {
				f.around(operand, "("+f.number("conjunct dropped", operand, f.of(operand))+" || (", "))")
			} else {
				f.around(operand, "(!"+f.number("disjunct dropped", operand, f.of(operand))+" && (", "))")
			}
		}
	case (ordered || b.Op == token.EQL || b.Op == token.NEQ) && f.isBool(b):
		f.comparison(b)
	}
}

var moved = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

// comparison moves the border of a comparison by one, and turns == and != round.
func (f *finder) comparison(b *ast.BinaryExpr) {
	instead := func(kind string, op token.Token, y string) {
		text := f.of(b.X) + " " + op.String() + " " + y
		name := f.number(kind, b, f.of(b)+" → "+text)
		f.around(b, "("+name+" && ("+text+") || !"+name+" && (", "))")
	}
	if op, ordered := moved[b.Op]; ordered {
		instead("border moved", op, f.of(b.Y))
	} else if !f.negated[b] {
		f.around(b, "("+f.number("comparison negated", b, f.of(b))+" != (", "))")
	}
	value := f.info.Types[b.Y].Value
	if value == nil || value.Kind() != constant.Int || isBasic(f.info.Types[b.X].Type, types.IsFloat) ||
		f.info.Types[b.X].Type.String() == "time.Duration" { // a nanosecond is nothing
		return
	}
	c, _ := constant.Int64Val(value)
	up, down := fmt.Sprintf("%s+1", f.of(b.Y)), fmt.Sprintf("%s-1", f.of(b.Y))
	never := c == 0 && (strings.HasPrefix(f.of(b.X), "len(") || strings.HasSuffix(f.of(b.X), ".Len()") ||
		isBasic(f.info.Types[b.X].Type, types.IsUnsigned))
	if b.Op != token.LSS && b.Op != token.GEQ {
		instead("constant moved", b.Op, up)
	}
	if b.Op != token.LEQ && b.Op != token.GTR && !never {
		instead("constant moved", b.Op, down)
	}
}

// failing leaves out a call whose only result is an error, as if it had succeeded.
func (f *finder) failing(call *ast.CallExpr) {
	if !isError(f.info.Types[call].Type) || f.wraps(call) || f.info.Types[call.Fun].IsType() {
		return
	}
	name := strings.TrimSuffix(strings.TrimPrefix(f.number("call dropped", call, f.of(call)), "mutant__("), ")")
	f.around(call, "mutated__("+name+", func() error { return ", " })")
}

// wraps reports whether a call makes an error rather than having one.
func (f *finder) wraps(call *ast.CallExpr) bool {
	for _, argument := range call.Args {
		if isError(f.info.Types[argument].Type) {
			return true
		}
	}
	name := f.of(call.Fun)
	return strings.HasPrefix(name, "errors.") || strings.HasPrefix(name, "apierrors.") || strings.HasSuffix(name, ".Err")
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}
