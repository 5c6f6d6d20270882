// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const installationNamespace = "middleware-operator-system"

// template is the text of an object, with its separator. What config/ says is text of templates nowhere.
func template(o object) (string, error) {
	o.Unstructured = *o.DeepCopy()
	switch {
	case o.GetKind() == "RoleBinding" && o.GetNamespace() != installationNamespace:
		text, err := body(o.Unstructured)
		return wrapped("range $.Values.secretNamespaces", text), err
	case o.GetKind() == "ClusterRoleBinding" && slices.Contains(namespaced, o.GetName()):
		everywhere, err := body(o.Unstructured)
		if err != nil {
			return "", err
		}
		o.SetKind("RoleBinding")
		o.SetNamespace(eachNamespace)
		here, err := body(o.Unstructured)
		text := wrapped("if not $.Values.watchNamespaces", everywhere) + wrapped("range $.Values.watchNamespaces", here)
		if o.condition != "" {
			text = "{{- if " + o.condition + " }}\n" + text + "{{- end }}\n"
		}
		return text, err
	case o.GetKind() == "CustomResourceDefinition":
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["helm.sh/resource-policy"] = "keep"
		o.SetAnnotations(annotations)
		o.condition = "$.Values.crds.install"
	}
	text, err := body(o.Unstructured)
	if o.GetKind() == "Deployment" {
		return wrapped(eachOperator, text), err
	}
	if o.condition == "" {
		return "---\n" + text, err
	}
	return wrapped("if "+o.condition, text), err
}

func wrapped(action, text string) string {
	return "{{- " + action + " }}\n---\n" + text + "{{- end }}\n"
}

// eachNamespace stands for the namespace that a range is at.
const eachNamespace = "zz-each-namespace"

// body is an object as YAML, with the edits that are its own, the labels that all have, and the namespace of the release.
func body(o unstructured.Unstructured) (string, error) {
	o = *o.DeepCopy()
	if o.GetLabels() == nil {
		o.SetLabels(map[string]string{})
	}
	var texts []string
	root := any(o.Object)
	own := append(editsOf(o), edit{"", []any{"metadata", "labels", added{}}, `{{- include "middleware-operator.labels" $ | nindent @0 }}`})
	for _, e := range own {
		var err error
		if root, err = mark(root, e.path, fmt.Sprintf("__EDIT%d__", len(texts))); err != nil {
			return "", fmt.Errorf("%v: %w", e.path, err)
		}
		texts = append(texts, e.text)
	}
	encoded, err := yaml.Marshal(root)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(encoded), "{{", `{{ "{{" }}`)
	text = regexp.MustCompile(`(?m): `+installationNamespace+`$`).ReplaceAllLiteralString(text, ": {{ $.Release.Namespace | quote }}")
	text = strings.ReplaceAll(text, installationNamespace, "{{ $.Release.Namespace }}")
	text = strings.ReplaceAll(text, eachNamespace, "{{ . | quote }}")
	text = marked.ReplaceAllStringFunc(text, func(line string) string {
		match := marked.FindStringSubmatch(line)
		n, _ := strconv.Atoi(match[2]) // digits
		return indented(texts[n], match[1])
	})
	if strings.Contains(text, "__EDIT") {
		return "", fmt.Errorf("an edit is in a place that this program cannot write:\n%s", text)
	}
	return text, nil
}

// marked is a line that an edit replaces: a field, an item, or one more of these.
var marked = regexp.MustCompile(`(?m)^( *)(?:- |[A-Za-z]+: |zz)__EDIT(\d+)__(?:: null)?$`)

// indented is the text of an edit behind so many spaces.
func indented(text, spaces string) string {
	text = regexp.MustCompile(`@(\d)`).ReplaceAllStringFunc(text, func(at string) string {
		return strconv.Itoa(len(spaces) + int(at[1]-'0'))
	})
	return spaces + strings.ReplaceAll(text, "\n", "\n"+spaces)
}

func editsOf(o unstructured.Unstructured) []edit {
	var own []edit
	for _, e := range edits {
		if e.object == o.GetKind()+" "+o.GetName() && (o.GetKind() != "RoleBinding" || o.GetNamespace() == "default") {
			own = append(own, e)
		}
	}
	return own
}

// unusedEdits are the objects of edits and conditions that are not there.
func unusedEdits(objects []object) []string {
	known := map[string]bool{}
	for _, o := range objects {
		known[o.GetKind()+" "+o.GetName()] = true
	}
	var unused []string
	for _, e := range edits {
		if !known[e.object] {
			unused = append(unused, e.object)
		}
	}
	for name := range conditions {
		if !known[name] {
			unused = append(unused, name)
		}
	}
	for _, name := range namespaced {
		if !known["ClusterRoleBinding "+name] {
			unused = append(unused, "ClusterRoleBinding "+name)
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}

// mark puts a marker where a path leads, and returns the node.
func mark(node any, path []any, marker string) (any, error) {
	var err error
	switch step := path[0].(type) {
	case added:
		if list, is := node.([]any); is {
			return append(list, marker), nil
		}
		if object, is := node.(map[string]any); is {
			object["zz"+marker] = nil
			return object, nil
		}
	case items:
		if _, is := node.([]any); is {
			return []any{marker}, nil
		}
	case string:
		object, _ := node.(map[string]any)
		child, there := object[step]
		if !there {
			break
		}
		if object[step] = any(marker); len(path) > 1 {
			object[step], err = mark(child, path[1:], marker)
		}
		return object, err
	case int:
		if list, _ := node.([]any); step < len(list) && len(path) > 1 {
			list[step], err = mark(list[step], path[1:], marker)
			return list, err
		}
	case named:
		list, _ := node.([]any)
		for i := range list {
			if item, _ := list[i].(map[string]any); item["name"] == string(step) && len(path) > 1 {
				list[i], err = mark(item, path[1:], marker)
				return list, err
			}
		}
	}
	return nil, fmt.Errorf("there is no %v", path[0])
}
