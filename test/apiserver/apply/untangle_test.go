// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/errors"

	"middleware.hc.cn/operator/internal/apply"
)

// deployment is a manifest with a container, and more of the pod's spec, the container and the Deployment's spec.
func deployment(pod, container, spec string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {` + spec +
		` selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
  spec: {` + pod + ` containers: [{name: web, image: "web:1", ` + container + `}]}}}}`
}

// What another client changes of a list's key or of a union makes an invalid object together with what we own.
func TestChangesThatCannotBeMergedAreUndone(t *testing.T) {
	for name, tc := range map[string]struct {
		before  string // what is applied first; desired if empty
		desired string
		edit    string
		path    []string // of the field that has to be as it was before the edit
	}{
		"the port of a Service": {
			desired: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{name: http, port: 80}]}}`,
			edit:    `{spec: {ports: [{name: http, port: 81, nodePort: 30123}, {name: theirs, port: 99, nodePort: 30124}]}}`,
		},
		"the only port of a Service": {
			desired: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`,
			edit:    `{spec: {ports: [{port: 81}]}}`,
			path:    []string{"spec", "ports"},
		},
		"two ports that change places": {
			desired: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: a, port: 80}, {name: b, port: 81}]}}`,
			edit:    `{spec: {ports: [{name: b, port: 80}, {name: a, port: 81}]}}`,
			path:    []string{"spec", "ports"},
		},
		"the port of a container": {
			desired: deployment("", `ports: [{name: http, containerPort: 80}]`, ""),
			edit:    `{spec: {template: {spec: {containers: [{name: web, image: "web:1", ports: [{name: http, containerPort: 81}]}, {name: injected, image: "proxy:1"}]}}}}`,
		},
		"the source of a volume": {
			desired: deployment(`volumes: [{name: data, configMap: {name: data}}],`, "", ""),
			edit:    `{spec: {template: {spec: {volumes: [{name: data, emptyDir: {}}]}}}}`,
			path:    []string{"spec", "template", "spec", "volumes"},
		},
		"the kind of a probe": {
			desired: deployment("", `livenessProbe: {httpGet: {port: 80}}`, ""),
			edit:    `{spec: {template: {spec: {containers: [{name: web, image: "web:1", livenessProbe: {tcpSocket: {port: 80}}}]}}}}`,
			path:    []string{"spec", "template", "spec", "containers"},
		},
		"the source of a variable": {
			desired: deployment("", `env: [{name: A, value: a}]`, ""),
			edit:    `{spec: {template: {spec: {containers: [{name: web, image: "web:1", env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}}`,
			path:    []string{"spec", "template", "spec", "containers"},
		},
		"the value of a variable": {
			desired: deployment("", `env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`, ""),
			edit:    `{spec: {template: {spec: {containers: [{name: web, image: "web:1", env: [{name: A, value: a}]}]}}}}`,
			path:    []string{"spec", "template", "spec", "containers"},
		},
		"the limit of a PodDisruptionBudget": {
			desired: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}`,
			edit:    `{spec: {minAvailable: null, maxUnavailable: 1}}`,
			path:    []string{"spec"},
		},
		"a strategy that has no use for a default": {
			before:  deployment("", "", ""),
			desired: deployment("", "", "strategy: {type: Recreate},"),
			edit:    `{metadata: {annotations: {theirs: "1"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
			if tc.before == "" {
				tc.before = tc.desired
			}
			op.mustApply(t, owner, tc.before)
			was := read(t, namespace, tc.desired)
			edit(t, namespace, tc.desired, tc.edit)
			if tc.before == tc.desired {
				op.mustDrift(t, owner, was.GetKind()+" web")
			}
			if change := op.mustApply(t, owner, tc.desired); change.Action != apply.Configured {
				t.Errorf("got %v", change)
			}
			is := read(t, namespace, tc.desired)
			if tc.path != nil {
				if diff := cmp.Diff(field(t, was, tc.path...), field(t, is, tc.path...)); diff != "" {
					t.Errorf("it is not as it was:\n%s", diff)
				}
			}
			if was.GetUID() != is.GetUID() {
				t.Error("it was made anew")
			}
			for _, entry := range is.GetManagedFields() {
				if entry.Manager == apply.FieldManager && entry.Operation != "Apply" {
					t.Errorf("a second set of fields is ours: what the chart takes out later would stay: %s", entry.FieldsV1)
				}
			}
			op.mustDrift(t, owner)
			if change := op.mustApply(t, owner, tc.desired); change.Action != apply.Unchanged {
				t.Errorf("a second apply: %v", change)
			}
		})
	}
}

func TestWhatOthersAddedStays(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	service := `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{name: http, port: 80}]}}`
	op.mustApply(t, owner, service)
	edit(t, namespace, service, `{spec: {ports: [{name: http, port: 81, nodePort: 30223}, {name: theirs, port: 99, nodePort: 30224}]}}`)
	op.mustApply(t, owner, service)
	want := `[map[name:http nodePort:30223 port:80 protocol:TCP targetPort:80] map[name:theirs nodePort:30224 port:99 protocol:TCP targetPort:99]]`
	if diff := cmp.Diff(want, field(t, read(t, namespace, service), "spec", "ports")); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectThatIsInvalidByItselfIsRefused(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	good := `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}]}}`
	op.mustApply(t, owner, good)
	version := read(t, namespace, good).GetResourceVersion()
	for _, bad := range []string{
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80}, {name: http, port: 81}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 800000}]}}`,
	} {
		_, err := op.Apply(context.Background(), owner, manifests(t, bad))
		if reason, final := apply.Reason(err); !errors.IsInvalid(err) || reason != apply.ReasonRejected || !final {
			t.Errorf("got %v (%s)", err, reason)
		}
	}
	if read(t, namespace, good).GetResourceVersion() != version {
		t.Error("the object was changed although its new form was refused")
	}
}
