// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// cached has one object a namespace.
type cached []string

func (cached) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nobody gets")
}

func (c cached) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list := into.(*corev1.ConfigMapList) //nolint:forcetypeassert // of the test
	for _, namespace := range c {
		object := corev1.ConfigMap{}
		object.Namespace, object.Name = namespace, "cache"
		list.Items = append(list.Items, object)
	}
	return nil
}

func request(namespace string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "cache"}}
}

func TestWithoutShardsNothingChanges(t *testing.T) {
	guard := NewGate(0).Guard(Kind{})
	passed := false
	next := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		passed = true
		return ctrl.Result{RequeueAfter: time.Second}, nil
	})
	if result, err := guard.Reconciler(next).Reconcile(t.Context(), request("shop")); !passed || err != nil || result.RequeueAfter == 0 {
		t.Errorf("passed: %t, %v, %v", passed, result, err)
	}
	leads := make(chan struct{})
	if guard.NeedLeaderElection() != nil || guard.Elected(leads) != (<-chan struct{})(leads) || guard.Selected(nil) != nil {
		t.Error("the options of the controller, or what is told, differ")
	}
	if err := guard.Source().Start(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if !NewGate(0).Holds("shop") {
		t.Error("something is not held")
	}
}

// A shard that is gained has all its objects reconciled; before, and after it was let go, none of them is, and nothing is remembered.
func TestTheGuardOfAController(t *testing.T) {
	const shards = 4
	all := cached{"shop", "bank", "team-1", "team-2", "team-3", "team-4", "team-5"}
	shard := Of("shop", shards)
	var theirs []string
	for _, namespace := range all {
		if Of(namespace, shards) == shard {
			theirs = append(theirs, namespace)
		}
	}
	if len(theirs) == len(all) {
		t.Fatal("all namespaces are in one shard")
	}
	var reconciled, dropped, forgotten []string
	gate := NewGate(shards)
	guard := gate.Guard(Kind{List: &corev1.ConfigMapList{}, Cache: all,
		Forget: func(of func(string) bool) {
			for _, namespace := range all {
				if of(namespace) {
					forgotten = append(forgotten, namespace)
				}
			}
		},
		Dropped: func(name types.NamespacedName) { dropped = append(dropped, name.Namespace) }})
	failed := errors.New("failed")
	reconciler := guard.Reconciler(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		reconciled = append(reconciled, request.Namespace)
		if request.Name == "slow" {
			<-ctx.Done()
			return ctrl.Result{}, failed
		}
		return ctrl.Result{}, ctx.Err()
	}))
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	if err := guard.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	pass := func() {
		t.Helper()
		next, _ := queue.Get()
		if _, err := reconciler.Reconcile(t.Context(), next); err != nil {
			t.Error(err)
		}
		queue.Done(next)
	}
	pass()
	if !gate.started(t.Context()) {
		t.Error("the controller has not started")
	}
	_, err := reconciler.Reconcile(t.Context(), request("shop"))
	if err != nil || len(reconciled) > 0 || !slices.Equal(dropped, []string{"shop"}) {
		t.Errorf("before: reconciled %v, dropped %v, %v", reconciled, dropped, err)
	}

	gate.gain(shard)
	for range theirs {
		pass()
	}
	slices.Sort(theirs)
	slices.Sort(reconciled)
	if diff := cmp.Diff(theirs, reconciled); diff != "" {
		t.Errorf("reconciled (-want +got):\n%s", diff)
	}
	object := &corev1.ConfigMap{}
	object.Namespace = "shop"
	if selected := guard.Selected(nil); !selected(object) {
		t.Error("what is held is not told")
	}

	ended := make(chan error)
	go func() {
		_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "slow"}})
		ended <- err
	}()
	for gate.running(shard) == 0 {
		time.Sleep(time.Millisecond)
	}
	gate.shut(shard, time.Millisecond)()
	if err := <-ended; err != nil {
		t.Errorf("what another replica goes on with is tried again: %v", err)
	}
	slices.Sort(forgotten)
	if diff := cmp.Diff(theirs, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	if gate.Holds("shop") {
		t.Error("it is held")
	}
}

func (g *Gate) running(shard int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open[shard].running
}
