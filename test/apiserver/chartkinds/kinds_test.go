// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkinds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chartkind"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
)

// addShipped registers the kinds of watches.yaml, with their charts and their own functions.
func addShipped(t *testing.T, mgr ctrl.Manager, children cache.Cache, op operator) {
	t.Helper()
	entries, err := watches.Load(filepath.Join(root, "watches.yaml"), os.LookupEnv)
	check(t, err)
	for _, entry := range entries {
		loaded, err := chart.LoadDir(entry.Chart)
		check(t, err)
		kind := chartkind.For(entry.GroupVersionKind)
		check(t, release.Add(mgr, children, entry, loaded,
			release.Options{Validate: kind.Validate, StatusExtras: kind.StatusExtras, Awaits: kind.Awaits}))
		op.passes.Add(1)
	}
}

// sample reads a manifest of config/samples into a namespace.
func sample(t *testing.T, namespace, file string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "config", "samples", file))
	check(t, err)
	object := &unstructured.Unstructured{}
	check(t, yaml.Unmarshal(content, &object.Object))
	object.SetNamespace(namespace)
	return object
}

func TestShippedKinds(t *testing.T) {
	for _, file := range []string{
		"stable_v1beta1_crontab.yaml", "stable_v1beta1_crontab_full.yaml", "k8s_v1_foobar.yaml", "k8s_v1_foobar_full.yaml",
		"appcontroller_v1alpha1_app.yaml", "appcontroller_v1alpha1_app_full.yaml",
	} {
		t.Run(file, func(t *testing.T) {
			namespace := newNamespace(t)
			startKinds(t, admin, namespace, addShipped)
			resource := sample(t, namespace, file)
			check(t, api.Create(context.Background(), resource))
			eventually(t, "Ready", func() string {
				playControllers(t, namespace)
				return says(t, resource, "Ready", metav1.ConditionTrue, "all")
			})
			inventory, _, _ := unstructured.NestedSlice(resource.Object, "status", "inventory")
			if len(inventory) == 0 {
				t.Error("nothing was made")
			}
			if resource.GetKind() == "FooBar" {
				eventually(t, "Complete", func() string { return says(t, resource, "Complete", metav1.ConditionTrue, "") })
			}
		})
	}
}

// playControllers writes the status that the controllers of Deployments and Jobs would write.
func playControllers(t *testing.T, namespace string) {
	t.Helper()
	deployments, jobs := &appsv1.DeploymentList{}, &batchv1.JobList{}
	check(t, api.List(context.Background(), deployments, client.InNamespace(namespace)))
	check(t, api.List(context.Background(), jobs, client.InNamespace(namespace)))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.Status.ObservedGeneration == d.Generation {
			continue
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
			AvailableReplicas: n}
		logIf(t, api.Status().Update(context.Background(), d))
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if len(j.Status.Conditions) > 0 {
			continue
		}
		now := metav1.Now()
		j.Status = batchv1.JobStatus{Succeeded: 1, StartTime: &now, CompletionTime: &now, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}}
		logIf(t, api.Status().Update(context.Background(), j))
	}
}

// logIf tells of a write that lost against another; it is tried again.
func logIf(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Log(fmt.Errorf("play a controller: %w", err))
	}
}
