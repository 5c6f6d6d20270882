// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statements mutates the statements of a block: they are dropped, swapped, and return something else.
func (f *finder) statements(list []ast.Stmt) {
	swapped, number := "", 0 // the mutant that swapped the statement with the one before it
	for i, s := range list {
		after, next := "", 0
		if i+1 < len(list) && f.isCall(s) && f.isCall(list[i+1]) {
			after = f.number("calls swapped", s, head(f.of(s))+" ⇄ "+head(f.of(list[i+1])))
			next = f.next
			f.open(s, "if "+after+" { "+f.of(list[i+1])+" }; ")
		}
		if swapped != "" {
			f.aroundFor(number, s, "if !"+swapped+" { ", " }")
		}
		swapped, number = after, next
		f.statement(s)
		f.walk(s)
	}
}

// head is the first line of a statement.
func head(text string) string { return strings.TrimSuffix(strings.SplitN(text, "\n", 2)[0], " {") }

// isCall reports whether a statement is a call, or a call whose error is returned.
func (f *finder) isCall(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && !f.says(call)
	case *ast.IfStmt:
		assigned, ok := s.Init.(*ast.AssignStmt)
		if !ok || len(assigned.Rhs) != 1 || s.Else != nil || f.of(s.Cond) != "err != nil" {
			return false
		}
		_, call := assigned.Rhs[0].(*ast.CallExpr)
		return call
	}
	return false
}

func (f *finder) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if f.isCall(s) && !isError(f.info.Types[s.X].Type) {
			f.drop(s, "call dropped")
		}
	case *ast.DeferStmt:
		f.drop(s, "deferred call dropped")
	case *ast.IncDecStmt:
		f.drop(s, "assignment dropped")
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE && f.of(s.Lhs[0]) != "_" && !isText(f.of(s.Lhs[0])) {
			f.drop(s, "assignment dropped")
		}
	case *ast.ReturnStmt:
		f.returns(s)
	}
}

func (f *finder) drop(s ast.Stmt, kind string) {
	f.around(s, "if !"+f.number(kind, s, f.of(s))+" { ", " }")
}

// returns replaces what is returned: a verdict by its contrary, a bool by the other one, a step or an error by none.
func (f *finder) returns(s *ast.ReturnStmt) {
	results := f.results[len(f.results)-1]
	if len(s.Results) == 0 || len(s.Results) != len(results) {
		return
	}
	last := s.Results[len(s.Results)-1]
	result := results[len(results)-1]
	none := f.info.Types[last].IsNil()
	call, _ := last.(*ast.CallExpr)
	switch {
	case len(results) == 1 && strings.HasSuffix(result.String(), ".Verdict"):
		f.open(s, "if "+f.number("verdict turned round", s, f.of(s))+" { v__ := "+f.of(last)+
			"; v__.Holds = !v__.Holds; v__.Reason = v__.Reason + \" \"; return v__ }; ")
	case isBasic(result, types.IsBoolean) && isBasic(f.info.Types[last].Type, types.IsBoolean):
		f.negated[last] = true
		f.around(last, "("+f.number("result negated", s, f.of(s))+" != (", "))")
	case none || len(results) > 1 && !isError(result):
	case isError(result) && call != nil && !f.wraps(call) && !f.says(call):
		// failing leaves it out
	case isNillable(result):
		texts := make([]string, len(s.Results))
		for i, e := range s.Results {
			texts[i] = f.of(e)
		}
		texts[len(texts)-1] = "nil"
		f.open(s, "if "+f.number("returns nil", s, f.of(s))+" { return "+strings.Join(texts, ", ")+" }; ")
	}
}

func isNillable(t types.Type) bool {
	if _, parameter := t.(*types.TypeParam); parameter {
		return false
	}
	switch t.Underlying().(type) {
	case *types.Interface, *types.Pointer, *types.Slice, *types.Map, *types.Signature:
		return true
	}
	return false
}
