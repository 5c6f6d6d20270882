// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// Which kinds a chart writes is read from its templates' syntax trees, so that branches that are off today count, and comments
// and conditions do not. Of each document in a template, or in a named template:
//
//   - a `kind:` line counts when it is as little indented as anything in its document. A `kind:` further in names something
//     that is referred to (roleRef, scaleTargetRef, spec.names of a CustomResourceDefinition) or lies in a text.
//   - in a document whose kind ends in List, `kind:` lines at the level of the list's items count too.
//   - where an action writes the kind, its string literals count, those of the variables it names, and the words of the named
//     template it includes: {{ ternary "A" "B" … }}, {{ $kind }}, {{ include "app.kind" . }}. A value does not count.
//   - a document annotated as Helm's test hook does not count.
//
// The same is read from the YAML files of a chart whose templates print files (.Files).
//
// Objects in flow style ({kind: …}) are found by rendering the chart with its default values only.

var (
	kindName     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	kindLine     = regexp.MustCompile(`^( *)((?:- +)?)["']?kind["']?:[ \t]*(.*)$`)
	apiLine      = regexp.MustCompile(`^( *)(- +)["']?(?:apiVersion|kind)["']?:`)
	documentLine = regexp.MustCompile(`(?m)^\x01*---`)
	testHook     = regexp.MustCompile(`(?m)helm\.sh/hook["']?:[ \t]*["']?test(?:-success|-failure)?["']?[ \t]*\x01*$`)
	actionMark   = regexp.MustCompile(`\x02(\d+)\x03`)
)

// skeleton is a template's own text. Where it branches stands \x01, where an action writes stands \x02, the action's number
// and \x03; all branches are there, one after the other.
type skeleton struct {
	text    string
	actions []parse.Node
}

func skeletonOf(root *parse.ListNode) skeleton {
	var s skeleton
	var text strings.Builder
	var add func(node parse.Node)
	branch := func(b *parse.BranchNode) {
		text.WriteByte(1)
		add(b.List)
		text.WriteByte(1)
		if b.ElseList != nil {
			add(b.ElseList)
			text.WriteByte(1)
		}
	}
	add = func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ListNode:
			for _, inner := range n.Nodes {
				add(inner)
			}
		case *parse.TextNode:
			text.Write(n.Text)
		case *parse.ActionNode, *parse.TemplateNode:
			fmt.Fprintf(&text, "\x02%d\x03", len(s.actions))
			s.actions = append(s.actions, n)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		}
	}
	add(root)
	s.text = text.String()
	return s
}

// actionInFlow reports whether an action may write inside [ ] or { }.
func (s skeleton) actionInFlow() bool {
	depth, inLine := 0, false
	for _, r := range s.text {
		switch r {
		case '[', '{':
			depth, inLine = depth+1, true
		case ']', '}':
			depth = max(depth-1, 0)
		case '\n':
			inLine = false
		case 2:
			if depth > 0 || inLine {
				return true
			}
		}
	}
	return false
}

// kindReader collects the kinds of the templates added to it.
type kindReader struct {
	definitions map[string]*parse.Tree
	skeletons   []skeleton
	trees       []*parse.Tree
}

func (k *kindReader) add(name string, tree *parse.Tree, text skeleton) {
	k.definitions[name] = tree
	k.trees = append(k.trees, tree)
	k.skeletons = append(k.skeletons, text)
}

// addText adds a file that templates may print.
func (k *kindReader) addText(text string) {
	k.trees = append(k.trees, nil)
	k.skeletons = append(k.skeletons, skeleton{text: text})
}

func (k *kindReader) read() []string {
	var kinds []string
	for i, s := range k.skeletons {
		for _, document := range documentLine.Split(s.text, -1) {
			if testHook.MatchString(document) {
				continue
			}
			for _, written := range kindsWritten(document) {
				kinds = append(kinds, k.names(written, s, k.trees[i])...)
			}
		}
	}
	return kinds
}

// kindsWritten returns what follows the `kind:` of a document's object and of a list's items.
func kindsWritten(document string) []string {
	lines := strings.Split(document, "\n")
	level, itemLevel, dashes := -1, -1, -1
	for i := range lines {
		lines[i] = strings.TrimLeft(strings.TrimSuffix(lines[i], "\r"), "\x01")
		indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " "))
		if strings.Trim(lines[i], " \x01") == "" || strings.ContainsRune("#\x02", rune(lines[i][indent])) {
			continue
		}
		if level < 0 || indent < level {
			level = indent
		}
		if at := apiLine.FindStringSubmatch(lines[i]); at != nil && (dashes < 0 || len(at[1]) < dashes) {
			dashes, itemLevel = len(at[1]), len(at[1])+len(at[2])
		}
	}
	var top, items []string
	for _, line := range lines {
		found := kindLine.FindStringSubmatch(line)
		switch {
		case found == nil:
		case found[2] == "" && len(found[1]) == level:
			top = append(top, found[3])
		case len(found[1])+len(found[2]) == itemLevel:
			items = append(items, found[3])
		}
	}
	isList := func(kind string) bool { return strings.HasSuffix(strings.Trim(kind, "\"' \x01"), "List") }
	if slices.ContainsFunc(top, isList) {
		return append(top, items...)
	}
	return top
}

// names returns the kinds in what follows a `kind:`; branches may have put several there.
func (k *kindReader) names(written string, from skeleton, tree *parse.Tree) []string {
	var kinds []string
	for part := range strings.SplitSeq(written, "\x01") {
		if again := kindLine.FindStringSubmatch(part); again != nil {
			part = again[3]
		}
		for _, mark := range actionMark.FindAllStringSubmatch(part, -1) {
			if number, err := strconv.Atoi(mark[1]); err == nil && number < len(from.actions) {
				kinds = append(kinds, k.literals(from.actions[number], tree, map[string]bool{})...)
			}
		}
		plain, _, _ := strings.Cut(part, " #")
		if name := strings.Trim(plain, "\"' \t"); kindName.MatchString(name) && name != "List" {
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// literals returns the words a node may write: its strings, those of its variables, the text of templates it includes.
func (k *kindReader) literals(node parse.Node, tree *parse.Tree, seen map[string]bool) []string {
	var found []string
	include := func(name string) {
		definition, known := k.definitions[name]
		if !known || seen[name] {
			return
		}
		seen[name] = true
		walk(definition.Root, func(inner parse.Node) {
			switch n := inner.(type) {
			case *parse.TextNode:
				found = append(found, word.FindAllString(string(n.Text), -1)...)
			case *parse.ActionNode, *parse.TemplateNode:
				found = append(found, k.literals(n, definition, seen)...)
			}
		})
	}
	walk(node, func(inner parse.Node) {
		switch n := inner.(type) {
		case *parse.StringNode:
			found = append(found, n.Text)
			include(n.Text)
		case *parse.TemplateNode:
			include(n.Name)
		case *parse.VariableNode:
			if name := n.Ident[0]; len(n.Ident) == 1 && name != "$" && !seen[name] {
				seen[name] = true
				found = append(found, k.assigned(name, tree, seen)...)
			}
		}
	})
	return slices.DeleteFunc(found, func(text string) bool { return !kindName.MatchString(text) || text == "List" })
}

// assigned returns the words that are assigned to a variable somewhere in a template.
func (k *kindReader) assigned(variable string, tree *parse.Tree, seen map[string]bool) []string {
	var found []string
	walk(tree.Root, func(node parse.Node) {
		pipe, ok := node.(*parse.PipeNode)
		if ok && slices.ContainsFunc(pipe.Decl, func(d *parse.VariableNode) bool { return d.Ident[0] == variable }) {
			found = append(found, k.literals(pipe, tree, seen)...)
		}
	})
	return found
}
