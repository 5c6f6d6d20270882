// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/admission/images"
)

// TestDefaultsAgree holds together the three places that know the defaults: the CRD,
// the Go code of the webhook and the chart.
func TestDefaultsAgree(t *testing.T) {
	for name, k := range testKinds {
		t.Run(name, func(t *testing.T) {
			for _, spec := range []map[string]any{k.minimal, withOptional(name, k.minimal)} {
				byCRD := newObject(name, "x", spec)
				defaulting.Default(byCRD.Object, crdSchema(t, k.crd))
				if spec := byCRD.Object["spec"].(map[string]any); spec["image"] == nil {
					spec["image"] = images.FooBar // a default of the operator's Deployment, not of the schema
				}
				byGo := k.setDefaults(t, newObject(name, "x", spec))
				if diff := cmp.Diff(specOf(byCRD), specOf(byGo)); diff != "" {
					t.Errorf("the CRD (-) and Default (+) differ:\n%s", diff)
				}
			}
			byChart := chartDefaults(t, k)
			maps.Copy(byChart, k.minimal)
			byGo := k.setDefaults(t, newObject(name, "x", k.minimal))
			if diff := cmp.Diff(specOf(byGo), normal(byChart)); diff != "" {
				t.Errorf("Default (-) and values.yaml (+) differ:\n%s", diff)
			}
		})
	}
}

// withOptional adds the parts that have defaults of their own once they are there.
func withOptional(name string, spec map[string]any) map[string]any {
	spec = runtime.DeepCopyJSON(spec)
	if name == "App" {
		spec["autoscaling"] = map[string]any{"maxReplicas": int64(3)}
		spec["canary"] = map[string]any{"image": "b:2"}
		spec["ports"] = []any{map[string]any{"name": "x", "containerPort": int64(1), "servicePort": int64(2)}}
	}
	return spec
}

// TestSchemasAgree: the chart takes what the CRD lets through, and nothing else.
func TestSchemasAgree(t *testing.T) {
	for name, k := range testKinds {
		t.Run(name, func(t *testing.T) {
			if *update {
				addFields(t, k)
				return // the charts of this program are those that it was built with
			}
			var values struct {
				AdditionalProperties *bool
				Properties           map[string]any
			}
			text, err := fs.ReadFile(helmcharts.FS, k.chart+"/values.schema.json")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &values); err != nil {
				t.Fatal(err)
			}
			if values.AdditionalProperties == nil || *values.AdditionalProperties {
				t.Error("values.schema.json must not allow additional properties")
			}
			for _, own := range append([]string{"global"}, k.chartOnly...) {
				delete(values.Properties, own)
			}
			ofCRD := slices.Sorted(maps.Keys(crdSchema(t, k.crd).Properties["spec"].Properties))
			if diff := cmp.Diff(ofCRD, slices.Sorted(maps.Keys(values.Properties))); diff != "" {
				t.Errorf("the CRD (-) and values.schema.json (+) have different fields:\n%s", diff)
			}
			if diff := cmp.Diff(ofCRD, slices.Sorted(maps.Keys(chartDefaults(t, k)))); diff != "" {
				t.Errorf("the CRD (-) and values.yaml (+) have different fields:\n%s", diff)
			}
		})
	}
}

// TestEveryFieldIsDescribed reads the CRDs as a user does.
func TestEveryFieldIsDescribed(t *testing.T) {
	var check func(path string, s apiextensionsv1.JSONSchemaProps)
	check = func(path string, s apiextensionsv1.JSONSchemaProps) {
		if s.Description == "" && path != "" && path != ".metadata" {
			t.Errorf("%s has no description", path)
		}
		for name, property := range s.Properties {
			check(path+"."+name, property)
		}
	}
	for _, k := range testKinds {
		crd := readCRD(t, k.crd)
		check("", *crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

func chartDefaults(t *testing.T, k kind) map[string]any {
	t.Helper()
	text, err := fs.ReadFile(helmcharts.FS, k.chart+"/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	for _, own := range k.chartOnly {
		if _, ok := values[own]; !ok {
			t.Errorf("values.yaml lacks %s", own)
		}
		delete(values, own)
	}
	return values
}

func readCRD(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../config/crd/bases", file))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func crdSchema(t *testing.T, file string) *schema.Structural {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		readCRD(t, file).Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return structural
}

func specOf(object *unstructured.Unstructured) any {
	return normal(object.Object["spec"])
}

// normal drops what is empty and makes all numbers of one type, so that objects that
// mean the same compare equal.
func normal(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, v := range value {
			if v = normal(v); v != nil {
				out[key] = v
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, v := range value {
			out = append(out, normal(v))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case int64:
		return float64(value)
	case string:
		if value == "" {
			return nil
		}
	}
	return value
}
