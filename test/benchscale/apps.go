// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"middleware.hc.cn/operator/internal/conditions"
)

const (
	// appsPerNamespace is how many Apps a namespace has.
	appsPerNamespace = 250
	// makers is how many Apps are created at once.
	makers = 4
)

var app = schema.GroupVersionKind{Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1", Kind: "App"}

// makeApps makes all Apps, of a Deployment and a Service each, and waits until they are Ready. Their Deployments are available at once.
func (r *run) makeApps(ctx context.Context) error {
	if r.apps == 0 {
		return nil
	}
	progress("%d Apps", r.apps)
	began := time.Now()
	for i := 0; i < r.apps; i += appsPerNamespace {
		if err := r.newNamespace(ctx, appKey(i).Namespace); err != nil {
			return err
		}
	}
	failed := make([]error, makers)
	var all sync.WaitGroup
	for maker := range makers {
		all.Go(func() {
			for i := maker; i < r.apps && failed[maker] == nil; i += makers {
				failed[maker] = r.client.Create(ctx, newApp(appKey(i)))
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := r.await(ctx, settleLimit, func() bool { return len(r.settledApps) == r.apps }); err != nil {
		return err
	}
	r.settled = time.Since(began).Seconds()
	progress("all Ready after %.0f s", r.settled)
	return nil
}

func appKey(i int) client.ObjectKey {
	return client.ObjectKey{Namespace: fmt.Sprintf("apps-%d", i/appsPerNamespace), Name: fmt.Sprintf("web-%d", i)}
}

func newApp(key client.ObjectKey) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "registry.example/web:0"}}}
	object.SetGroupVersionKind(app)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return object
}

// noteApp keeps the generation in which an App is Ready.
func (r *run) noteApp(object any) {
	one, is := object.(*unstructured.Unstructured)
	if !is {
		return
	}
	observed, _, _ := unstructured.NestedInt64(one.Object, "status", "observedGeneration")
	if observed != one.GetGeneration() || !meta.IsStatusConditionTrue(conditions.Read(one), "Ready") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settledApps[client.ObjectKeyFromObject(one)] = observed
	close(r.changed)
	r.changed = make(chan struct{})
}

// changeApps changes the image of Apps of other namespaces than the first, one after the other.
func (r *run) changeApps(ctx context.Context) (seconds []float64, err error) {
	if r.apps <= appsPerNamespace {
		return nil, nil
	}
	for i := range r.losses {
		which := appKey(appsPerNamespace + i*(r.apps-appsPerNamespace)/r.losses)
		began := time.Now()
		generation, err := r.changeApp(ctx, which)
		if err != nil {
			return seconds, err
		}
		if err := r.await(ctx, time.Minute, func() bool { return r.settledApps[which] >= generation }); err != nil {
			return seconds, fmt.Errorf("the change of %s: %w", which, err)
		}
		seconds = append(seconds, time.Since(began).Seconds())
	}
	return seconds, nil
}

// changeAppOfTheFirst changes an App of the first namespace, if there are any.
func (r *run) changeAppOfTheFirst(ctx context.Context, i int) error {
	if r.apps == 0 {
		return nil
	}
	_, err := r.changeApp(ctx, appKey(i%min(appsPerNamespace, r.apps)))
	return err
}

// changeApp returns the generation of the change.
func (r *run) changeApp(ctx context.Context, which client.ObjectKey) (int64, error) {
	object := newApp(which)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"image":"registry.example/web:%d"}}`, r.images.Add(1)))
	err := r.client.Patch(ctx, object, patch)
	return object.GetGeneration(), err
}

// deployments says of every Deployment that its pods run.
type deployments struct{ client.Client }

func (d deployments) add(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(d)
}

func (d deployments) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var is appsv1.Deployment
	if err := d.Get(ctx, request.NamespacedName, &is); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if is.Status.ObservedGeneration == is.Generation {
		return ctrl.Result{}, nil
	}
	n := ptr.Deref(is.Spec.Replicas, 1)
	is.Status = appsv1.DeploymentStatus{
		ObservedGeneration: is.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}}
	return ctrl.Result{}, d.Status().Update(ctx, &is)
}
