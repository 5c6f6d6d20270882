// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
)

func job(annotations, command string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: web, annotations: {` + annotations +
		`}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: "web:1", command: [` + command + `]}]}}}}`
}

func statefulSet(app, service string) string {
	return `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {serviceName: ` + service +
		`, selector: {matchLabels: {app: ` + app + `}},
  template: {metadata: {labels: {app: ` + app + `}}, spec: {containers: [{name: web, image: "web:1"}]}}}}`
}

func TestImmutableFields(t *testing.T) {
	const marked = `middleware.hc.cn/recreate-on-immutable: "true"`
	for name, tc := range map[string]struct {
		before, after string
		options       []apply.Option
		refused       bool
		finalizer     string // that the API server puts on what is being deleted, for its propagation
	}{
		"a Job that the chart marks": {before: job(marked, "a"), after: job(marked, "b")},
		"a Job that ran stays":       {before: job("", "a"), after: job("", "b"), refused: true},
		"a Job, by force":            {before: job("", "a"), after: job("", "b"), options: []apply.Option{apply.Recreate()}},
		"a kept Job, even by force": {before: job(`helm.sh/resource-policy: keep`, "a"),
			after: job(`helm.sh/resource-policy: keep`, "b"), options: []apply.Option{apply.Recreate()}, refused: true},
		"a StatefulSet": {before: statefulSet("web", "a"), after: statefulSet("web", "b"), refused: true},
		"a StatefulSet's pods stay": {before: statefulSet("web", "a"), after: statefulSet("web", "b"),
			options: []apply.Option{apply.Recreate()}, finalizer: "orphan"},
		"pods that are not selected go": {before: statefulSet("web", "a"), after: statefulSet("new", "a"),
			options: []apply.Option{apply.Recreate()}},
		"an immutable ConfigMap": {before: `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, immutable: true, data: {a: b}}`,
			after: `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, immutable: true, data: {a: c}}`, refused: true},
		"the type of a Secret": {before: `{apiVersion: v1, kind: Secret, metadata: {name: web}, type: a/b}`,
			after: `{apiVersion: v1, kind: Secret, metadata: {name: web}, type: a/c}`, refused: true},
		"the selector of a Deployment": {before: deployment("", "", ""),
			after: strings.ReplaceAll(deployment("", "", ""), "app: web", "app: new"), options: []apply.Option{apply.Recreate()}},
		"the role of a RoleBinding": {
			before: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`, after: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}}`, options: []apply.Option{apply.Recreate()}},
		"the class of a volume claim": {before: claim("a", "1Gi"), after: claim("b", "1Gi"), refused: true},
		"the address of a Service": {before: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}`,
			after: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, ports: [{port: 80}]}}`, refused: true},
		"the provisioner of a StorageClass": {
			before: `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: web}, provisioner: a/b}`,
			after:  `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: web}, provisioner: a/c}`, refused: true},
		"the value of a PriorityClass": {before: `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: web}, value: 1}`,
			after: `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: web}, value: 2}`, refused: true},
		"a claim that shrinks or is pending": {before: claim("a", "2Gi"), after: claim("a", "1Gi"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
			op.mustApply(t, owner, tc.before)
			was := read(t, namespace, tc.before)
			t.Cleanup(func() { check(t, client.IgnoreNotFound(api.Delete(context.Background(), was))) })
			changes, err := op.Apply(context.Background(), owner, manifests(t, tc.after), tc.options...)
			if tc.refused {
				var immutable *apply.ImmutableError
				if !errors.As(err, &immutable) || !strings.Contains(err.Error(), apply.RecreateAnnotation) ||
					!strings.Contains(err.Error(), "upgrade-force") {
					t.Errorf("got %v and %v", changes, err)
				}
				if is := read(t, namespace, tc.before); is == nil || is.GetUID() != was.GetUID() || is.GetDeletionTimestamp() != nil {
					t.Error("it was deleted")
				}
				return
			}
			check(t, err)
			if awaited := changes.Awaited(); len(awaited) != 1 || awaited[0].Action != apply.Deleted || awaited[0].UID != was.GetUID() {
				t.Errorf("got %v", changes)
			}
			if is := read(t, namespace, tc.before); is != nil { // the garbage collector is at work
				if got := strings.Join(is.GetFinalizers(), ","); got != tc.finalizer {
					t.Errorf("got finalizers %s", got)
				}
				if change := op.mustApply(t, owner, tc.after, tc.options...); change.Action != apply.Deleting {
					t.Errorf("meanwhile: %v", change)
				}
				edit(t, namespace, tc.before, `{metadata: {finalizers: null}}`)
			}
			if change := op.mustApply(t, owner, tc.after, tc.options...); change.Action != apply.Recreated || change.UID == was.GetUID() {
				t.Errorf("when it is gone: %v", change)
			}
			op.mustDrift(t, owner)
		})
	}
}

func claim(class, size string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {storageClassName: ` + class +
		`, accessModes: [ReadWriteOnce], resources: {requests: {storage: ` + size + `}}}}`
}

// role is a ClusterRole of a name.
func role(name, verb string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: ` + name +
		`}, rules: [{apiGroups: [""], resources: [pods], verbs: [` + verb + `]}]}`
}

func TestChildrenElsewhere(t *testing.T) {
	ctx := context.Background()
	home, elsewhere := newNamespace(t), newNamespace(t)
	owner := newOwner(t, "Web", home, "web")
	namesake := newOwner(t, "Web", elsewhere, "web") // same kind and name in another namespace
	op, name := newOperator(t, admin), "role-of-"+home
	desired := role(name, "get") + "\n---\n" + strings.Replace(config, "name: web", "namespace: "+elsewhere+", name: web", 1)
	op.mustApply(t, owner, desired)
	op.mustDrift(t, owner)
	var refs []apply.Ref
	for _, text := range strings.Split(desired, "\n---\n") {
		object := read(t, home, text)
		if len(object.GetOwnerReferences()) != 0 || object.GetAnnotations()[handler.NamespacedNameAnnotation] != home+"/web" {
			t.Errorf("%s is not marked as the owner's: %v", object.GetKind(), object.Object["metadata"])
		}
		refs = append(refs, apply.RefOf(object))
	}

	_, err := op.Apply(ctx, namesake, manifests(t, role(name, "list")))
	if reason, _ := apply.Reason(err); reason != apply.ReasonNotOurs || !strings.Contains(err.Error(), home+"/web") {
		t.Errorf("a namesake in another namespace takes it: %v", err)
	}
	if pruned, err := op.Prune(ctx, namesake, refs, nil); err != nil || len(pruned) != 0 {
		t.Errorf("a namesake in another namespace deletes it: %v, %v", pruned, err)
	}

	edit(t, home, desired, `{rules: []}`)
	op.mustDrift(t, owner, "ClusterRole "+name)
	if change := op.mustApply(t, owner, desired); change.Action != apply.Configured {
		t.Errorf("got %v", change)
	}
	if change := newOperator(t, admin).mustApply(t, owner, desired); change.Action != apply.Unchanged {
		t.Errorf("after a restart: %v", change)
	}
	pruned, err := op.Prune(ctx, owner, refs, nil)
	check(t, err)
	if got, want := pruned.String(), "deleted ConfigMap "+elsewhere+"/web, deleted ClusterRole "+name; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	remaining, err := op.Gone(ctx, owner, refs)
	if err != nil || len(remaining) != 0 {
		t.Errorf("remaining: %v, %v", remaining, err)
	}
}

func TestClusterScopedOwner(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Platform", "", "platform-"+namespace), newOperator(t, admin)
	desired := role("role-of-"+namespace, "get") + "\n---\n" + strings.Replace(config, "name: web", "namespace: "+namespace+", name: web", 1)
	op.mustApply(t, owner, desired)
	op.mustDrift(t, owner)
	var refs []apply.Ref
	for _, text := range strings.Split(desired, "\n---\n") {
		object := read(t, "", text)
		if controller := metav1.GetControllerOf(object); controller == nil || controller.UID != owner.GetUID() {
			t.Errorf("%s has no reference to its owner", object.GetKind())
		}
		refs = append(refs, apply.RefOf(object))
	}
	pruned, err := op.Prune(context.Background(), owner, refs, nil)
	if err != nil || len(pruned) != 2 {
		t.Errorf("got %v, %v", pruned, err)
	}
}

func TestPrune(t *testing.T) {
	ctx := context.Background()
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	named := func(name, metadata string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, ` + metadata + `}}`
	}
	text := strings.Join([]string{named("plain", ""), named("kept", `annotations: {helm.sh/resource-policy: keep}`), named("kept-by-hand", ""),
		named("slow", `finalizers: [example.com/slow]`)}, "\n---\n")
	changes, err := op.Apply(ctx, owner, manifests(t, text))
	check(t, err)
	edit(t, namespace, named("kept-by-hand", ""), `{metadata: {annotations: {helm.sh/resource-policy: keep}}}`)
	refs := []apply.Ref{{GroupVersionKind: newGoneKind(), Namespace: namespace, Name: "of-a-kind-that-is-gone"}}
	for _, change := range changes {
		refs = append(refs, change.Ref)
	}
	pruned, err := op.Prune(ctx, owner, refs, nil)
	check(t, err)
	if got, want := pruned.String(), "deleted ConfigMap "+namespace+"/slow, deleted ConfigMap "+namespace+"/plain"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	remaining, err := op.Gone(ctx, owner, refs)
	if err != nil || len(remaining) != 1 || remaining[0].Name != "slow" {
		t.Errorf("remaining: %v, %v", remaining, err)
	}
	for _, name := range []string{"kept", "kept-by-hand"} { // the garbage collector must not follow the owner
		kept := read(t, namespace, named(name, ""))
		if kept == nil || len(kept.GetOwnerReferences()) != 0 || kept.GetAnnotations()[handler.NamespacedNameAnnotation] != namespace+"/web" {
			t.Errorf("%s: %v", name, kept)
		}
	}
	edit(t, namespace, named("slow", ""), `{metadata: {finalizers: null}}`)
	if remaining, err := op.Gone(ctx, owner, refs); err != nil || len(remaining) != 0 {
		t.Errorf("remaining: %v, %v", remaining, err)
	}

	// A resource of the same name finds what was kept; another does not.
	check(t, api.Delete(ctx, owner))
	other := newOwner(t, "Web", namespace, "other")
	_, err = op.Apply(ctx, other, manifests(t, named("kept", "")))
	if reason, _ := apply.Reason(err); reason != apply.ReasonNotOurs {
		t.Errorf("got %v", err)
	}
	again := newOwner(t, "Web", namespace, "web")
	if change := op.mustApply(t, again, named("kept", "")); change.Action != apply.Configured {
		t.Errorf("got %v", change)
	}
	if len(read(t, namespace, named("kept", "")).GetOwnerReferences()) != 1 {
		t.Error("it is not kept any more, and has no reference to its owner")
	}
}

// An object that took the name of one that the cache still shows is not touched.
func TestNameTakenBehindTheCache(t *testing.T) {
	ctx := context.Background()
	namespace := newNamespace(t)
	owner := newOwner(t, "Web", namespace, "web")
	op := newOperator(t, admin)
	op.mustApply(t, owner, config)
	shown := read(t, namespace, config)
	behind := newOperatorWith(t, admin, frozenCache{"ConfigMap": shown})
	check(t, api.Delete(ctx, shown.DeepCopy()))
	theirs := manifests(t, config)[0]
	theirs.SetNamespace(namespace)
	theirs.Object["data"] = map[string]any{"text": "theirs"}
	check(t, api.Create(ctx, theirs))
	_, err := behind.Apply(ctx, owner, manifests(t, config))
	if reason, _ := apply.Reason(err); reason != apply.ReasonNotOurs {
		t.Errorf("got %v", err)
	}
	if got := field(t, read(t, namespace, config), "data", "text"); got != "theirs" {
		t.Errorf("it was overwritten: %s", got)
	}
	check(t, api.Delete(ctx, theirs))
	if changes, err := behind.Apply(ctx, owner, manifests(t, config)); err != nil || changes[0].Action != apply.Created {
		t.Errorf("got %v, %v", changes, err)
	}
}
