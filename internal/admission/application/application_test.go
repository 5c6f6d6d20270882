// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/admission/application"
	"middleware.hc.cn/operator/internal/admission/rules"
)

const valid = `
apiVersion: controller.controller.daocloud.io/v1
kind: Application
metadata: {name: a, namespace: default}
spec:
  selector: {matchLabels: {app: a}}
  template:
    spec:
      template:
        metadata: {labels: {app: a}}
        spec:
          containers: [{name: c, image: "busybox:1.36"}]
`

// judge changes one field of the valid Application (a nil value removes it) and
// returns what is wrong then.
func judge(t *testing.T, path string, value any) (*applicationv1.Application, string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(valid), &object.Object); err != nil {
		t.Fatal(err)
	}
	fields := strings.Split(path, ".")
	if value == nil {
		unstructured.RemoveNestedField(object.Object, fields...)
	} else if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
		t.Fatal(err)
	}
	app, refused := rules.Strict[applicationv1.Application](object)
	if app != nil {
		refused = application.Validate(app)
	}
	if len(refused) > 0 {
		return app, refused.ToAggregate().Error()
	}
	return app, ""
}

func TestValidateRefuses(t *testing.T) {
	const spec, pods = "spec.template.spec", "spec.template.spec.template.spec"
	container := func(key string, value any) []any {
		return []any{map[string]any{"name": "c", "image": "busybox:1.36", key: value}}
	}
	volume := func(key string, value any) []any { return []any{map[string]any{"name": "v", key: value}} }
	tests := []struct {
		name, path string
		value      any
		want       string
	}{
		{"nothing", "metadata.name", "a", ""},
		{"a long argument", pods + ".containers", container("args", []any{strings.Repeat("x", 256<<10)}), "spec: Invalid value"},
		{"many arguments", pods + ".containers", container("args", slices.Repeat([]any{"x"}, 10_000)),
			"must be at most 262144 bytes in 10000 entries"},
		{"empty selector", "spec.selector", map[string]any{},
			"spec.selector: Required value: name the labels of the Deployment; an empty selector would match every Deployment of the namespace"},
		{"no selector", "spec.selector", nil, "spec.selector: Required value"},
		{"bad operator", "spec.selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Like"}}},
			`spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`},
		{"labels that do not match", spec + ".template.metadata.labels", map[string]any{"app": "b"},
			"must match spec.selector (app=a); add these labels"},
		{"Deployment labels that do not match", "spec.template.metadata.labels", map[string]any{"app": "b"},
			"spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: must match spec.selector (app=a); add these labels"},
		{"own selector that does not match", spec + ".selector", map[string]any{"matchLabels": map[string]any{"tier": "x"}},
			"must match spec.template.spec.selector (tier=x); add these labels"},
		{"label with a line break", spec + ".template.metadata.labels", map[string]any{"app": "a\nb"},
			`spec.template.spec.template.metadata.labels[app]: Invalid value: "a\nb": a valid label must be`},
		{"other namespace", "spec.template.metadata.namespace", "kube-system",
			"spec.template.metadata.namespace: Forbidden: the Deployment is made in the namespace of the Application; remove it"},
		{"name", "spec.template.metadata.name", "A b", `spec.template.metadata.name: Invalid value: "A b": a lowercase RFC 1123 subdomain`},
		{"label of the operator", "spec.template.metadata.labels", map[string]any{"app": "a", "app.kubernetes.io/managed-by": "me"},
			"spec.template.metadata.labels[app.kubernetes.io/managed-by]: Forbidden: the operator sets it; remove it"},
		{"annotation of Kubernetes", "spec.template.metadata.annotations", map[string]any{"deployment.kubernetes.io/revision": "1"},
			"spec.template.metadata.annotations[deployment.kubernetes.io/revision]: Forbidden: annotations of deployment.kubernetes.io are set by Kubernetes and this operator"},
		{"strategy", spec + ".strategy", map[string]any{"type": "Canary"},
			`spec.template.spec.strategy.type: Unsupported value: "Canary": supported values: "Recreate", "RollingUpdate"`},
		{"replicas", spec + ".replicas", int64(-1), "spec.template.spec.replicas: Invalid value: -1: must be from 0"},
		{"no containers", pods + ".containers", []any{},
			"spec.template.spec.template.spec.containers: Required value: name at least one container"},
		{"no image", pods + ".containers", []any{map[string]any{"name": "c"}},
			"spec.template.spec.template.spec.containers[0].image: Required value: name the container image"},
		{"container name", pods + ".containers", []any{map[string]any{"name": "C_", "image": "b:1"}},
			`spec.template.spec.template.spec.containers[0].name: Invalid value: "C_"`},
		{"container twice", pods + ".initContainers", container("tty", true),
			`spec.template.spec.template.spec.containers[0].name: Duplicate value: "c"`},
		{"unknown field", pods + ".containers", container("imagePullPolice", "Always"),
			`spec.template.spec.template.spec.containers[0].imagePullPolice: Invalid value: holds an unknown field "spec.template.spec.template.spec.containers[0].imagePullPolice"`},
		{"wrong type", pods + ".containers", "none",
			"spec.template.spec.template.spec.containers: Invalid value: has a value of the wrong type (json: cannot unmarshal string into Go struct field"},
		{"host network", pods + ".hostNetwork", true,
			`spec.template.spec.template.spec: Forbidden: host namespaces (hostNetwork=true): the pods of an Application keep to the "baseline" Pod Security Standard; remove it`},
		{"host PID", pods + ".hostPID", true, "host namespaces (hostPID=true)"},
		{"host path", pods + ".volumes", volume("hostPath", map[string]any{"path": "/"}), `hostPath volumes (volume "v")`},
		{"privileged", pods + ".containers", container("securityContext", map[string]any{"privileged": true}),
			`privileged (container "c" must not set securityContext.privileged=true)`},
		{"capability", pods + ".containers",
			container("securityContext", map[string]any{"capabilities": map[string]any{"add": []any{"SYS_ADMIN"}}}), "non-default capabilities"},
		{"capability of the baseline", pods + ".containers",
			container("securityContext", map[string]any{"capabilities": map[string]any{"add": []any{"CHOWN"}}}), ""},
		{"host port", pods + ".containers", container("ports", []any{map[string]any{"containerPort": int64(80), "hostPort": int64(80)}}),
			"hostPort"},
		{"seccomp", pods + ".securityContext", map[string]any{"seccompProfile": map[string]any{"type": "Unconfined"}}, "seccompProfile"},
		{"service account", pods + ".serviceAccountName", "admin",
			"spec.template.spec.template.spec.serviceAccountName: Forbidden: the pods of an Application carry no service account's rights; remove it"},
		{"service account, old name", pods + ".serviceAccount", "admin", "spec.template.spec.template.spec.serviceAccount: Forbidden"},
		{"token", pods + ".automountServiceAccountToken", true, "spec.template.spec.template.spec.automountServiceAccountToken: Forbidden"},
		{"token volume", pods + ".volumes",
			volume("projected", map[string]any{"sources": []any{map[string]any{"serviceAccountToken": map[string]any{"path": "t"}}}}),
			"spec.template.spec.template.spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden"},
		{"ephemeral container", pods + ".ephemeralContainers", []any{map[string]any{"name": "e", "image": "b:1"}},
			"spec.template.spec.template.spec.ephemeralContainers: Forbidden: a template cannot hold them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := judge(t, tt.path, tt.value)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	tests := []struct {
		name, path string
		value      any
		want       string
	}{
		{"replicas", "spec.template.spec.replicas", int64(3), ""},
		{"selector", "spec.selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}},
			"spec.selector: Invalid value: is immutable; delete the Application and create it again"},
		{"name", "spec.template.metadata.name", "b",
			"spec.template.metadata.name: Invalid value: is immutable; delete the Application and create it again"},
		{"selector of the Deployment", "spec.template.spec.selector", map[string]any{"matchLabels": map[string]any{"app": "a"}},
			"spec.template.spec.selector: Invalid value: is immutable; delete the Application and create it again"},
	}
	old, _ := judge(t, "metadata.name", "a")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			updated, refused := judge(t, tt.path, tt.value)
			if refused != "" {
				t.Fatal(refused)
			}
			got := ""
			if list := application.ValidateUpdate(old, updated); len(list) > 0 {
				got = list.ToAggregate().Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../../config/samples/controller_v1_application*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("samples %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
			t.Fatal(err)
		}
		app, refused := rules.Strict[applicationv1.Application](object)
		if app != nil {
			refused = application.Validate(app)
		}
		if len(refused) > 0 || len(application.Warnings(app)) > 0 {
			t.Errorf("%s: %v %v", file, refused, application.Warnings(app))
		}
	}
}
