// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// facts are what can be said about a chart without rendering it. They err on the safe side: a call in a branch that is never
// taken counts, and a template that does not parse is taken to do everything.
type facts struct {
	kinds []string
	// tpl, capabilities, lookup and random: some template makes use of these.
	tpl, capabilities, lookup, random bool
	// asked are the APIs that some template asks for by name, as in .Capabilities.APIVersions.Has "policy/v1". All other use of
	// the cluster's capabilities is in capabilities.
	asked []string
	// hooks: helm.sh/hook is mentioned.
	hooks bool
	// files: some template reads files of the chart.
	files bool
	// flow: some action stands inside a flow collection, as in [a, {{ .Values.b }}].
	flow bool
}

// chance are Helm's template functions whose results differ from call to call.
var chance = map[string]bool{
	"now": true, "ago": true, "uuidv4": true, "shuffle": true, "getHostByName": true, "bcrypt": true, "htpasswd": true, "encryptAES": true,
	"randAlphaNum": true, "randAlpha": true, "randAscii": true, "randNumeric": true, "randBytes": true, "randInt": true,
	"genPrivateKey": true, "genCA": true, "genCAWithKey": true, "genSelfSignedCert": true, "genSelfSignedCertWithKey": true,
	"genSignedCert": true, "genSignedCertWithKey": true,
}

var (
	// disordered return the entries of a dictionary in an order of chance; ordering makes that harmless.
	disordered = []string{"keys", "values"}
	ordering   = []string{"sortAlpha", "len", "has"}
)

var (
	actionText = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	word       = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// factsOf collects the facts of a chart and its dependencies.
func factsOf(part *helmchart.Chart) facts {
	var f facts
	k := kindReader{definitions: map[string]*parse.Tree{}}
	f.visit(part, &k)
	if f.tpl || f.files {
		f.visitText(part, &k)
	}
	f.kinds = k.read()
	slices.Sort(f.asked)
	f.asked = slices.Compact(f.asked)
	return f
}

func (f *facts) visit(part *helmchart.Chart, k *kindReader) {
	f.capabilities = f.capabilities || part.Metadata.KubeVersion != ""
	for _, file := range part.Raw {
		f.hooks = f.hooks || file.Name == "values.yaml" && mentionsHook(file.Data)
	}
	for _, file := range part.Templates {
		f.hooks = f.hooks || mentionsHook(file.Data)
		trees, err := parseTemplate(file.Name, string(file.Data))
		if err != nil {
			f.tpl, f.capabilities, f.lookup, f.random, f.files, f.flow = true, true, true, true, true, true
			continue
		}
		for name, tree := range trees {
			walk(tree.Root, f.node)
			text := skeletonOf(tree.Root)
			f.flow = f.flow || text.actionInFlow()
			k.add(name, tree, text)
		}
	}
	for _, dependency := range part.Dependencies() {
		f.visit(dependency, k)
	}
}

func mentionsHook(data []byte) bool { return bytes.Contains(data, []byte("helm.sh/hook")) }

// parseTemplate returns the template of a file and those it defines. Functions need not be known.
func parseTemplate(name, text string) (map[string]*parse.Tree, error) {
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	_, err := tree.Parse(text, "", "", trees)
	return trees, err
}

// node takes note of one node of a template.
func (f *facts) node(node parse.Node) {
	switch n := node.(type) {
	case *parse.IdentifierNode:
		f.called(n.Ident)
	case *parse.CommandNode:
		f.command(n)
	case *parse.ActionNode:
		f.pipeline(n.Pipe)
	case *parse.IfNode:
		f.pipeline(n.Pipe)
	case *parse.RangeNode:
		f.pipeline(n.Pipe)
	case *parse.WithNode:
		f.pipeline(n.Pipe)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			f.pipeline(n.Pipe)
		}
	case *parse.FieldNode:
		f.read(n.Ident)
	case *parse.VariableNode:
		f.read(n.Ident)
	case *parse.ChainNode:
		f.capabilities = f.capabilities || slices.Contains(n.Field, "Capabilities")
		f.read(n.Field)
	case *parse.StringNode:
		f.capabilities = f.capabilities || n.Text == "Capabilities"
		f.text(n.Text) // it may be handed to tpl
	}
}

// pipeline takes note of a whole action that depends on the order of a dictionary.
func (f *facts) pipeline(pipe *parse.PipeNode) {
	var calls []string
	walk(pipe, func(inner parse.Node) {
		if call, ok := inner.(*parse.IdentifierNode); ok {
			calls = append(calls, call.Ident)
		}
	})
	f.random = f.random || containsAny(calls, disordered) && !containsAny(calls, ordering)
}

// hasPath is how a template asks whether the cluster serves an API.
var hasPath = []string{"Capabilities", "APIVersions", "Has"}

// command takes note of the question whether the cluster serves an API. A question whose subject is not written in the template is
// taken to look at all of them.
func (f *facts) command(n *parse.CommandNode) {
	for i, argument := range n.Args {
		var path []string
		switch a := argument.(type) {
		case *parse.FieldNode:
			path = a.Ident
		case *parse.VariableNode:
			path = a.Ident[1:]
		}
		if !slices.Equal(path, hasPath) {
			continue
		}
		if len(n.Args) == 2 && i == 0 {
			if api, literal := n.Args[1].(*parse.StringNode); literal {
				f.asked = append(f.asked, api.Text)
				continue
			}
		}
		f.capabilities = true
	}
}

// read takes note of a path such as .Capabilities.KubeVersion.
func (f *facts) read(path []string) {
	asks := len(path) >= len(hasPath) && slices.Equal(path[len(path)-len(hasPath):], hasPath) // command has it
	f.capabilities = f.capabilities || slices.Contains(path, "Capabilities") && !asks
	f.files = f.files || slices.Contains(path, "Files")
}

func containsAny(list, wanted []string) bool {
	return slices.ContainsFunc(list, func(name string) bool { return slices.Contains(wanted, name) })
}

func (f *facts) called(name string) {
	f.tpl = f.tpl || name == "tpl"
	f.lookup = f.lookup || name == "lookup"
	f.random = f.random || chance[name]
}

// visitText looks at the texts that templates may print or hand to tpl: the chart's default values and its files.
func (f *facts) visitText(part *helmchart.Chart, k *kindReader) {
	for _, file := range part.Raw {
		if strings.HasPrefix(file.Name, "templates/") || strings.HasPrefix(file.Name, "charts/") {
			continue
		}
		text := string(file.Data)
		if f.tpl {
			f.text(text)
		}
		if f.files && slices.Contains([]string{".yaml", ".yml", ".tpl"}, path.Ext(file.Name)) && file.Name != "values.yaml" {
			k.addText(text)
		}
	}
	for _, dependency := range part.Dependencies() {
		f.visitText(dependency, k)
	}
}

// text takes the words of all template actions in a text for calls.
func (f *facts) text(text string) {
	for _, action := range actionText.FindAllString(text, -1) {
		for _, name := range word.FindAllString(action, -1) {
			f.called(name)
			f.capabilities = f.capabilities || name == "Capabilities"
			f.random = f.random || slices.Contains(disordered, name)
		}
	}
}

// walk calls visit for a node and all nodes within it.
func walk(node parse.Node, visit func(parse.Node)) {
	visit(node)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe, visit)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		for _, inner := range n.Nodes {
			walk(inner, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			walk(n.Pipe, visit)
		}
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			walk(command, visit)
		}
	case *parse.CommandNode:
		for _, argument := range n.Args {
			walk(argument, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
}
