// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkinds

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/release"
)

func TestForeignObjectsAreNotAdopted(t *testing.T) {
	namespace := newNamespace(t)
	theirs := &corev1.ConfigMap{ObjectMeta: meta(namespace, "precious"), Data: map[string]string{"text": "theirs"}}
	check(t, api.Create(context.Background(), theirs))
	startOperator(t, admin, namespace)
	victim := newWeb(t, namespace, "victim", map[string]any{"text": "victim's"})
	becomeReady(t, victim)

	byName := newWeb(t, namespace, "thief-1", map[string]any{"configName": "precious"})
	fromTenant := newWeb(t, namespace, "thief-2", map[string]any{"configName": "victim"})
	eventually(t, "the refusals", func() string {
		return says(t, byName, "Irreconcilable", metav1.ConditionTrue, "ConfigMap "+namespace+
			"/precious exists and was not made by this operator") +
			says(t, fromTenant, "Irreconcilable", metav1.ConditionTrue, "ConfigMap "+namespace+"/victim exists and belongs to Web victim")
	})
	stolen := &corev1.ConfigMap{ObjectMeta: meta(namespace, "victim")}
	get(t, theirs)
	get(t, stolen)
	if theirs.Data["text"] != "theirs" || len(theirs.Labels)+len(theirs.OwnerReferences) != 0 || stolen.Data["text"] != "victim's" ||
		!metav1.IsControlledBy(stolen, victim) {
		t.Errorf("a refused object was changed: %v, %v", theirs, stolen)
	}
	// Deleting the thieves must not delete what they named.
	check(t, api.Delete(context.Background(), fromTenant))
	change(t, byName, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{} })
	becomeReady(t, byName)
	if !get(t, theirs) || !get(t, stolen) {
		t.Error("an object that was never ours is gone")
	}
}

func TestInvalidSpecStallsWithItsFieldPath(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{"text": "forbidden"})
	eventually(t, "the refusal", func() string {
		return says(t, web, "Irreconcilable", metav1.ConditionTrue, `InvalidSpec: spec.text: Invalid value: "forbidden": is not allowed`)
	})
	change(t, web, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"text": "fine"} })
	becomeReady(t, web)
}

func TestUninstallHonoursOlderFinalizers(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{}, release.SDKFinalizer, release.Finalizer)
	becomeReady(t, web)
	check(t, api.Delete(context.Background(), web))
	eventually(t, "resource, children and history gone", func() string {
		secrets := &corev1.SecretList{}
		check(t, api.List(context.Background(), secrets, client.InNamespace(namespace)))
		if get(t, web) || get(t, &appsv1.Deployment{ObjectMeta: meta(namespace, "web")}) ||
			get(t, &corev1.ConfigMap{ObjectMeta: meta(namespace, "web")}) || len(secrets.Items) > 0 {
			return fmt.Sprintf("%d Secrets, finalizers %v", len(secrets.Items), web.GetFinalizers())
		}
		return ""
	})
}

// A crash after the inventory was recorded and in the middle of applying leaves objects of a revision that never completed. The
// next start must find them by the inventory, although the resource no longer asks for them.
func TestCrashBetweenInventoryAndApply(t *testing.T) {
	namespace := newNamespace(t)
	web := newWeb(t, namespace, "web", map[string]any{"configName": "after"})
	abandoned := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "before", Labels: map[string]string{apply.ManagedByLabel: apply.ManagedByValue},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, webKind)}}}
	check(t, api.Create(context.Background(), abandoned))
	check(t, unstructured.SetNestedSlice(web.Object, []any{
		map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "before"},
		map[string]any{"version": "v1", "kind": "Service", "namespace": namespace, "name": "never-made"},
	}, "status", "inventory"))
	check(t, api.Status().Update(context.Background(), web))

	startOperator(t, admin, namespace)
	becomeReady(t, web)
	inventory, _, _ := unstructured.NestedSlice(web.Object, "status", "inventory")
	if get(t, abandoned) || len(inventory) != 3 {
		t.Errorf("the abandoned object is gone and the inventory is what was applied: %v", inventory)
	}
}

func TestRestartChangesNothing(t *testing.T) {
	namespace := newNamespace(t)
	first := startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{})
	becomeReady(t, web)
	first.stop()
	versions := func() []string {
		deployment, config := &appsv1.Deployment{ObjectMeta: meta(namespace, "web")}, &corev1.ConfigMap{ObjectMeta: meta(namespace, "web")}
		get(t, deployment)
		get(t, config)
		get(t, web)
		return []string{deployment.ResourceVersion, config.ResourceVersion, web.GetResourceVersion()}
	}
	before := versions()
	service := &corev1.Service{ObjectMeta: meta(namespace, "web")}
	check(t, api.Delete(context.Background(), service)) // while nobody watches
	second := startOperator(t, admin, namespace)
	eventually(t, "what was deleted meanwhile made again", func() string {
		if !get(t, service) {
			return "it is not"
		}
		return ""
	})
	eventually(t, "a resource that is Ready as before", func() string { return says(t, web, "Ready", metav1.ConditionTrue, "") })
	second.stop()
	if diff := cmp.Diff(before[:2], versions()[:2]); diff != "" {
		t.Errorf("a restart wrote objects that were as applied: %s", diff)
	}
}

func TestNamespaceWithoutRightToSecrets(t *testing.T) {
	namespace := newNamespace(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all-but-secrets-" + namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{webKind.Group, "apps", "batch", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "services", "events"}, Verbs: []string{"*"}},
	}}
	check(t, api.Create(context.Background(), role))
	check(t, api.Create(context.Background(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "narrow"}}}))
	user, err := environment.AddUser(envtest.User{Name: "narrow"}, admin)
	check(t, err)
	startOperator(t, user.Config(), namespace)
	web := newWeb(t, namespace, "web", map[string]any{})
	becomeReady(t, web)
	if problem := says(t, web, "HistoryRecorded", metav1.ConditionFalse,
		"kubectl create rolebinding middleware-operator -n "+namespace+" --clusterrole=middleware-operator-namespace"); problem != "" {
		t.Error(problem)
	}

	// What another operator left is looked for among all Secrets of the namespace; a finalizer of our own is no sign of one.
	ours := object(webKind, namespace, "ours")
	ours.SetAnnotations(map[string]string{release.UninstallWaitAnnotation: "true"})
	ours.Object["spec"] = map[string]any{}
	check(t, api.Create(context.Background(), ours))
	becomeReady(t, ours)
	theirs := newWeb(t, namespace, "theirs", map[string]any{}, release.SDKFinalizer)
	eventually(t, "what is missing is said", func() string {
		return says(t, theirs, "Irreconcilable", metav1.ConditionTrue,
			"kubectl create role middleware-operator-takeover -n "+namespace+
				" --verb=list --resource=secrets && kubectl create rolebinding middleware-operator-takeover -n "+namespace)
	})
}

// Without a status subresource every status write changes the generation. The reconciliations must end nevertheless.
func TestKindWithoutStatusSubresource(t *testing.T) {
	namespace := newNamespace(t)
	op := startKinds(t, admin, namespace, func(t *testing.T, mgr ctrl.Manager, children cache.Cache, op operator) {
		addKind(t, mgr, children, op, plainKind)
	})
	plain := object(plainKind, namespace, "plain")
	plain.Object["spec"] = map[string]any{}
	check(t, api.Create(context.Background(), plain))
	deployed := func() string {
		get(t, plain)
		if !apimeta.IsStatusConditionTrue(conditions.Read(plain), "Deployed") {
			return fmt.Sprint(plain.Object["status"])
		}
		return ""
	}
	eventually(t, "Deployed", deployed)
	touch(t, op, plain, 5)
	before := op.requests.Load()
	touch(t, op, plain, 5)
	if more := op.requests.Load() - before; more != 0 {
		t.Errorf("reconciliations with nothing to do made %d requests", more)
	}
}
