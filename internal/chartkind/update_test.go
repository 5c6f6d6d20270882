// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// addFields gives a chart's values.schema.json and values.yaml the fields of the CRD that they lack. What is there stays as somebody
// wrote it.
func addFields(t *testing.T, k kind) {
	t.Helper()
	spec := readCRD(t, k.crd).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	dir := filepath.Join("../../helm-charts", k.chart)
	for file, with := range map[string]func([]byte, map[string]apiextensionsv1.JSONSchemaProps) ([]byte, error){
		"values.schema.json": withProperties, "values.yaml": withValues,
	} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err = with(text, spec.Properties)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// withProperties adds a line for each field that a values.schema.json lacks.
func withProperties(text []byte, fields map[string]apiextensionsv1.JSONSchemaProps) ([]byte, error) {
	var has struct{ Properties map[string]any }
	if err := json.Unmarshal(text, &has); err != nil {
		return nil, err
	}
	before, after, found := bytes.Cut(text, []byte("\n  \"properties\": {\n"))
	if !found {
		return nil, fmt.Errorf("it has no line for properties")
	}
	var added strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, there := has.Properties[name]; there {
			continue
		}
		allowed := limits(fields[name])
		if unset(fields[name]) == "null" {
			allowed["type"] = []any{allowed["type"], "null"}
		}
		property, err := json.Marshal(allowed)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&added, "    %q: %s,\n", name, property)
	}
	return slices.Concat(before, []byte("\n  \"properties\": {\n"), []byte(added.String()), after), nil
}

// limits are what a schema says of a value, without what only the API server reads.
func limits(s apiextensionsv1.JSONSchemaProps) map[string]any {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it was read from JSON
	}
	whole := map[string]any{}
	if err := json.Unmarshal(text, &whole); err != nil {
		panic(err)
	}
	maps.DeleteFunc(whole, func(keyword string, _ any) bool {
		return keyword == "description" || keyword == "default" || keyword == "format" || strings.HasPrefix(keyword, "x-kubernetes-")
	})
	if s.XIntOrString {
		delete(whole, "anyOf")
		whole["type"] = []string{"integer", "string"}
	}
	if s.Items != nil && s.Items.Schema != nil {
		whole["items"] = limits(*s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		whole["additionalProperties"] = limits(*s.AdditionalProperties.Schema)
	}
	if len(s.Properties) > 0 {
		properties := map[string]any{}
		for name, property := range s.Properties {
			properties[name] = limits(property)
		}
		whole["properties"], whole["additionalProperties"] = properties, false
	}
	return whole
}

// withValues adds each field that a values.yaml lacks, with its default or as empty as its type allows.
func withValues(text []byte, fields map[string]apiextensionsv1.JSONSchemaProps) ([]byte, error) {
	has := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &has); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, there := has[name]; there {
			continue
		}
		about := strings.ReplaceAll(strings.TrimSpace(fields[name].Description), "\n", "\n# ")
		text = fmt.Appendf(text, "# %s\n%s: %s\n", about, name, unset(fields[name]))
	}
	return text, nil
}

// unset is what values.yaml says of a field: its default, else as little as its type allows.
func unset(field apiextensionsv1.JSONSchemaProps) string {
	if field.Default != nil {
		return string(field.Default.Raw)
	}
	return cmp.Or(map[string]string{"string": `""`, "array": "[]", "object": "{}"}[field.Type], "null")
}

func TestFieldsAreAddedToAChart(t *testing.T) {
	fields := map[string]apiextensionsv1.JSONSchemaProps{
		"there": {Type: "boolean"},
		"many": {Type: "integer", Description: "How many.\nMore is more.", Default: &apiextensionsv1.JSON{Raw: []byte("3")},
			Minimum: new(float64)},
		"bare": {Type: "boolean", Description: "Whether."},
		"list": {Type: "array", Description: "A list.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: "An item.",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"port": {XIntOrString: true, Description: "A port."}}}}},
	}
	got, err := withProperties([]byte("{\n  \"properties\": {\n    \"there\": {}\n  }\n}\n"), fields)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "properties": {
    "bare": {"type":["boolean","null"]},
    "list": {"items":{"additionalProperties":false,"properties":{"port":{"type":["integer","string"]}},"type":"object"},"type":"array"},
    "many": {"minimum":0,"type":"integer"},
    "there": {}
  }
}
`
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	got, err = withValues([]byte("there: true\n"), fields)
	if diff := gocmp.Diff("there: true\n# Whether.\nbare: null\n# A list.\nlist: []\n# How many.\n# More is more.\nmany: 3\n",
		string(got)); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
