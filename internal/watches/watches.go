// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watches reads watches.yaml, which says which kind is run by which chart, with the fields of operator-sdk's
// helm-operator and of helm-operator-plugins. Reading is strict: what is not understood is refused, never ignored.
package watches

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watch is one entry: a kind and the chart that runs it.
type Watch struct {
	schema.GroupVersionKind
	// Chart is the directory of the chart or a packed chart (.tgz), by its absolute path.
	Chart string
	// WatchDependentResources reports whether changes of children wake their owner. Default true.
	WatchDependentResources bool
	// OverrideValues are set over every CR's values. Keys are paths in Helm's --set syntax; in the values, environment variables
	// ($NAME, ${NAME}; empty when not set) are expanded, then template actions are executed, with the functions of sprig.
	OverrideValues map[string]string
	// ProxyVariables names a list of environment variables among the values, to which those of the operator's own proxy are added
	// (HTTP_PROXY, HTTPS_PROXY, NO_PROXY, in small letters too) that an object does not set itself. Default: none. The field is ours.
	ProxyVariables string
	// ReconcilePeriod is the time between reconciliations of an object that did not change. Zero, the default, means none.
	ReconcilePeriod time.Duration
	// MaxConcurrentReconciles is the number of objects worked on at once; zero leaves it to the operator's flags.
	MaxConcurrentReconciles int
	// Selector chooses the objects that are reconciled. Default: all.
	Selector labels.Selector
	// DryRunOption is accepted for compatibility. It chose between two ways of comparing manifests that are not used here.
	DryRunOption string
	// Allow is what the chart may make besides the kinds its templates write, in the namespace of the CR.
	Allow Allow
}

// Allow widens what a CR may cause to exist. The field is ours; helm-operator, which allows everything, has none.
type Allow struct {
	// StructuredValues lets strings of a resource decide what its objects consist of, for charts that read structure from text.
	StructuredValues bool
	// ClusterScoped allows objects that live in no namespace.
	ClusterScoped bool
	// Namespaces are those besides the CR's own; "*" allows all.
	Namespaces []string
	// Kinds are those that a value chooses, so that the chart's templates do not write them.
	Kinds []string
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

// Load reads a watches file. A chart's path may be absolute; a relative one is looked for beside the
// file and then in the working directory, where helm-operator looks. Charts must exist. Env looks up environment variables, as
// os.LookupEnv does.
//
// All mistakes are reported at once, each as an *Error.
func Load(name string, env func(string) (string, bool)) ([]Watch, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, &Error{File: name, Problem: err.Error(), Remedy: "check the working directory"}
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, &Error{File: name, Problem: err.Error(), Remedy: "check the working directory"}
	}
	inRoot := func(name string) string { return strings.TrimPrefix(filepath.ToSlash(name), "/") }
	file := inRoot(absolute)
	list, err :=
		load(reader{fsys: os.DirFS("/"), rooted: true, file: file, shown: name, beside: []string{path.Dir(file), inRoot(here)}, env: env})
	for i := range list {
		list[i].Chart = "/" + list[i].Chart
	}
	return list, err
}

func load(r reader) ([]Watch, error) {
	content, err := fs.ReadFile(r.fsys, r.file)
	if err != nil {
		if inRoot := (*fs.PathError)(nil); errors.As(err, &inRoot) {
			err = inRoot.Err // its path is not as people know it
		}
		return nil, &Error{File: r.shown, Problem: fmt.Sprintf("cannot be read: %v", err), Remedy: "check the path given with --watches-file"}
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, &Error{File: r.shown, Problem: err.Error(), Remedy: "correct the YAML"}
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{File: r.shown, Line: second.Line, Problem: "there is a second YAML document",
			Remedy: "write all entries into one list"}
	}
	list := document.Content[0]
	if list.Tag == "!!null" {
		return nil, nil
	}
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
	// rooted: fsys is the root of the operating system's files, so that absolute paths lie in it.
	rooted bool
	// file is the watches file within fsys, shown is how it is named to people.
	file, shown string
	// beside are the directories in which charts are looked for.
	beside []string
	env    func(string) (string, bool)
}

func (r reader) mistake(at *yaml.Node, problem, remedy string) error {
	return &Error{File: r.shown, Line: at.Line, Problem: problem, Remedy: remedy}
}
