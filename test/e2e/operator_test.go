// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/live"
)

// restartOperator gives the operator a flag more until the test ends.
func restartOperator(t *testing.T, flag string) {
	t.Helper()
	keepOperator(t)(flag)
}

// keepOperator has the operator run with the flags of now when the test ends, and returns what gives it one more.
func keepOperator(t *testing.T) (restart func(flag string)) {
	t.Helper()
	var args []string
	set := func(ctx context.Context, args []string) {
		t.Helper()
		start := time.Now()
		if err := changeOperator(ctx, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = args }); err != nil {
			t.Fatalf("the operator with %v: %v", args, err)
		}
		t.Logf("the operator runs with %v: after %.1f s", args, time.Since(start).Seconds())
	}
	var operator appsv1.Deployment
	if err := live.Kube.Get(t.Context(), theOperator, &operator); err != nil {
		t.Fatal(err)
	}
	args = operator.Spec.Template.Spec.Containers[0].Args
	t.Cleanup(func() { set(context.Background(), args) })
	return func(flag string) { set(t.Context(), append(slices.Clone(args), flag)) }
}

var theOperator = client.ObjectKey{Namespace: live.OperatorNamespace, Name: live.OperatorDeployment}

// changeOperator changes the operator's Deployment and waits until all of its pods are as it says.
func changeOperator(ctx context.Context, change func(*appsv1.Deployment)) error {
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var operator appsv1.Deployment
		if err := live.Kube.Get(ctx, theOperator, &operator); err != nil {
			return err
		}
		change(&operator)
		return live.Kube.Update(ctx, &operator)
	}); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, live.Timeout, true, func(ctx context.Context) (bool, error) {
		last = rolledOut(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// rolledOut checks that the operator's pods are all as its Deployment is now, and available.
func rolledOut(ctx context.Context) error {
	var operator appsv1.Deployment
	if err := live.Kube.Get(ctx, theOperator, &operator); err != nil {
		return err
	}
	s := operator.Status
	if s.ObservedGeneration != operator.Generation || s.UpdatedReplicas != *operator.Spec.Replicas ||
		s.Replicas != s.UpdatedReplicas || s.AvailableReplicas != s.Replicas {
		return fmt.Errorf("%d of %d operators are new and available, of %d", s.AvailableReplicas, *operator.Spec.Replicas, s.Replicas)
	}
	return nil
}

// startAgain has the operator start anew as it is.
func startAgain(ctx context.Context) error {
	return changeOperator(ctx, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", time.Now().Format(time.RFC3339))
	})
}
