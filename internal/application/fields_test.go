// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/fields"
)

// No field of an Application is accepted and ignored: each changes the Deployment.
func TestEveryFieldHasAnEffect(t *testing.T) {
	with := func(text string) fields.Example { return fields.Example{With: text} }
	fields.Check(t, "../../config/crd/bases/controller.controller.daocloud.io_applications.yaml",
		[]string{"spec.selector", "spec.template.spec"},
		"{selector: {matchLabels: {app: a}}, template: {spec: {template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'a:1'}]}}}}}",
		map[string]fields.Example{
			"spec.selector":                      with("selector: {matchLabels: {app: b}}"),
			"spec.template.metadata.annotations": with("template: {metadata: {annotations: {a: b}}}"),
			"spec.template.metadata.labels":      with("template: {metadata: {labels: {a: b}}}"),
			"spec.template.metadata.name":        with("template: {metadata: {name: b}}"),
			"spec.template.metadata.namespace":   {Shown: []string{"TestValidateRefuses"}}, // that of the Application, or refused
			"spec.template.spec":                 with("template: {spec: {minReadySeconds: 5}}"),
		}, func(t *testing.T, text []byte) string {
			var spec map[string]any
			if err := yaml.Unmarshal(text, &spec); err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			object.SetName("a")
			object.SetNamespace("n")
			return fields.JSON(t, desired(object))
		})
}
