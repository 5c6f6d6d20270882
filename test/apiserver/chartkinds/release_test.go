// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkinds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// says returns an empty string when the condition has the status and its message or reason holds the text.
func says(t *testing.T, web *unstructured.Unstructured, conditionType string, status metav1.ConditionStatus, text string) string {
	t.Helper()
	get(t, web)
	c := apimeta.FindStatusCondition(conditions.Read(web), conditionType)
	if c == nil || c.Status != status || !strings.Contains(c.Reason+": "+c.Message, text) {
		return fmt.Sprintf("%s is %+v, want %s with %q", conditionType, c, status, text)
	}
	if c.ObservedGeneration != web.GetGeneration() {
		return conditionType + " is about an older generation"
	}
	return ""
}

// becomeReady writes the status the Deployment controller would write and waits for the Web to be Ready.
func becomeReady(t *testing.T, web *unstructured.Unstructured) {
	t.Helper()
	eventually(t, web.GetName()+" Ready", func() string {
		deployment := &appsv1.Deployment{ObjectMeta: meta(web.GetNamespace(), web.GetName())}
		if get(t, deployment) && deployment.Status.ObservedGeneration != deployment.Generation {
			want := ptr.Deref(deployment.Spec.Replicas, 1)
			deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: want, UpdatedReplicas: want,
				ReadyReplicas: want, AvailableReplicas: want}
			if err := api.Status().Update(context.Background(), deployment); err != nil {
				return err.Error()
			}
		}
		return says(t, web, "Ready", metav1.ConditionTrue, "all")
	})
}

func TestInstall(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{"text": "first"})
	eventually(t, "the Deployment named as what is missing", func() string {
		return says(t, web, "Ready", metav1.ConditionFalse, "Deployment web is new")
	})
	becomeReady(t, web)
	t.Logf("%d requests from start to Ready, informers' lists and discovery included", op.requests.Load())

	for _, child := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta(namespace, "web")}, &corev1.Service{ObjectMeta: meta(namespace, "web")},
		&appsv1.Deployment{ObjectMeta: meta(namespace, "web")},
	} {
		if !get(t, child) || !metav1.IsControlledBy(child, web) || child.GetLabels()[apply.ManagedByLabel] != apply.ManagedByValue {
			t.Errorf("%T is there, labelled and controlled by its owner: %v", child, child.GetOwnerReferences())
		}
	}
	inventory, _, _ := unstructured.NestedSlice(web.Object, "status", "inventory")
	for _, entry := range inventory {
		if entry.(map[string]any)["uid"] == nil {
			t.Errorf("inventory entry without UID: %v", entry)
		}
	}
	revision, _, _ := unstructured.NestedInt64(web.Object, "status", "deployedRelease", "revision")
	observed, _, _ := unstructured.NestedInt64(web.Object, "status", "observedGeneration")
	if len(inventory) != 3 || revision != 1 || observed != web.GetGeneration() {
		t.Errorf("got %d inventory entries, revision %d, observed generation %d", len(inventory), revision, observed)
	}
	eventually(t, "an Event that names what was made", func() string {
		list := &eventsv1.EventList{}
		check(t, api.List(context.Background(), list, client.InNamespace(namespace)))
		for _, event := range list.Items {
			if event.Reason == "Installed" && event.Regarding.UID == web.GetUID() &&
				strings.Contains(event.Note, "created Deployment "+namespace+"/web") {
				return ""
			}
		}
		return fmt.Sprintf("%d events", len(list.Items))
	})
	for conditionType, status := range map[string]metav1.ConditionStatus{
		"Initialized": metav1.ConditionTrue, "Deployed": metav1.ConditionTrue, "HistoryRecorded": metav1.ConditionTrue,
		"ReleaseFailed": metav1.ConditionFalse, "Irreconcilable": metav1.ConditionFalse, "Paused": metav1.ConditionFalse,
		"Progressing": metav1.ConditionFalse,
	} {
		if problem := says(t, web, conditionType, status, ""); problem != "" {
			t.Error(problem)
		}
	}
}

func TestHelmSeesTheHistory(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{"text": "first"})
	becomeReady(t, web)
	change(t, web, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"text": "second"} })
	becomeReady(t, web)

	clientset, err := kubernetes.NewForConfig(admin)
	check(t, err)
	helm := storage.Init(driver.NewSecrets(clientset.CoreV1().Secrets(namespace)))
	history, err := helm.History("web")
	check(t, err)
	deployed, err := helm.Deployed("web")
	check(t, err)
	if len(history) != 2 || deployed.Version != 2 || !strings.Contains(deployed.Manifest, `text: "second"`) {
		t.Errorf("got %d revisions, deployed %d with %s", len(history), deployed.Version, deployed.Manifest)
	}
	secrets := &corev1.SecretList{}
	check(t, api.List(context.Background(), secrets, client.InNamespace(namespace)))
	for _, secret := range secrets.Items {
		if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != web.GetUID() {
			t.Errorf("%s goes with its resource: %v", secret.Name, secret.OwnerReferences)
		}
	}
}

// An operator that is to keep fewer revisions deletes those that one with another flag has left, with the next revision.
func TestShorterHistoryForgetsWhatIsBeyondIt(t *testing.T) {
	namespace := newNamespace(t)
	text := 0
	var web *unstructured.Unstructured
	upgrade := func(times int) {
		for range times {
			text++
			spec := map[string]any{"text": fmt.Sprint(text)}
			if web == nil {
				web = newWeb(t, namespace, "web", spec)
			} else {
				change(t, web, func(w *unstructured.Unstructured) { w.Object["spec"] = spec })
			}
			becomeReady(t, web)
		}
	}
	revisions := func() (found []string) {
		secrets := &corev1.SecretList{}
		check(t, api.List(context.Background(), secrets, client.InNamespace(namespace)))
		for _, secret := range secrets.Items {
			found = append(found, secret.Labels["version"])
		}
		return found
	}
	with := func(length int) operator {
		return startKinds(t, admin, namespace, func(t *testing.T, mgr ctrl.Manager, children cache.Cache, op operator) {
			addKindWithHistory(t, mgr, children, op, webKind, length)
		})
	}
	op := with(6)
	upgrade(7)
	if diff := cmp.Diff([]string{"2", "3", "4", "5", "6", "7"}, revisions()); diff != "" {
		t.Fatalf("revisions (-want +got):\n%s", diff)
	}
	op.stop()
	gap := &corev1.Secret{ObjectMeta: meta(namespace, "sh.helm.release.v1.web.v4")}
	check(t, api.Delete(context.Background(), gap)) // as if it could not be recorded then
	with(2)
	upgrade(1)
	if diff := cmp.Diff([]string{"7", "8"}, revisions()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	upgrade(1)
	if diff := cmp.Diff([]string{"8", "9"}, revisions()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// touch makes reconciliations happen, one after the other, by changes that ask for nothing new.
func touch(t *testing.T, op operator, resource *unstructured.Unstructured, times int) {
	t.Helper()
	for range times {
		before := op.passes.Load()
		change(t, resource, func(r *unstructured.Unstructured) { r.SetAnnotations(map[string]string{"touched": fmt.Sprint(before)}) })
		eventually(t, "a reconciliation", func() string {
			if op.passes.Load() == before {
				return "none began"
			}
			return ""
		})
	}
}

func TestIdlePassMakesNoRequest(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{})
	becomeReady(t, web)
	touch(t, op, web, 2) // whatever was still on its way is done when the second reconciliation begins
	before := op.requests.Load()
	touch(t, op, web, 5)
	if more := op.requests.Load() - before; more != 0 {
		t.Errorf("reconciliations with nothing to do made %d requests", more)
	}
}

func TestDriftIsPutBackAndForeignFieldsStay(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{"text": "ours"})
	becomeReady(t, web)
	service := &corev1.Service{ObjectMeta: meta(namespace, "web")}
	get(t, service)
	untouched := service.ResourceVersion

	config := &corev1.ConfigMap{ObjectMeta: meta(namespace, "web")}
	change(t, config, func(c *corev1.ConfigMap) { c.Data = map[string]string{"text": "theirs", "more": "stays"} })
	deployment := &appsv1.Deployment{ObjectMeta: meta(namespace, "web")}
	change(t, deployment, func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](5) // as an autoscaler would
		d.Spec.Template.Spec.Containers[0].Image = "theirs:1"
	})
	eventually(t, "the edits undone", func() string {
		get(t, config)
		get(t, deployment)
		return cmp.Diff([]string{"ours", "stays", "web:1"},
			[]string{config.Data["text"], config.Data["more"], deployment.Spec.Template.Spec.Containers[0].Image})
	})
	if *deployment.Spec.Replicas != 5 {
		t.Errorf("replicas belong to whoever scaled: got %d", *deployment.Spec.Replicas)
	}
	if get(t, service); service.ResourceVersion != untouched {
		t.Error("an object nobody touched was written")
	}

	uid := service.UID
	check(t, api.Delete(context.Background(), service))
	eventually(t, "the deleted Service made again", func() string {
		if !get(t, service) || service.UID == uid {
			return "it is not"
		}
		return ""
	})
	change(t, config, func(c *corev1.ConfigMap) { c.Labels, c.OwnerReferences = nil, nil })
	eventually(t, "label and owner put back", func() string {
		if get(t, config); config.Labels[apply.ManagedByLabel] == "" || !metav1.IsControlledBy(config, web) {
			return fmt.Sprint(config.Labels, config.OwnerReferences)
		}
		return ""
	})
}

func TestWhatIsNoLongerRenderedIsPruned(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{})
	becomeReady(t, web)
	bystander := &corev1.ConfigMap{ObjectMeta: meta(namespace, "bystander")}
	check(t, api.Create(context.Background(), bystander))
	eventually(t, "a forged inventory", func() string {
		get(t, web)
		inventory, _, _ := unstructured.NestedSlice(web.Object, "status", "inventory")
		check(t, unstructured.SetNestedSlice(web.Object,
			append(inventory, map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "bystander"}), "status",
			"inventory"))
		if err := api.Status().Update(context.Background(), web); err != nil {
			return err.Error()
		}
		return ""
	})
	change(t, web, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"service": false} })
	eventually(t, "the Service pruned and the inventory narrowed", func() string {
		get(t, web)
		inventory, _, _ := unstructured.NestedSlice(web.Object, "status", "inventory")
		if get(t, &corev1.Service{ObjectMeta: meta(namespace, "web")}) || len(inventory) != 2 {
			return fmt.Sprint(inventory)
		}
		return ""
	})
	if !get(t, bystander) {
		t.Error("an object without our ownership was pruned")
	}
}

func TestImmutableJobIsMadeAnew(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, admin, namespace)
	web := newWeb(t, namespace, "web", map[string]any{"job": "one"})
	job := &batchv1.Job{ObjectMeta: meta(namespace, "web")}
	eventually(t, "the Job", func() string {
		if !get(t, job) {
			return "none"
		}
		return says(t, web, "Deployed", metav1.ConditionTrue, "revision 1")
	})
	change(t, web, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"job": "two"} })
	eventually(t, "the Job made anew", func() string {
		if !get(t, job) || job.Spec.Template.Spec.Containers[0].Command[0] != "two" {
			return fmt.Sprint(job.Spec.Template.Spec.Containers, job.DeletionTimestamp)
		}
		return ""
	})
	change(t, web, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{} })
	eventually(t, "the Job pruned", func() string {
		if get(t, job) && job.DeletionTimestamp == nil {
			return "it is there"
		}
		return ""
	})
}
