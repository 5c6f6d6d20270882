// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// chart says what the chart is made from. Templates of objects are made from config/, Chart.yaml from the ClusterServiceVersion's base
// and the table of the README from values.yaml, so that each is written down once. values.yaml, values.schema.json, NOTES.txt, the
// helpers and the checks are written by hand.
type chart struct {
	builds, csv, output, version, image, changelog string
}

// head is the first line of every template that is made.
const head = "# Made from config/ by `make chart`; change that.\n"

// overlays are those of config/overlays whose objects and changes the chart has behind values, and the values.
var overlays = []struct{ name, condition string }{
	{"cert-manager", "$.Values.webhooks.certManager"},
	{"host-path", "$.Values.allowHostPath"},
	{"prometheus", ""}, // each of its objects has its own
}

func (c chart) write() error {
	if c.version == "" {
		return errors.New("chart: --version is missing")
	}
	objects, err := c.objects()
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, o := range objects {
		text, err := template(o)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		name := fileOf(o)
		if files[name] == "" {
			files[name] = head
		}
		files[name] += text
	}
	if unused := unusedEdits(objects); len(unused) > 0 {
		return fmt.Errorf("config/ has no %s any more: hack/release/edits.go changes it", strings.Join(unused, ", no "))
	}
	if err := c.writeTemplates(files); err != nil {
		return err
	}
	if err := c.writeMetadata(objects); err != nil {
		return err
	}
	if err := c.writeImage(); err != nil {
		return err
	}
	return c.writeReadme()
}

// object is one of config/, with the value that it is made for; empty: always.
type object struct {
	unstructured.Unstructured
	condition string
}

// objects are those of the default installation, but for the namespace, and what each overlay adds.
func (c chart) objects() ([]object, error) {
	byDefault, err := readBuild(filepath.Join(c.builds, "default.yaml"))
	if err != nil {
		return nil, err
	}
	var all []object
	known := map[string]bool{}
	for _, o := range byDefault {
		known[identity(o)] = true
		if o.GetKind() == "Namespace" {
			continue // helm install --create-namespace
		}
		all = append(all, object{o, conditions[o.GetKind()+" "+o.GetName()]})
	}
	for _, overlay := range overlays {
		added, err := readBuild(filepath.Join(c.builds, overlay.name+".yaml"))
		if err != nil {
			return nil, err
		}
		for _, o := range added {
			if known[identity(o)] {
				continue
			}
			condition := overlay.condition
			if condition == "" {
				condition = conditions[o.GetKind()+" "+o.GetName()]
			}
			if condition == "" {
				return nil, fmt.Errorf("overlay %s adds %s, and no value asks for it: hack/release/edits.go", overlay.name, identity(o))
			}
			all = append(all, object{o, condition})
		}
	}
	return all, nil
}

func identity(o unstructured.Unstructured) string {
	return strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
}

func readBuild(file string) ([]unstructured.Unstructured, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of this checkout
	if err != nil {
		return nil, err
	}
	var all []unstructured.Unstructured
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		encoded, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(encoded); err != nil { // integers stay integers
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// fileOf is the template that an object is in.
func fileOf(o object) string {
	switch group := o.GroupVersionKind().Group; group {
	case "apiextensions.k8s.io":
		return "crds.yaml"
	case "rbac.authorization.k8s.io":
		return "rbac.yaml"
	case "admissionregistration.k8s.io", "cert-manager.io":
		return "webhooks.yaml"
	case "monitoring.coreos.com":
		return "prometheus.yaml"
	default:
		return strings.ToLower(o.GetKind()) + ".yaml"
	}
}

// writeTemplates writes the files, and removes those that were made before and are not any more.
func (c chart) writeTemplates(files map[string]string) error {
	folder := filepath.Join(c.output, "templates")
	there, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range there {
		text, err := os.ReadFile(path) //nolint:gosec // a file of this checkout
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(text), head) && files[filepath.Base(path)] == "" {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(filepath.Join(folder, name), []byte(files[name])); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, text []byte) error {
	return os.WriteFile(path, text, 0o644) //nolint:gosec // everybody may read a chart
}
