// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"

	"middleware.hc.cn/operator/test/live"
)

func newApp(t *testing.T, namespace, name string, change func(*appv1alpha1.AppSpec)) *appv1alpha1.App {
	t.Helper()
	app := &appv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appv1alpha1.AppSpec{Image: "docker.io/library/busybox:1.36", Command: []string{"httpd", "-f", "-p", "8080", "-h", "/tmp"}}}
	change(&app.Spec)
	live.Create(t, app)
	return app
}

// A person who looks at the resource sees what keeps its pods from running, without looking at the pods.
func TestReadySaysWhyPodsDoNotRun(t *testing.T) {
	t.Parallel()
	namespace := live.NewNamespace(t)
	for name, tt := range map[string]struct {
		change func(*appv1alpha1.AppSpec)
		says   []string
	}{
		"image": {func(s *appv1alpha1.AppSpec) { s.Image = "docker.io/library/no-such-image:0" },
			[]string{"Deployment image", "container", "Image"}},
		"crash": {func(s *appv1alpha1.AppSpec) { s.Command = []string{"sh", "-c", "exit 3"} },
			[]string{"Deployment crash", "container", "CrashLoopBackOff"}},
		"probe": {func(s *appv1alpha1.AppSpec) { s.Command = []string{"sleep", "3600"} },
			[]string{"Deployment probe", "pod probe-", "Readiness probe failed"}},
		"schedule": {func(s *appv1alpha1.AppSpec) { s.Resources = requests("1000", "1Mi") },
			[]string{"Deployment schedule", "not scheduled", "Insufficient cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			why(t, newApp(t, namespace, name, tt.change), tt.says...)
		})
	}
	t.Run("quota", func(t *testing.T) {
		parallel(t)
		limited := live.NewNamespace(t)
		live.Create(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: limited, Name: "none"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
		app := newApp(t, limited, "quota", func(*appv1alpha1.AppSpec) {})
		why(t, app, "Deployment quota", "exceeded quota")
		if c := meta.FindStatusCondition(app.Status.Conditions, "Ready"); c.Reason != "ChildFailed" {
			t.Errorf("the reason is %s", c.Reason)
		}
	})
}

func why(t *testing.T, app *appv1alpha1.App, says ...string) {
	t.Helper()
	live.Eventually(t, app.Name+" says why it is not Ready", func() error {
		if err := live.Get(t, app); err != nil {
			return err
		}
		c := meta.FindStatusCondition(app.Status.Conditions, "Ready")
		if c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("Ready is %+v", c)
		}
		for _, part := range says {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("%q is not in %q", part, c.Message)
			}
		}
		return nil
	})
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

// When autoscaling is switched on the chart no longer says how many pods there are. They must not become one on the way.
func TestPodsStayWhenAutoscalingIsSwitchedOn(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	app := newApp(t, namespace, "web", func(s *appv1alpha1.AppSpec) { s.Replicas, s.Resources = ptr.To[int32](3), requests("10m", "8Mi") })
	live.Ready(t, app)
	live.Change(t, app, func(a *appv1alpha1.App) {
		a.Spec.Autoscaling = &appv1alpha1.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: 4}
	})
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if got := ptr.Deref(onlyDeployment(t, namespace).Spec.Replicas, -1); got < 2 {
			t.Fatalf("the Deployment has %d replicas", got)
		}
	}
	live.Ready(t, app)
}
