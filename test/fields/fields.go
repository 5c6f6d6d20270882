// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fields checks that no field of a custom resource is accepted and ignored.
package fields

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Example shows what a field does.
type Example struct {
	// Base is the spec, as YAML, that the field is added to; merged into that of all examples.
	Base string
	// With is the spec that the field is in, merged into Base.
	With string
	// Shown names tests that show the effect, of a field that changes nothing in what is computed
	// from the object alone. With is empty then.
	Shown []string
}

// Check checks that each field of the spec in a CRD has an example, that each example is about a field, and that what is computed
// from an object differs with the field. whole are fields that are passed on as they are, with all that is in them.
func Check(t *testing.T, crd string, whole []string, base string, examples map[string]Example,
	computed func(t *testing.T, spec []byte) string) {
	t.Helper()
	fields := of(t, crd, whole)
	for _, field := range fields {
		if _, shown := examples[field]; !shown {
			t.Errorf("%s: %s has no example of what it does", filepath.Base(crd), field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(examples)) {
		example := examples[field]
		if !slices.Contains(fields, field) {
			t.Errorf("%s: there is no field %s", filepath.Base(crd), field)
			continue
		}
		t.Run(field, func(t *testing.T) {
			if example.With == "" {
				exist(t, example.Shown)
				return
			}
			without := merge(t, []byte("{}"), base, example.Base)
			with := merge(t, without, example.With)
			if computed(t, without) == computed(t, with) {
				t.Errorf("%s changes nothing in what is computed from\n%s", example.With, without)
			}
		})
	}
}

// of lists the fields of a CRD's spec in its newest version, such as spec.pod[].labels.
func of(t *testing.T, file string, whole []string) []string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // of the checkout
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	var fields []string
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		if slices.Contains(whole, path) {
			fields = append(fields, path)
			return
		}
		if schema.Items != nil && schema.Items.Schema != nil && len(schema.Items.Schema.Properties) > 0 {
			path, schema = path+"[]", schema.Items.Schema
		}
		if len(schema.Properties) == 0 {
			fields = append(fields, path)
		}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			walk(path+"."+name, &property)
		}
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	walk("spec", &spec)
	return fields
}

// merge merges specs in YAML (RFC 7386; lists are replaced).
func merge(t *testing.T, into []byte, patches ...string) []byte {
	t.Helper()
	for _, patch := range patches {
		if patch == "" {
			continue
		}
		document, err := yaml.YAMLToJSONStrict([]byte(patch))
		if err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
		if into, err = jsonpatch.MergePatch(into, document); err != nil {
			t.Fatal(err)
		}
	}
	return into
}

// exist checks that tests exist.
func exist(t *testing.T, names []string) {
	t.Helper()
	if len(names) == 0 {
		t.Error("no test shows what it does")
	}
	left := slices.Clone(names)
	root := repository(t)
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // of the checkout
		left = slices.DeleteFunc(left, func(name string) bool { return strings.Contains(string(text), "\nfunc "+name+"(") })
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("there is no test %v (%v)", left, err)
	}
}

// repository is the folder of go.mod.
func repository(t *testing.T) string {
	t.Helper()
	for at := "."; ; at = filepath.Join(at, "..") {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if absolute, err := filepath.Abs(at); err != nil || absolute == "/" {
			t.Fatal("no go.mod above the test")
		}
	}
}

// JSON is a value as text, to be compared.
func JSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
