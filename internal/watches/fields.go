// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// field reads the value of one key into a T.
type field[T any] func(r reader, into *T, value *yaml.Node) error

// entryFields are the keys of an entry and how each is read.
var entryFields = map[string]field[Watch]{
	"group":                   func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.Group) },
	"version":                 func(r reader, w *Watch, v *yaml.Node) error { return r.required(v, &w.Version) },
	"kind":                    func(r reader, w *Watch, v *yaml.Node) error { return r.required(v, &w.Kind) },
	"chart":                   reader.chart,
	"watchDependentResources": func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.WatchDependentResources) },
	"overrideValues":          reader.overrideValues,
	"proxyVariables":          func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.ProxyVariables) },
	"reconcilePeriod":         reader.reconcilePeriod,
	"maxConcurrentReconciles": reader.maxConcurrentReconciles,
	"selector":                reader.selector,
	"dryRunOption":            func(_ reader, w *Watch, v *yaml.Node) error { return v.Decode(&w.DryRunOption) },
	"allow": func(r reader, w *Watch, v *yaml.Node) error {
		_, err := mapping(r, &w.Allow, v, "allow", allowFields)
		return err
	},
}

var allowFields = map[string]field[Allow]{
	"structuredValues": func(_ reader, a *Allow, v *yaml.Node) error { return v.Decode(&a.StructuredValues) },
	"clusterScoped":    func(_ reader, a *Allow, v *yaml.Node) error { return v.Decode(&a.ClusterScoped) },
	"namespaces":       func(_ reader, a *Allow, v *yaml.Node) error { return v.Decode(&a.Namespaces) },
	"kinds":            func(_ reader, a *Allow, v *yaml.Node) error { return v.Decode(&a.Kinds) },
}

var selectorFields = map[string]field[metav1.LabelSelector]{
	"matchLabels": func(_ reader, s *metav1.LabelSelector, v *yaml.Node) error { return v.Decode(&s.MatchLabels) },
	"matchExpressions": func(r reader, s *metav1.LabelSelector, v *yaml.Node) error {
		if v.Kind != yaml.SequenceNode {
			return r.mistake(v, "matchExpressions is not a list", "begin each with '- key: …'")
		}
		for _, node := range v.Content {
			var e metav1.LabelSelectorRequirement
			if _, err := mapping(r, &e, node, "a matchExpression", expressionFields); err != nil {
				return err
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
		return nil
	},
}

var expressionFields = map[string]field[metav1.LabelSelectorRequirement]{
	"key": func(_ reader, e *metav1.LabelSelectorRequirement, v *yaml.Node) error { return v.Decode(&e.Key) },
	"operator": func(_ reader, e *metav1.LabelSelectorRequirement, v *yaml.Node) error {
		return v.Decode((*string)(&e.Operator))
	},
	"values": func(_ reader, e *metav1.LabelSelectorRequirement, v *yaml.Node) error { return v.Decode(&e.Values) },
}

func (r reader) entry(entry *yaml.Node) (Watch, error) {
	w := Watch{WatchDependentResources: true, Selector: labels.Everything()}
	seen, err := mapping(r, &w, entry, "an entry", entryFields)
	mistakes := []error{err}
	if entry = resolve(entry); entry.Kind == yaml.MappingNode {
		for _, name := range []string{"version", "kind", "chart"} {
			if !seen[name] {
				mistakes = append(mistakes, r.mistake(entry, fmt.Sprintf("field %q is missing", name), "add it"))
			}
		}
	}
	return w, errors.Join(mistakes...)
}

// mapping reads the fields of a mapping and returns which there are.
func mapping[T any](r reader, into *T, node *yaml.Node, what string, known map[string]field[T]) (map[string]bool, error) {
	node = resolve(node)
	seen := map[string]bool{}
	if node.Kind != yaml.MappingNode {
		return seen, r.mistake(node, what+" is not a mapping", "write "+list(known)+", each with a colon")
	}
	var mistakes []error
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		read, ok := known[key.Value]
		switch {
		case key.Tag == "!!merge":
			mistakes = append(mistakes, r.mistake(key, "a merge key (<<)", "write the fields out"))
		case !ok:
			mistakes = append(mistakes, r.mistake(key, fmt.Sprintf("unknown field %q", key.Value),
				fmt.Sprintf("did you mean %q? The fields are %s", nearest(key.Value, known), list(known))))
		case seen[key.Value]:
			mistakes = append(mistakes, r.mistake(key, fmt.Sprintf("field %q is given twice", key.Value), "keep one"))
		case value.Tag == "!!null" && key.Value != "version" && key.Value != "kind" && key.Value != "chart":
			// as if it were not there
		default:
			mistakes = append(mistakes, r.located(key, read(r, into, value)))
		}
		seen[key.Value] = true
	}
	return seen, errors.Join(mistakes...)
}

// resolve returns the node an alias stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func list[T any](known map[string]field[T]) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

// nearest returns the known name that takes the fewest changes of a letter to get to.
func nearest[T any](name string, known map[string]field[T]) string {
	return slices.MinFunc(slices.Sorted(maps.Keys(known)), func(a, b string) int {
		return distance(strings.ToLower(name), strings.ToLower(a)) - distance(strings.ToLower(name), strings.ToLower(b))
	})
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// located gives a decoding error, which has no place of its own, the place of its key.
func (r reader) located(key *yaml.Node, err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	problem := err.Error()
	var wrong *yaml.TypeError
	if errors.As(err, &wrong) {
		_, problem, _ = strings.Cut(wrong.Errors[0], ": ") // before it stands the line
	}
	return r.mistake(key, fmt.Sprintf("field %q: %s", key.Value, problem), "see the operator's documentation of watches.yaml")
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
	if err := r.required(value, &w.Chart); err != nil {
		return err
	}
	written := w.Chart
	var candidates []string
	if path.IsAbs(written) && r.rooted {
		candidates = []string{path.Clean(written)[1:]}
	} else if !path.IsAbs(written) {
		for _, dir := range r.beside {
			candidates = append(candidates, path.Join(dir, written))
		}
	}
	inside := false
	for _, w.Chart = range candidates {
		if !fs.ValidPath(w.Chart) {
			continue
		}
		inside = true
		if r.isChart(w.Chart) {
			return nil
		}
	}
	if !inside {
		return r.mistake(value, fmt.Sprintf("chart %q lies outside the directory of this file", written), "put charts beside or below it")
	}
	return r.mistake(value, fmt.Sprintf("there is no chart at %q", written),
		"the path is relative to this file; a chart is a directory with a Chart.yaml, or a .tgz")
}

func (r reader) isChart(name string) bool {
	info, err := fs.Stat(r.fsys, name)
	if err != nil {
		return false
	}
	if info.IsDir() {
		_, err = fs.Stat(r.fsys, path.Join(name, "Chart.yaml"))
		return err == nil
	}
	return strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz")
}

func (r reader) overrideValues(w *Watch, value *yaml.Node) error {
	if value.Kind != yaml.MappingNode {
		return r.mistake(value, "overrideValues is not a mapping", "write paths and their values, such as image.repository: $IMAGE")
	}
	w.OverrideValues = make(map[string]string, len(value.Content)/2)
	for i := 0; i+1 < len(value.Content); i += 2 {
		key, text := value.Content[i].Value, resolve(value.Content[i+1])
		if text.Kind != yaml.ScalarNode {
			return r.mistake(text, fmt.Sprintf("overrideValues[%s] is not a string", key),
				"write one value; a path such as a.b[0] reaches into maps and lists")
		}
		expanded, err := r.expand(text.Value)
		if err != nil {
			return r.mistake(text, fmt.Sprintf("overrideValues[%s]: %v", key, err),
				"correct the template; environment variables are put in before it is read")
		}
		w.OverrideValues[key] = expanded
	}
	return nil
}

// expand puts environment variables into a text and then executes it as a template. Both operators do; a variable that is not
// set is empty, as theirs.
func (r reader) expand(text string) (string, error) {
	expanded := os.Expand(text, func(name string) string {
		found, _ := r.env(name)
		return found
	})
	parsed, err := template.New("value").Funcs(sprig.TxtFuncMap()).Parse(expanded)
	if err != nil {
		return "", err
	}
	var result strings.Builder
	err = parsed.Execute(&result, nil)
	return result.String(), err
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
	var selector metav1.LabelSelector
	if _, err := mapping(r, &selector, value, "selector", selectorFields); err != nil {
		return err
	}
	converted, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return r.mistake(value, fmt.Sprintf("selector: %v", err), "write matchLabels or matchExpressions, as in a Deployment")
	}
	w.Selector = converted
	return nil
}
