// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	admission "middleware.hc.cn/operator/internal/admission/application"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// FuzzObject decodes a whole Application: it is refused with the path of a field, or its Deployment is one of its own namespace
// whose pods get no token.
func FuzzObject(f *testing.F) {
	files, err := filepath.Glob("../../config/samples/controller_v1_application*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		encoded, err := yaml.YAMLToJSON(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(encoded))
	}
	const begin = `{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"template":` +
		`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]`
	for _, rest := range []string{"}}}}}}", `,"overhead":{"cpu":"1e2147483647"}}}}}}}`, `,"automountServiceAccountToken":true}}}}}}`,
		`,"volumes":[{"name":"v","hostPath":{"path":"/"}}]}}}}}}`,
		`,"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{}}]}}]}}}}}}`,
		`},"strategy":{"rollingUpdate":{"maxSurge":"1e9%"}}}}}}}`, `}},"replicas":-1,"selector":{"matchExpressions":[{}]}}}}}`} {
		f.Add(begin + rest)
	}
	for _, text := range []string{"{}", `{"spec":null}`, `{"spec":[]}`, `{"spec":{"template":{"spec":{"template":null}}}}`,
		`{"spec":{"selector":{}}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &object.Object) != nil || object.Object == nil {
			return
		}
		object.Object["metadata"] = map[string]any{"name": "web", "namespace": "shop"}
		object.SetGroupVersionKind(applicationKind)
		app, refused := rules.Strict[applicationv1.Application](object)
		if app != nil {
			admission.Default(app)
			_, _ = admission.Warnings(app), admission.ValidateUpdate(&applicationv1.Application{}, app)
			refused = admission.Validate(app)
		}
		for _, mistake := range refused {
			if !strings.HasPrefix(mistake.Field, "spec") {
				t.Errorf("%s: %v names no field", text, mistake)
			}
		}
		if len(refused) > 0 {
			return
		}
		made := desired(object)
		token, _, err := unstructured.NestedBool(made.Object, "spec", "template", "spec", "automountServiceAccountToken")
		if err != nil || token || made.GetNamespace() != "shop" || made.GroupVersionKind() != deploymentKind || made.GetName() == "" {
			t.Errorf("%s makes %v", text, made)
		}
	})
}
