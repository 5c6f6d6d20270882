// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/application"
)

// Timeout bounds every wait. It is long because it only matters when a test fails, and a machine may be slow.
const Timeout = 10 * time.Minute

// NewNamespace makes a namespace of the test's own in which the operator may keep
// Secrets, under the restricted pod security standard.
func NewNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Create(t, ns)
	t.Cleanup(func() {
		for _, alarm := range watched.alarmsOf(ns.Name, false) {
			t.Error(alarm)
		}
		if t.Failed() {
			Report(t, ns.Name)
		}
		_ = Kube.Delete(context.Background(), ns)
	})
	Enable(t, ns.Name)
	return ns.Name
}

// Enable lets the operator keep Secrets in a namespace.
func Enable(t *testing.T, namespace string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "middleware-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-namespace"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: OperatorNamespace, Name: "middleware-operator"}},
	}
	if err := Kube.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("enable namespace %s: %v", namespace, err)
	}
}

// Create makes an object.
func Create(t *testing.T, object client.Object) {
	t.Helper()
	if err := admitted(func() error { return Kube.Create(t.Context(), object) }); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// admitted repeats a request that could not be decided: the webhook is the operator's, which an earlier test may have sent to
// another node, and a namespace gets its service account a moment after it is made.
func admitted(request func() error) error {
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Jitter: 0.1, Steps: 120}
	return retry.OnError(backoff, func(err error) bool {
		return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook") ||
			apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
	}, request)
}

// Get reads an object again.
func Get(t *testing.T, object client.Object) error {
	t.Helper()
	return Kube.Get(t.Context(), client.ObjectKeyFromObject(object), object)
}

// Sample reads a manifest of config/samples into an object.
func Sample(t *testing.T, file string, into client.Object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", file)) //nolint:gosec // a sample of this checkout
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// Eventually repeats a check until it holds.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	EventuallyIn(t.Context(), t, what, check)
}

// EventuallyIn is Eventually with a context of its own, for what is done when the test has ended.
func EventuallyIn(ctx context.Context, t *testing.T, what string, check func() error) {
	t.Helper()
	start := time.Now()
	var err error
	for time.Since(start) < Timeout {
		if err = check(); err == nil {
			t.Logf("%s: after %.1f s", what, time.Since(start).Seconds())
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("%s: not within %s: %v", what, Timeout, err)
}

// Ready waits for the condition Ready of an object, seen for its present generation.
func Ready(t *testing.T, object client.Object) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %s is Ready", object, object.GetName()), func() error { return IsReady(t, object) })
}

func IsReady(t *testing.T, object client.Object) error {
	if err := Get(t, object); err != nil {
		return err
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	list, _, err := unstructured.NestedSlice(raw, "status", "conditions")
	if err != nil {
		return err
	}
	for _, item := range list {
		condition, _ := item.(map[string]any)
		if condition["type"] != "Ready" {
			continue
		}
		seen, _ := condition["observedGeneration"].(int64)
		if condition["status"] == "True" && seen == object.GetGeneration() {
			return nil
		}
		return fmt.Errorf("ready is %v for generation %d of %d: %v: %v", condition["status"], seen, object.GetGeneration(), condition["reason"],
			condition["message"])
	}
	return fmt.Errorf("no condition Ready yet")
}

// Execute runs a program in a container, as kubectl exec does.
func Execute(ctx context.Context, namespace, pod, container string, command ...string) (string, error) {
	return Pods().Execute(ctx, nil, namespace, pod, container, command...)
}

func Pods() application.Kubernetes {
	return application.Kubernetes{Config: Config, Client: Clientset}
}

// Report prints what helps to understand a failure. It is not part of the test's own log, so that this one, which says what
// failed, stands together and last.
func Report(t *testing.T, namespace string) {
	ctx := context.Background()
	var report strings.Builder
	tell := func(format string, args ...any) { fmt.Fprintf(&report, format+"\n", args...) }
	tell("=== %s: namespace %s", t.Name(), namespace)
	var pods corev1.PodList
	_ = Kube.List(ctx, &pods, client.InNamespace(namespace))
	for i := range pods.Items {
		pod := &pods.Items[i]
		tell("pod %s on %s: %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.PodIP)
		for _, c := range pod.Status.ContainerStatuses {
			tell("  container %s: ready %t, restarted %d times, %s, before %s", c.Name, c.Ready, c.RestartCount, &c.State, &c.LastTerminationState)
		}
		if text, err := Logs(ctx, pod.Namespace, pod.Name, 15); err == nil {
			tell("log of %s:\n%s", pod.Name, text)
		}
	}
	events, err := Clientset.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, e := range events.Items {
			tell("event %s %s %s/%s: %s", e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		}
	}
	operators, err := Clientset.CoreV1().Pods(OperatorNamespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, pod := range operators.Items {
			if text, err := Logs(ctx, pod.Namespace, pod.Name, 40); err == nil {
				tell("log of %s:\n%s", pod.Name, text)
			}
		}
	}
	fmt.Println(report.String())
}

func Logs(ctx context.Context, namespace, pod string, lines int64) (string, error) {
	text, err := Clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
	return string(text), err
}

// Change reads an object, changes it and writes it, again when someone else wrote in
// between.
func Change[T client.Object](t *testing.T, object T, mutate func(T)) {
	t.Helper()
	err := admitted(func() error {
		return retry.RetryOnConflict(wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 15}, func() error {
			if err := Get(t, object); err != nil {
				return err
			}
			mutate(object)
			return Kube.Update(t.Context(), object)
		})
	})
	if err != nil {
		t.Fatalf("change %T %s: %v", object, object.GetName(), err)
	}
}
