// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watches reads watches.yaml, which says which kind is run by which chart, with the fields of operator-sdk's
// helm-operator and of helm-operator-plugins. Reading is strict: what is not understood is refused, never ignored.
package watches

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watch is one entry: a kind and the chart that runs it.
type Watch struct {
	schema.GroupVersionKind
	// Chart is the directory of the chart, a path within the file system that was read.
	Chart string
	// WatchDependentResources tells whether changes of children wake their owner. Default true.
	WatchDependentResources bool
	// OverrideValues are set over every CR's values. Keys are paths in Helm's --set syntax; environment variables in the
	// values are expanded.
	OverrideValues map[string]string
	// ReconcilePeriod is the time between passes of an object that did not change. Zero, the default, means none.
	ReconcilePeriod time.Duration
	// MaxConcurrentReconciles is the number of objects worked on at once; zero leaves it to the operator's flags.
	MaxConcurrentReconciles int
	// Selector chooses the objects that are reconciled. Default: all.
	Selector labels.Selector
	// DryRunOption is accepted for compatibility. It chose between two ways of comparing manifests that are not used here.
	DryRunOption string
}

// Error is a mistake in a watches file.
type Error struct {
	File string
	// Line counts from 1; 0 when the mistake has no line.
	Line    int
	Problem string
	Remedy  string
}

func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %s; %s", at, e.Problem, e.Remedy)
}

// Load reads a watches file. Charts are resolved relative to it and must exist. Env looks up environment variables, as
// os.LookupEnv does; one that overrideValues names and that is not set is refused.
//
// All mistakes are reported at once, each as an *Error.
func Load(fsys fs.FS, file string, env func(string) (string, bool)) ([]Watch, error) {
	content, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, &Error{File: file, Problem: err.Error(), Remedy: "check the path given with --watches-file"}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, &Error{File: file, Problem: err.Error(), Remedy: "correct the YAML"}
	}
	r := reader{fsys: fsys, file: file, env: env}
	if len(document.Content) == 0 {
		return nil, nil
	}
	list := document.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, r.mistake(list, "the file is not a list", "begin each entry with '- group: …'")
	}
	var result []Watch
	var mistakes []error
	first := map[schema.GroupVersionKind]int{}
	for _, entry := range list.Content {
		w, err := r.entry(entry)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		if line, twice := first[w.GroupVersionKind]; twice {
			mistakes = append(mistakes, r.mistake(entry, fmt.Sprintf("%s is listed a second time, first in line %d", w.Kind, line),
				"keep one entry a kind"))
			continue
		}
		first[w.GroupVersionKind] = entry.Line
		result = append(result, w)
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return result, nil
}

type reader struct {
	fsys fs.FS
	file string
	env  func(string) (string, bool)
}

func (r reader) mistake(at *yaml.Node, problem, remedy string) error {
	return &Error{File: r.file, Line: at.Line, Problem: problem, Remedy: remedy}
}

// fields are the keys of an entry and how each is read.
var fields = map[string]func(r reader, w *Watch, value *yaml.Node) error{
	"group":                   func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.Group) },
	"version":                 func(r reader, w *Watch, v *yaml.Node) error { return r.required(v, &w.Version) },
	"kind":                    func(r reader, w *Watch, v *yaml.Node) error { return r.required(v, &w.Kind) },
	"chart":                   reader.chart,
	"watchDependentResources": func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.WatchDependentResources) },
	"overrideValues":          reader.overrideValues,
	"reconcilePeriod":         reader.reconcilePeriod,
	"maxConcurrentReconciles": reader.maxConcurrentReconciles,
	"selector":                reader.selector,
	"dryRunOption":            func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.DryRunOption) },
}

const fieldNames = "group, version, kind, chart, watchDependentResources, overrideValues, reconcilePeriod, maxConcurrentReconciles, selector, dryRunOption"

func (r reader) entry(entry *yaml.Node) (Watch, error) {
	w := Watch{WatchDependentResources: true, Selector: labels.Everything()}
	if entry.Kind != yaml.MappingNode {
		return w, r.mistake(entry, "an entry is not a mapping", "write 'group:', 'version:', 'kind:' and 'chart:'")
	}
	var mistakes []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		key, value := entry.Content[i], entry.Content[i+1]
		read, known := fields[key.Value]
		switch {
		case !known:
			mistakes = append(mistakes, r.mistake(key, fmt.Sprintf("unknown field %q", key.Value), "the fields are "+fieldNames))
		case seen[key.Value]:
			mistakes = append(mistakes, r.mistake(key, fmt.Sprintf("field %q is given twice", key.Value), "keep one"))
		default:
			mistakes = append(mistakes, r.located(key, read(r, &w, value)))
		}
		seen[key.Value] = true
	}
	for _, name := range []string{"version", "kind", "chart"} {
		if !seen[name] {
			mistakes = append(mistakes, r.mistake(entry, fmt.Sprintf("field %q is missing", name), "add it"))
		}
	}
	return w, errors.Join(mistakes...)
}

// located gives a decoding error, which has no place of its own, the place of its key.
func (r reader) located(key *yaml.Node, err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return r.mistake(key, fmt.Sprintf("field %q: %v", key.Value, err), "see the operator's documentation of watches.yaml")
}

func (r reader) required(value *yaml.Node, into *string) error {
	if err := value.Decode(into); err != nil {
		return err
	}
	if *into == "" {
		return r.mistake(value, "an empty value", "write one")
	}
	return nil
}

func (r reader) chart(w *Watch, value *yaml.Node) error {
	if err := value.Decode(&w.Chart); err != nil {
		return err
	}
	w.Chart = path.Join(path.Dir(r.file), w.Chart)
	if !fs.ValidPath(w.Chart) {
		return r.mistake(value, fmt.Sprintf("chart %q lies outside the directory of this file", value.Value), "put charts beside or below it")
	}
	if _, err := fs.Stat(r.fsys, path.Join(w.Chart, "Chart.yaml")); err != nil {
		return r.mistake(value, fmt.Sprintf("there is no chart at %q", value.Value), "the path is relative to this file, and a chart has a Chart.yaml")
	}
	return nil
}

func (r reader) overrideValues(w *Watch, value *yaml.Node) error {
	raw := map[string]string{}
	if err := value.Decode(&raw); err != nil {
		return err
	}
	w.OverrideValues = make(map[string]string, len(raw))
	for key, text := range raw {
		var unset []string
		w.OverrideValues[key] = os.Expand(text, func(name string) string {
			found, ok := r.env(name)
			if !ok {
				unset = append(unset, name)
			}
			return found
		})
		if len(unset) > 0 {
			return r.mistake(value, fmt.Sprintf("overrideValues[%s] needs the environment variable %s, which is not set", key, strings.Join(unset, ", ")),
				"set it in the operator's Deployment")
		}
	}
	return nil
}

func (r reader) reconcilePeriod(w *Watch, value *yaml.Node) error {
	period, err := time.ParseDuration(value.Value)
	if err != nil || period < 0 {
		return r.mistake(value, fmt.Sprintf("reconcilePeriod %q is no duration", value.Value), "write one such as 30s, 5m or 1h, or 0 for none")
	}
	w.ReconcilePeriod = period
	return nil
}

func (r reader) maxConcurrentReconciles(w *Watch, value *yaml.Node) error {
	if err := value.Decode(&w.MaxConcurrentReconciles); err != nil || w.MaxConcurrentReconciles < 1 {
		return r.mistake(value, fmt.Sprintf("maxConcurrentReconciles %q is no number of at least 1", value.Value), "write one such as 4")
	}
	return nil
}

func (r reader) selector(w *Watch, value *yaml.Node) error {
	var parsed struct {
		MatchLabels      map[string]string `yaml:"matchLabels"`
		MatchExpressions []struct {
			Key      string   `yaml:"key"`
			Operator string   `yaml:"operator"`
			Values   []string `yaml:"values"`
		} `yaml:"matchExpressions"`
	}
	if err := value.Decode(&parsed); err != nil {
		return err
	}
	selector := &metav1.LabelSelector{MatchLabels: parsed.MatchLabels}
	for _, e := range parsed.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
	}
	converted, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return r.mistake(value, fmt.Sprintf("selector: %v", err), "write matchLabels or matchExpressions, as in a Deployment")
	}
	w.Selector = converted
	return nil
}
