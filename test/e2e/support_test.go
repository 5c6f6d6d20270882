// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/application"
)

// patience bounds every wait. It is long because it only matters when a test fails.
const patience = 4 * time.Minute

// newNamespace makes a namespace of the test's own in which the operator may keep
// Secrets, under the restricted pod security standard.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	create(t, ns)
	t.Cleanup(func() {
		if t.Failed() {
			report(t, ns.Name)
		}
		_ = kube.Delete(context.Background(), ns)
	})
	enable(t, ns.Name)
	return ns.Name
}

// enable lets the operator keep Secrets in a namespace.
func enable(t *testing.T, namespace string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "middleware-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-namespace"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: "middleware-operator"}},
	}
	if err := kube.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("enable namespace %s: %v", namespace, err)
	}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := kube.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// get reads an object again.
func get(t *testing.T, object client.Object) error {
	t.Helper()
	return kube.Get(t.Context(), client.ObjectKeyFromObject(object), object)
}

// sample reads a manifest of config/samples into an object.
func sample(t *testing.T, file string, into client.Object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// eventually repeats a check until it holds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	start := time.Now()
	var err error
	for time.Since(start) < patience {
		if err = check(); err == nil {
			t.Logf("%s: after %.1f s", what, time.Since(start).Seconds())
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("%s: not within %s: %v", what, patience, err)
}

// ready waits for the condition Ready of an object, seen for its present generation.
func ready(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s is Ready", object, object.GetName()), func() error { return isReady(t, object) })
}

func isReady(t *testing.T, object client.Object) error {
	if err := get(t, object); err != nil {
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
		return fmt.Errorf("ready is %v for generation %d of %d: %v: %v", condition["status"], seen, object.GetGeneration(), condition["reason"], condition["message"])
	}
	return fmt.Errorf("no condition Ready yet")
}

// execute runs a program in a container, as kubectl exec does.
func execute(ctx context.Context, namespace, pod, container string, command ...string) (string, error) {
	return pods().Execute(ctx, nil, namespace, pod, container, command...)
}

func pods() application.Kubernetes {
	return application.Kubernetes{Config: restConfig, Client: clientset}
}

// report logs what helps to understand a failure.
func report(t *testing.T, namespace string) {
	ctx := context.Background()
	var pods corev1.PodList
	_ = kube.List(ctx, &pods, client.InNamespace(namespace))
	for i := range pods.Items {
		pod := &pods.Items[i]
		t.Logf("pod %s on %s: %s %s %v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.PodIP, pod.Status.ContainerStatuses)
		if text, err := logs(ctx, pod.Namespace, pod.Name, 15); err == nil {
			t.Logf("log of %s:\n%s", pod.Name, text)
		}
	}
	events, err := clientset.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, e := range events.Items {
		t.Logf("event %s %s %s/%s: %s", e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
	}
	operators, _ := clientset.CoreV1().Pods(operatorNamespace).List(ctx, metav1.ListOptions{})
	for _, pod := range operators.Items {
		if text, err := logs(ctx, pod.Namespace, pod.Name, 40); err == nil {
			t.Logf("log of %s:\n%s", pod.Name, text)
		}
	}
}

func logs(ctx context.Context, namespace, pod string, lines int64) (string, error) {
	text, err := clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
	return string(text), err
}
