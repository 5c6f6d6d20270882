// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Hook is an object that runs at a point of the release's life instead of belonging to it.
type Hook struct {
	Object *unstructured.Unstructured
	// Events are Helm's names: pre-install, post-upgrade, test, …
	Events []string
	Weight int
	// DeletePolicies are Helm's names: before-hook-creation, hook-succeeded, hook-failed. Never empty: the first of them is what
	// Helm assumes.
	DeletePolicies []string
	// path and manifest are where it was written and how, for the release's record.
	path, manifest string
}

// Runs are the events at which it is run: all but helm test, which nobody runs here.
func (h Hook) Runs() []string {
	return slices.DeleteFunc(slices.Clone(h.Events), func(event string) bool { return event == string(helmrelease.HookTest) })
}

// Made are all objects that come to exist: those of the release, then those of the hooks that are run.
func (r *Rendered) Made() []*unstructured.Unstructured {
	made := slices.Clone(r.Objects)
	for _, hook := range r.Hooks {
		if len(hook.Runs()) > 0 {
			made = append(made, hook.Object)
		}
	}
	return made
}

// document is one YAML document that a template wrote.
type document struct {
	from, text string
	// head is the document itself, nil if there is nothing in it; objects are it or, of a list, its items.
	head    *unstructured.Unstructured
	objects []*unstructured.Unstructured
}

// read sorts what the templates wrote into objects and hooks, in Helm's orders.
func (r *Rendered) read(files map[string]string) error {
	var plain, hooks []document
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, text := range documents(files[name]) {
			d, err := readDocument(name, text)
			if err != nil {
				return err
			}
			switch {
			case d.isHook():
				hooks = append(hooks, d)
			case len(d.objects) > 0:
				plain = append(plain, d)
			}
		}
	}
	slices.SortStableFunc(plain, byKind)
	slices.SortStableFunc(hooks, byKind)
	var text strings.Builder
	for _, d := range plain {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", d.from, d.text)
		r.Objects = append(r.Objects, d.objects...)
	}
	r.Manifest = text.String()
	for _, d := range hooks {
		r.addHooks(d)
	}
	r.sortHooks()
	return nil
}

// documents splits what a template wrote as Helm does (releaseutil.SplitManifests, whose regular expression takes a second for
// a megabyte): at lines that begin with ---, whatever they stand in; but one that follows another is content.
func documents(text string) []string {
	const space = "\t\n\f\r "
	text = strings.TrimSpace(text)
	if begun, ok := strings.CutPrefix(text, "---"); ok {
		text = strings.TrimLeft(begun, space)
	}
	var list []string
	for more := true; more; text = strings.TrimLeft(text, space) {
		var one string
		if one, text, more = strings.Cut(text, "\n---"); strings.TrimSpace(one) != "" {
			list = append(list, strings.TrimSpace(one))
		}
	}
	return list
}

func readDocument(from, text string) (document, error) {
	d := document{from: from, text: text}
	var err error
	d.head, d.objects, err = decode(from, text)
	return d, err
}

func (d document) isHook() bool {
	if d.head == nil {
		return false
	}
	_, annotated := d.head.GetAnnotations()[helmrelease.HookAnnotation]
	return annotated
}

func (d document) kind() string {
	if d.head == nil {
		return ""
	}
	return d.head.GetKind()
}

// byKind is Helm's order of installation; kinds it does not know come last, by name.
func byKind(a, b document) int {
	place := func(kind string) int {
		if i := slices.Index(releaseutil.InstallOrder, kind); i >= 0 {
			return i
		}
		return len(releaseutil.InstallOrder)
	}
	x, y := place(a.kind()), place(b.kind())
	if x == y && x == len(releaseutil.InstallOrder) {
		return cmp.Compare(a.kind(), b.kind())
	}
	return cmp.Compare(x, y)
}

var hookEvents = []string{
	string(helmrelease.HookPreInstall), string(helmrelease.HookPostInstall), string(helmrelease.HookPreDelete),
	string(helmrelease.HookPostDelete),
	string(helmrelease.HookPreUpgrade), string(helmrelease.HookPostUpgrade), string(helmrelease.HookPreRollback),
	string(helmrelease.HookPostRollback),
	string(helmrelease.HookTest),
}

// addHooks adds a document's objects as hooks. One with an event Helm does not know is left out, as Helm does.
func (r *Rendered) addHooks(d document) {
	annotations := d.head.GetAnnotations()
	hook := Hook{Events: words(annotations[helmrelease.HookAnnotation]), DeletePolicies: words(annotations[helmrelease.HookDeleteAnnotation]),
		path: d.from, manifest: d.text}
	for i, event := range hook.Events {
		if event == "test-success" { // Helm 2's name
			hook.Events[i] = string(helmrelease.HookTest)
		} else if !slices.Contains(hookEvents, event) {
			return
		}
	}
	if annotations[helmrelease.HookDeleteAnnotation] == "" {
		hook.DeletePolicies = []string{string(helmrelease.HookBeforeHookCreation)}
	}
	if weight, err := strconv.Atoi(annotations[helmrelease.HookWeightAnnotation]); err == nil {
		hook.Weight = weight // Helm takes what is no number for 0
	}
	for _, object := range d.objects {
		hook.Object = object
		r.Hooks = append(r.Hooks, hook)
	}
}

// sortHooks brings hooks that are in order of kind into the order in which Helm runs them.
func (r *Rendered) sortHooks() {
	slices.SortStableFunc(r.Hooks, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
}

// words reads a comma-separated annotation.
func words(list string) []string {
	var result []string
	for name := range strings.SplitSeq(list, ",") {
		result = append(result, strings.ToLower(strings.TrimSpace(name)))
	}
	return result
}

// decode reads one YAML document and returns it and its objects, which are the items of a list; nothing for an empty document.
func decode(from, content string) (head *unstructured.Unstructured, objects []*unstructured.Unstructured, err error) {
	refuse := func(err error) error {
		return &Error{Stage: StageManifest, Path: from, Err: err, Remedy: "render the chart with `helm template` and look at the YAML"}
	}
	encoded, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return nil, nil, refuse(err)
	}
	if text := string(encoded); text == "null" || text == "{}" {
		return nil, nil, nil // only comments
	}
	head = &unstructured.Unstructured{}
	if err := head.UnmarshalJSON(encoded); err != nil {
		return nil, nil, refuse(err)
	}
	if !head.IsList() {
		objects, err = checked(head, refuse)
		return head, objects, err
	}
	err = head.EachListItem(func(item runtime.Object) error {
		one := item.(*unstructured.Unstructured)
		if itemKind := strings.TrimSuffix(head.GetKind(), "List"); one.GetKind() == "" && one.GetAPIVersion() == "" && itemKind != "" {
			one.SetKind(itemKind)
			one.SetAPIVersion(head.GetAPIVersion())
		}
		found, err := checked(one, refuse)
		objects = append(objects, found...)
		return err
	})
	return head, objects, err
}

func checked(object *unstructured.Unstructured, refuse func(error) error) ([]*unstructured.Unstructured, error) {
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, refuse(errors.New("an object without apiVersion or kind"))
	}
	if object.GetName() == "" {
		return nil, refuse(fmt.Errorf("a %s without metadata.name", object.GetKind()))
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := onlyStrings(object, field); err != nil {
			return nil, refuse(err)
		}
	}
	return []*unstructured.Unstructured{object}, nil
}

// onlyStrings drops what is null from a map of strings in the metadata, which would otherwise hide the rest of the map from
// everyone who reads it, and refuses what is no string.
func onlyStrings(object *unstructured.Unstructured, field string) error {
	metadata, _ := object.Object["metadata"].(map[string]any)
	refuse := fmt.Errorf("metadata.%s of %s %s is no map of strings; quote its values", field, object.GetKind(), object.GetName())
	switch values := metadata[field].(type) {
	case nil:
		delete(metadata, field)
	case map[string]any:
		for _, value := range values {
			if _, ok := value.(string); value != nil && !ok {
				return refuse
			}
		}
		maps.DeleteFunc(values, func(_ string, value any) bool { return value == nil })
	default:
		return refuse
	}
	return nil
}
