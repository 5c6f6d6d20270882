// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
)

const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {ours: "1"}}, data: {text: hello}}`

// scale does what an autoscaler does.
func scale(t *testing.T, namespace string, replicas int32) {
	t.Helper()
	err := api.SubResource("scale").Update(context.Background(), read(t, namespace, deployment("", "", "")),
		client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}), client.FieldOwner("autoscaler"))
	check(t, err)
}

func TestReplicasChangeTheirManager(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	replicas := func(want string) {
		t.Helper()
		if got := field(t, read(t, namespace, deployment("", "", "")), "spec", "replicas"); got != want {
			t.Fatalf("got %s replicas, want %s", got, want)
		}
	}
	op.mustApply(t, owner, deployment("", "", "replicas: 3,"))
	op.mustApply(t, owner, deployment("", "", ""))
	replicas("3") // the chart has switched autoscaling on: nothing changes by that
	op.mustDrift(t, owner)
	op.mustApply(t, owner, deployment("", "workingDir: /a", ""))
	replicas("3")
	scale(t, namespace, 7)
	op.mustDrift(t, owner)
	op.mustApply(t, owner, deployment("", "workingDir: /b", ""))
	replicas("7")
	op.mustApply(t, owner, deployment("", "workingDir: /b", "replicas: 2,"))
	replicas("2") // the chart has switched it off
	scale(t, namespace, 5)
	op.mustDrift(t, owner, "Deployment web")
	op.mustApply(t, owner, deployment("", "workingDir: /b", "replicas: 2,"))
	replicas("2")
	newOperator(t, admin).mustApply(t, owner, deployment("", "", "")) // the operator was restarted in between
	replicas("2")
}

func TestOtherWritersAreLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    string
		drifted bool
	}{
		"an annotation":          {edit: `{metadata: {annotations: {theirs: "1"}}}`},
		"a label":                {edit: `{metadata: {labels: {theirs: "1"}}}`},
		"another key":            {edit: `{data: {theirs: "1"}}`},
		"a finalizer":            {edit: `{metadata: {finalizers: [example.com/theirs]}}`},
		"our label's value":      {edit: `{metadata: {labels: {ours: "2"}}}`, drifted: true},
		"our key":                {edit: `{data: {text: bye}}`, drifted: true},
		"our key, removed":       {edit: `{data: {text: null}}`, drifted: true},
		"the reference to owner": {edit: `{metadata: {ownerReferences: null}}`, drifted: true},
		"the label we select by": {edit: `{metadata: {labels: {app.kubernetes.io/managed-by: Helm}}}`, drifted: true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
			op.mustApply(t, owner, config)
			op.mustDrift(t, owner)
			edit(t, namespace, config, tc.edit)
			before := op.requests.Load()
			if tc.drifted {
				op.mustDrift(t, owner, "ConfigMap web")
				if change := op.mustApply(t, owner, config); change.Action != apply.Configured && change.Action != apply.Recreated {
					t.Errorf("got %v", change)
				}
				before = op.requests.Load()
			}
			op.mustDrift(t, owner)
			if change := op.mustApply(t, owner, config); change.Action != apply.Unchanged || op.requests.Load() != before {
				t.Errorf("got %v and %d requests", change, op.requests.Load()-before)
			}
			restored := read(t, namespace, config)
			if field(t, restored, "data", "text") != "hello" || len(restored.GetOwnerReferences()) != 1 {
				t.Errorf("it is not as applied: %v", restored.Object)
			}
			theirs := &unstructured.Unstructured{}
			theirs.SetFinalizers(nil)
			if len(restored.GetFinalizers()) > 0 { // let the namespace be deleted
				edit(t, namespace, config, `{metadata: {finalizers: null}}`)
			}
		})
	}
}

// An admission that overwrites what we send wins, and is not taken for drift: nothing is sent again and again.
func TestAdmissionThatChangesWhatWeSend(t *testing.T) {
	namespace := newNamespace(t)
	policy := manifests(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: `+namespace+
		`}, spec: {
  matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+
		`}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]},
  reinvocationPolicy: Never, failurePolicy: Fail,
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data/text", value: "enforced"},
    JSONPatch{op: "add", path: "/data/injected", value: "1"}]'}}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: `+namespace+`}, spec: {policyName: `+
		namespace+`}}`)
	for _, object := range policy {
		check(t, api.Create(context.Background(), object))
		t.Cleanup(func() { check(t, api.Delete(context.Background(), object)) })
	}
	eventually(t, "the policy", func() bool {
		probe := manifests(t, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: probe-, namespace: `+namespace+`}, data: {a: b}}`)[0]
		check(t, api.Create(context.Background(), probe))
		return field(t, probe, "data", "text") == "enforced"
	})
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	op.mustApply(t, owner, config)
	if got := read(t, namespace, config); field(t, got, "data", "text") != "enforced" {
		t.Fatalf("the policy does not apply: %v", got.Object)
	}
	op.mustDrift(t, owner)
	before := op.requests.Load()
	op.mustApply(t, owner, config)
	if op.requests.Load() != before {
		t.Error("it is sent again and again")
	}
	restarted := newOperator(t, admin)
	if change := restarted.mustApply(t, owner, config); change.Action != apply.Unchanged {
		t.Errorf("after a restart: %v", change)
	}
	restarted.mustDrift(t, owner)
}
