// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/chart"
)

// Report is what Validate found.
type Report struct {
	// Kinds are in the order of the watches file.
	Kinds []*KindReport `json:"kinds"`
	// Findings are in the order in which they were found.
	Findings []Finding `json:"findings"`
}

// KindReport is about one entry of the watches file.
type KindReport struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Chart      string `json:"chart"`
	Version    string `json:"version,omitempty"`
	// Samples is the number of sample resources, Renderings how often the chart rendered (samples, and once with its defaults).
	Samples    int `json:"samples"`
	Renderings int `json:"renderings"`
	// Objects is the largest number of objects a rendering had.
	Objects int `json:"objects"`
	// Hooks are "pre-install, pre-upgrade: Job migrate", without those of helm test, which are not run.
	Hooks []string `json:"hooks,omitempty"`
	// Needs is what the watch would have to allow besides what it allows.
	Needs *Need `json:"needs,omitempty"`

	gvk      schema.GroupVersionKind
	resource kindInfo
	// lookup reports whether the chart calls it.
	lookup bool
	// hooks reports whether the chart has some in its templates, rendered or not.
	hooks bool
	// crds reports whether the chart brings CustomResourceDefinitions.
	crds bool
	// kinds are those of the objects and hooks.
	kinds map[schema.GroupKind]kindInfo
}

// Need is what a watch has to allow for its chart, as watches.yaml spells it.
type Need struct {
	ClusterScoped bool     `json:"clusterScoped,omitempty"`
	Namespaces    []string `json:"namespaces,omitempty"`
	Kinds         []string `json:"kinds,omitempty"`
}

// String is the need as one line of YAML; empty if there is none.
func (n *Need) String() string {
	if n == nil {
		return ""
	}
	var parts []string
	if n.ClusterScoped {
		parts = append(parts, "clusterScoped: true")
	}
	if len(n.Namespaces) > 0 {
		parts = append(parts, "namespaces: ["+strings.Join(n.Namespaces, ", ")+"]")
	}
	if len(n.Kinds) > 0 {
		parts = append(parts, "kinds: ["+strings.Join(n.Kinds, ", ")+"]")
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// with returns both needs together; a nil one is none.
func (n *Need) with(more *Need) *Need {
	if n == nil {
		n = &Need{}
	}
	merge := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return &Need{ClusterScoped: n.ClusterScoped || more.ClusterScoped, Namespaces: merge(n.Namespaces, more.Namespaces),
		Kinds: merge(n.Kinds, more.Kinds)}
}

// need tells what the watch has to allow for objects, and which of them it does not allow.
func need(allowed chart.Allowed, objects []*unstructured.Unstructured) (n *Need, refused []string) {
	n = &Need{}
	for _, object := range objects {
		lacks, err := allowed.Lacks(object)
		more := &Need{ClusterScoped: lacks.ClusterScoped, Namespaces: lacks.Namespaces, Kinds: lacks.Kinds}
		if err == nil && more.String() != "" {
			n, refused = n.with(more), append(refused, object.GetKind()+" "+object.GetName())
		}
	}
	return n, refused
}

// addHook notes an object of a hook with its events, without helm test's.
func (k *KindReport) addHook(hook chart.Hook) {
	events := hook.Runs()
	line := strings.Join(events, ", ") + ": " + hook.Object.GetKind() + " " + hook.Object.GetName()
	if len(events) > 0 && !slices.Contains(k.Hooks, line) {
		k.Hooks = append(k.Hooks, line)
	}
}

// add takes findings, leaving out what was found already: samples often show the same.
func (r *Report) add(kind string, findings ...Finding) {
	for _, f := range findings {
		f.Kind = cmp.Or(f.Kind, kind)
		if !slices.Contains(r.Findings, f) {
			r.Findings = append(r.Findings, f)
		}
	}
}

// Count returns how many findings there are of a severity, of one kind or of all if kind is empty.
func (r *Report) Count(severity Severity, kind string) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == severity && (kind == "" || f.Kind == kind) {
			n++
		}
	}
	return n
}

// Err is nil if there are no errors (with strict: no warnings either).
func (r *Report) Err(strict bool) error {
	errs, warnings := r.Count(SeverityError, ""), r.Count(SeverityWarning, "")
	if errs == 0 && (!strict || warnings == 0) {
		return nil
	}
	return fmt.Errorf("validation failed: %s, %s", count(errs, "error"), count(warnings, "warning"))
}

// JSON writes the report for machines.
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// Text writes the report for people: the findings, then a table.
func (r *Report) Text(w io.Writer) error {
	var text strings.Builder
	for _, severity := range []Severity{SeverityNote, SeverityWarning, SeverityError} {
		for _, f := range r.Findings {
			if f.Severity == severity {
				fmt.Fprintf(&text, "%-8s %s%s\n", f.Severity, prefix(f.Kind), f.Error())
			}
		}
	}
	if text.Len() > 0 {
		text.WriteString("\n")
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tAPI VERSION\tCHART\tSAMPLES\tOBJECTS\tHOOKS\tRESULT")
	for _, k := range r.Kinds {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", k.Kind, k.APIVersion, strings.TrimSpace(k.Chart+" "+k.Version), k.Samples, k.Objects,
			len(k.Hooks), r.result(k.Kind))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, k := range r.Kinds {
		for _, hook := range k.Hooks {
			fmt.Fprintf(&text, "hook of %s, %s\n", k.Kind, hook)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func prefix(kind string) string {
	if kind == "" {
		return ""
	}
	return kind + ": "
}

func (r *Report) result(kind string) string {
	var words []string
	if n := r.Count(SeverityError, kind); n > 0 {
		words = append(words, count(n, "error"))
	}
	if n := r.Count(SeverityWarning, kind); n > 0 {
		words = append(words, count(n, "warning"))
	}
	return cmp.Or(strings.Join(words, ", "), "ok")
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
