// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
)

// asHelm makes an object what helm-operator makes of a manifest: Helm's label and annotations, and a reference to the owner.
func asHelm(object, owner *unstructured.Unstructured) {
	object.SetNamespace(owner.GetNamespace())
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": owner.GetName(),
		"meta.helm.sh/release-namespace": owner.GetNamespace()})
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
}

func TestTakeoverFromHelm(t *testing.T) {
	ctx := context.Background()
	for name, write := range map[string]func(*unstructured.Unstructured) error{
		"Helm 3 writes by create and patch": func(object *unstructured.Unstructured) error {
			return api.Create(ctx, object, client.FieldOwner("helm-operator"))
		},
		"Helm 4 writes by server-side apply": func(object *unstructured.Unstructured) error {
			return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("helm"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
			made := deployment("", `env: [{name: A, value: a}, {name: B, value: b}]`, "replicas: 3,") + "\n---\n" +
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {text: hello, more: world}}`
			var before []*unstructured.Unstructured
			for _, object := range manifests(t, made) {
				asHelm(object, owner)
				check(t, write(object))
				before = append(before, object)
			}
			edit(t, namespace, made, `{metadata: {annotations: {theirs: "1"}}}`)
			before[0] = read(t, namespace, made)

			op.mustApply(t, owner, made)
			for _, was := range before {
				is := was.DeepCopy()
				check(t, api.Get(ctx, client.ObjectKeyFromObject(was), is))
				if is.GetUID() != was.GetUID() || is.GetGeneration() != was.GetGeneration() {
					t.Errorf("%s %s: UID %s and generation %d, was %s and %d", is.GetKind(), is.GetName(), is.GetUID(), is.GetGeneration(), was.GetUID(),
						was.GetGeneration())
				}
				if is.GetLabels()[apply.ManagedByLabel] != apply.ManagedByValue || len(is.GetOwnerReferences()) != 1 {
					t.Errorf("it is not ours: %v", is.Object)
				}
			}
			op.mustDrift(t, owner)

			// The chart takes fields out, and leaves replicas to an autoscaler.
			less := deployment("", `env: [{name: A, value: a}]`, "") + "\n---\n" +
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {text: hello}}`
			op.mustApply(t, owner, less)
			workload, configMap := read(t, namespace, made), manifests(t, made)[1]
			check(t, api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, configMap))
			if got := field(t, configMap, "data"); got != "map[text:hello]" {
				t.Errorf("a field that was taken out of the chart stays: %s", got)
			}
			containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
			if env, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "env"); len(env) != 1 {
				t.Errorf("a variable that was taken out of the chart stays: %v", env)
			}
			if got := field(t, workload, "spec", "replicas"); got != "3" {
				t.Errorf("got %s replicas", got)
			}
			if workload.GetAnnotations()["theirs"] != "1" {
				t.Error("what another writer added is gone")
			}
		})
	}
}

// The first apply by this operator may be the one that leaves replicas to an autoscaler.
func TestTakeoverWithAutoscaling(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	object := manifests(t, deployment("", "", "replicas: 4,"))[0]
	asHelm(object, owner)
	check(t, api.Create(context.Background(), object, client.FieldOwner("manager")))
	op.mustApply(t, owner, deployment("", "", ""))
	if got := field(t, read(t, namespace, deployment("", "", "")), "spec", "replicas"); got != "4" {
		t.Errorf("got %s replicas", got)
	}
}

func TestWhatHelmMadeForOthersIsNotTaken(t *testing.T) {
	namespace := newNamespace(t)
	owner, other, op := newOwner(t, "Web", namespace, "web"), newOwner(t, "Web", namespace, "other"), newOperator(t, admin)
	for _, owners := range [][]metav1.OwnerReference{nil, {*metav1.NewControllerRef(other, other.GroupVersionKind())}} {
		object := manifests(t, config)[0]
		asHelm(object, owner)
		object.SetOwnerReferences(owners)
		check(t, api.Create(context.Background(), object))
		_, err := op.Apply(context.Background(), owner, manifests(t, config))
		if reason, _ := apply.Reason(err); reason != apply.ReasonNotOurs {
			t.Errorf("owned by %v: got %v", owners, err)
		}
		check(t, api.Delete(context.Background(), object))
	}
}

// Helm lets a chart set a variable twice: so may this operator, whether Helm made the object before or not.
func TestDuplicatesThatHelmLetsThrough(t *testing.T) {
	twice := deployment("", `env: [{name: A, value: a}, {name: B, value: b}, {name: A, value: c}]`, "replicas: 3,")
	for name, byHelm := range map[string]bool{"made by Helm before": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
			if byHelm {
				object := manifests(t, twice)[0]
				asHelm(object, owner)
				check(t, api.Create(context.Background(), object, client.FieldOwner("manager")))
			}
			op.mustApply(t, owner, twice)
			op.mustDrift(t, owner)
			if change := op.mustApply(t, owner, twice); change.Action != apply.Unchanged {
				t.Errorf("got %v", change)
			}
			containers, _, _ := unstructured.NestedSlice(read(t, namespace, twice).Object, "spec", "template", "spec", "containers")
			env := fmt.Sprint(containers[0].(map[string]any)["env"])
			if want := "[map[name:B value:b] map[name:A value:c]]"; env != want {
				t.Errorf("got %s, want %s", env, want)
			}
			if change := newOperator(t, admin).mustApply(t, owner, twice); change.Action != apply.Unchanged {
				t.Errorf("after a restart: %v", change)
			}
		})
	}
}

// What a former process knew is enough to tell, without a request, that nothing has changed, or what has.
func TestRecall(t *testing.T) {
	ctx := context.Background()
	namespace := newNamespace(t)
	owner := newOwner(t, "Web", namespace, "web")
	secret := `{apiVersion: v1, kind: Secret, metadata: {name: web}, stringData: {text: hello}}`
	both := manifests(t, config+"\n---\n"+secret)
	former := newOperator(t, admin)
	changes, err := former.Apply(ctx, owner, both)
	check(t, err)
	again, err := former.Apply(ctx, owner, both)
	check(t, err)
	var known []apply.Known
	for i, change := range changes {
		if change.Fields == "" || change.Fields != again[i].Fields {
			t.Errorf("%s: fields %q, and %q when nothing was to be done", change, change.Fields, again[i].Fields)
		}
		known = append(known, apply.Known{Ref: change.Ref, Fields: change.Fields})
	}

	op := newOperator(t, admin)
	op.Recall(owner, known)
	op.mustDrift(t, owner)
	changes, err = op.Apply(ctx, owner, both)
	check(t, err)
	if changes.String() != "nothing changed" || op.requests.Load() != 2 {
		t.Errorf("each child is sent once: %v, %d requests", changes, op.requests.Load())
	}
	op.Recall(owner, []apply.Known{{Ref: known[0].Ref, Fields: "stale"}}) // what this process applied is known better
	op.mustDrift(t, owner)

	edited := newOperator(t, admin)
	edited.Recall(owner, known)
	edit(t, namespace, config, `{data: {text: bye}}`)
	edited.mustDrift(t, owner, "ConfigMap web")
	check(t, api.Delete(ctx, read(t, namespace, secret)))
	edited.mustDrift(t, owner, "ConfigMap web", "Secret web")
	changes, err = edited.Apply(ctx, owner, both)
	check(t, err)
	if changes[0].Action != apply.Configured || changes[1].Action != apply.Recreated {
		t.Errorf("got %v", changes)
	}
	edited.mustDrift(t, owner)
}

// A list of children that others can write does not make an object the owner's.
func TestRecallProvesNothing(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	theirs := manifests(t, config)[0]
	theirs.SetNamespace(namespace)
	check(t, api.Create(context.Background(), theirs))
	op.Recall(owner, []apply.Known{{Ref: apply.RefOf(theirs)}})
	_, err := op.Apply(context.Background(), owner, manifests(t, config))
	if reason, _ := apply.Reason(err); reason != apply.ReasonNotOurs {
		t.Errorf("got %v", err)
	}
	if _, err := op.Prune(context.Background(), owner, []apply.Ref{apply.RefOf(theirs)}, nil); err != nil {
		t.Error(err)
	}
	if read(t, namespace, config) == nil {
		t.Error("another's object was deleted")
	}
}

func TestOwnedBy(t *testing.T) {
	namespace := newNamespace(t)
	owner, other, op := newOwner(t, "Web", namespace, "web"), newOwner(t, "Web", namespace, "other"), newOperator(t, admin)
	op.mustApply(t, owner, config)
	object := read(t, namespace, config)
	if err := apply.OwnedBy(owner, object); err != nil {
		t.Error(err)
	}
	if reason, _ := apply.Reason(apply.OwnedBy(other, object)); reason != apply.ReasonNotOurs {
		t.Error("it is said to be another's")
	}
}
