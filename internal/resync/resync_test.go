// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const period = 10 * time.Minute

// objects is a cache of objects by name, each with its name for a UID.
type objects map[string]bool

func (o objects) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if !o[key.Name] {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	object.SetName(key.Name)
	object.SetUID(types.UID(key.Name))
	return nil
}

func (o objects) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody lists")
}

func TestEvery(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		name       string
		result     ctrl.Result
		err        error
		want       bool // it is looked at within the period
		unselected bool
	}{
		"nothing left to do":        {name: "there", want: true},
		"to be looked at soon":      {name: "there", result: ctrl.Result{RequeueAfter: time.Nanosecond}, want: true},
		"to be looked at later":     {name: "there", result: ctrl.Result{RequeueAfter: time.Hour}, want: true},
		"gone":                      {name: "gone"},
		"not selected":              {name: "there", unselected: true},
		"failed, so tried again":    {name: "there", err: failed},
		"gone, and asked for again": {name: "gone", result: ctrl.Result{RequeueAfter: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			next := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return tc.result, tc.err })
			every := Every(period, Objects{Cache: objects{"there": true}, Kind: &corev1.ConfigMap{},
				Selected: func(client.Object) bool { return !tc.unselected }}, next, time.Now)
			got, err := every.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: tc.name}})
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if within := got.RequeueAfter > 0 && got.RequeueAfter <= period; within != tc.want {
				t.Errorf("looked at again after %v; want within the period: %v", got.RequeueAfter, tc.want)
			}
			if !tc.want && got.RequeueAfter != tc.result.RequeueAfter {
				t.Errorf("looked at again after %v, which nobody asked for", got.RequeueAfter)
			}
			if soon := tc.result.RequeueAfter == time.Nanosecond; soon && (got.RequeueAfter != time.Nanosecond || got.Priority != nil) {
				t.Errorf("what the reconciliation asked for is not kept: %+v", got)
			}
		})
	}
}

func TestNoPeriodChangesNothing(t *testing.T) {
	next := reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })
	got, err := Every(0, Objects{Cache: objects{"there": true}, Kind: &corev1.ConfigMap{}}, next, time.Now).
		Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "there"}})
	if err != nil || got != (ctrl.Result{}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if Most(time.Hour, 0) != time.Hour || Most(time.Hour, time.Minute) != time.Minute || Most(time.Second, time.Minute) != time.Second {
		t.Error("the longest pause between two attempts is not the shorter of the two")
	}
}

// An object that is looked at when its time has come is looked at a period later, however long that took; and thousands of
// objects that were listed at one moment are spread over the period.
func TestMomentsAreAPeriodApartAndSpread(t *testing.T) {
	const many, parts = 5000, 10
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var in [parts]int
	for i := range many {
		uid := types.UID(fmt.Sprintf("5d6a1c1e-0000-4000-8000-%012d", i))
		first := untilNext(uid, period, start)
		if first <= 0 || first > period {
			t.Fatalf("%s: first after %v", uid, first)
		}
		in[(first-1)*parts/period]++
		for _, late := range []time.Duration{0, time.Second} {
			if second := untilNext(uid, period, start.Add(first+late)); second != period-late {
				t.Fatalf("%s: again after %v, %v late", uid, second, late)
			}
		}
	}
	for part, n := range in {
		if n < many/parts/2 || n > many/parts*2 {
			t.Errorf("%d of %d objects fall into part %d of %d", n, many, part+1, parts)
		}
	}
}
