// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// starting is the status of a Deployment that has been looked at and has no pod yet.
const starting = "{observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 0}"

func pod(name, app string, change func(*corev1.PodStatus)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "pod-x", Labels: map[string]string{"app": app}}}
	change(&p.Status)
	return p
}

func noImage(s *corev1.PodStatus) {
	s.Phase = corev1.PodPending
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
}

func begins(s *corev1.PodStatus) {
	s.Phase = corev1.PodPending
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
}

func doesNotAnswer(s *corev1.PodStatus) {
	s.Phase, s.PodIP = corev1.PodRunning, "10.0.0.1"
	s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

func answers(s *corev1.PodStatus) {
	s.Phase, s.PodIP = corev1.PodRunning, "10.0.0.2"
	s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func warning(name, text string, at time.Time) *corev1.Event {
	reason, message, _ := strings.Cut(text, ": ")
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.EventTypeWarning, Reason: reason,
		Message: message, InvolvedObject: corev1.ObjectReference{UID: "pod-x"}, LastTimestamp: metav1.NewTime(at)}
}

func of(e *corev1.Event, uid string) *corev1.Event {
	e.InvolvedObject.UID = types.UID(uid)
	return e
}

// The condition Ready names what keeps pods from running, which the children's own status does not tell.
func TestWhyPodsDoNotRun(t *testing.T) {
	later := func(e *corev1.Event) *corev1.Event { // as newer recorders write it
		e.EventTime, e.LastTimestamp = metav1.NewMicroTime(e.LastTimestamp.Time), metav1.Time{}
		return e
	}
	normal := func(e *corev1.Event) *corev1.Event { e.Type = corev1.EventTypeNormal; return e }
	for name, tt := range map[string]struct {
		there []client.Object
		want  string // after what is not ready
	}{
		"no image":                {[]client.Object{pod("p", "web", noImage)}, ": pod p: container c: ImagePullBackOff: no such image"},
		"another's pod":           {[]client.Object{pod("p", "other", noImage)}, ""},
		"a pod that begins":       {[]client.Object{pod("p", "web", begins), warning("e", "Slow: it is", now)}, ""},
		"one of two has no image": {[]client.Object{pod("a", "web", begins), pod("p", "web", noImage)}, ": pod p: container c: ImagePullBackOff"},
		"a probe": {[]client.Object{pod("a", "web", answers), pod("p", "web", doesNotAnswer), warning("e", "Unhealthy: no answer", now)},
			": pod p: Unhealthy: no answer"},
		"a probe, and no warning": {[]client.Object{pod("p", "web", doesNotAnswer)}, ""},
		"a pod that answers":      {[]client.Object{pod("p", "web", answers), warning("e", "Unhealthy: no answer", now)}, ""},
		"no pods": {[]client.Object{of(warning("e", "FailedCreate: exceeded quota", now), "made-1")},
			": FailedCreate: exceeded quota"},
		"a pod that begins, and a warning of before": {
			[]client.Object{pod("p", "web", begins), of(warning("e", "FailedCreate: exceeded quota", now), "made-1")}, ""},
		"one that answers, and one without an image": {[]client.Object{pod("a", "web", answers), pod("p", "web", noImage)},
			": pod p: container c: ImagePullBackOff: no such image"},
		"no pods, and nothing said": {nil, ""},
		"what was said last": {[]client.Object{of(warning("a", "First: a", now), "made-1"),
			of(warning("b", "Last: b", now.Add(time.Minute)), "made-1"), of(warning("c", "Second: c", now.Add(time.Second)), "made-1")},
			": Last: b"},
		"what was said last, by a newer recorder": {[]client.Object{of(warning("a", "First: a", now), "made-1"),
			later(of(warning("b", "Last: b", now.Add(time.Minute)), "made-1"))}, ": Last: b"},
		"what is no warning":    {[]client.Object{normal(of(warning("a", "Started: a", now), "made-1"))}, ""},
		"a warning of no words": {[]client.Object{of(warning("a", "Odd", now), "made-1")}, ": Odd:"},
	} {
		s := newShop(t, "", "{text: a}", chartOf(t, deploymentTemplate), Options{}, tt.there...)
		s.settle()
		s.sets(deployments, "web", starting)
		s.settle()
		s.clock = s.clock.Add(diagnoseMost)
		s.settle()
		if got, want := s.condition("Ready"), "False ChildNotReady: Deployment web 0 of 1 pods are available"+tt.want; got != want &&
			(tt.want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Pods are looked at only as long as a workload is not ready, at growing intervals, and not at once after it was applied.
func TestWhenPodsAreLookedAt(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, deploymentTemplate), Options{}, pod("p", "web", noImage))
	asked := func() bool {
		t.Helper()
		s.read = nil
		if _, err := s.reconcile(); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(s.read, "list PodList shop")
	}
	s.settle()
	s.clock = s.clock.Add(diagnoseFirst)
	if asked() {
		t.Error("its controller has not looked at it yet")
	}
	s.sets(deployments, "web", starting)
	s.change(deployments, "shop", "web", func(o *unstructured.Unstructured) { // which is put back, and so it was just applied
		o.Object["spec"].(map[string]any)["replicas"] = int64(7)
	})
	if asked() {
		t.Error("it was just applied")
	}
	wait := diagnoseFirst
	for i := range 10 {
		result, err := s.reconcile()
		if err != nil || result.RequeueAfter != wait {
			t.Fatalf("%d: %v, %v", i, result, err)
		}
		s.clock = s.clock.Add(wait - time.Second)
		if asked() {
			t.Errorf("%d: earlier than after %s", i, wait)
		}
		if i > 0 && !strings.Contains(s.condition("Ready"), "ImagePullBackOff") {
			t.Errorf("%d: what was found is forgotten: %s", i, s.condition("Ready"))
		}
		s.clock = s.clock.Add(time.Second)
		if !asked() {
			t.Errorf("%d: not after %s", i, wait)
		}
		wait = min(2*wait, diagnoseMost)
	}
	s.clock = s.clock.Add(diagnoseMost)
	s.change(deployments, "shop", "web", func(o *unstructured.Unstructured) {
		o.Object["spec"].(map[string]any)["replicas"] = int64(7)
	})
	if !asked() {
		t.Error("it is never looked at while somebody changes it again and again")
	}
	s.refusals["list PodList"] = errAway
	if err := s.Create(t.Context(), of(warning("e", "FailedCreate: exceeded quota", now), "made-1")); err != nil {
		t.Fatal(err)
	}
	s.clock = s.clock.Add(diagnoseMost)
	s.settle() // is no failure
	s.says("nobody answers", map[string]string{"Ready": "False ChildNotReady: Deployment web 0 of 1 pods are available",
		"ReleaseFailed": "False"})
	if got := s.condition("Ready"); strings.Contains(got, "quota") {
		t.Errorf("nobody answers: %s", got)
	}
	delete(s.refusals, "list PodList")
	s.sets(deployments, "web", "{observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}")
	if asked() || s.r.memory.Get("u").backoff != 0 || s.r.memory.Get("u").why != nil {
		t.Error("it is ready")
	}
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("it is ready: %v, %v", result, err)
	}
	s.sets(deployments, "web", starting)
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != diagnoseFirst {
		t.Errorf("it is not ready any more: %v, %v", result, err)
	}
}

// What is not ready, and was not applied just now, is looked at at once, if it runs pods.
func TestPodsAreLookedAtAtOnce(t *testing.T) {
	const claimTemplate = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: web}\n"
	for kind, tt := range map[schema.GroupVersionKind]struct {
		template, status string
		want             bool
	}{
		deployments: {deploymentTemplate, "{observedGeneration: 1}", true},
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"): {claimTemplate, "{phase: Pending}", false},
	} {
		s := newShop(t, "", "{text: a}", chartOf(t, tt.template), Options{}, pod("p", "web", noImage))
		s.settle()
		s.sets(kind, "web", tt.status)
		s.clock = s.clock.Add(diagnoseFirst)
		s.read = nil
		result, err := s.reconcile()
		if err != nil || (result.RequeueAfter > 0) != tt.want {
			t.Errorf("%s: %v, %v", kind.Kind, result, err)
		}
		if asked := len(s.read) > 0; asked != tt.want || strings.Contains(s.condition("Ready"), "ImagePullBackOff") != tt.want {
			t.Errorf("%s: asked %v, %s", kind.Kind, s.read, s.condition("Ready"))
		}
	}
}

// A workload whose selector selects nothing, all or nonsense has no pods to be looked at. One that the cache shows as it was before it was
// changed is not looked at, nor that of a resource that is being deleted.
func TestWorkloadsWithoutPodsOfTheirOwn(t *testing.T) {
	s := newShop(t, "finalizers: [example.com/theirs]", "{text: a}", chartOf(t, configTemplate), Options{}, pod("p", "web", noImage))
	for name, tt := range map[string]struct {
		selector string
		fails    bool
	}{"none": {"null", false}, "all": {"{}", false}, "nonsense": {"{matchExpressions: [{key: a, operator: Odd}]}", true},
		"text": {"{matchLabels: {app: 7}}", true}} {
		o := parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {selector: "+tt.selector+"}}")
		if why, err := s.r.whyNotReady(t.Context(), o); why != "" || (err != nil) != tt.fails || len(s.read) > 0 {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
	cr := s.web()
	child := parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, status: "+starting+"}")
	done := effect{step: Nothing{}, children: []Child{{Object: child, Behind: true}}}
	s.r.diagnose(t.Context(), cr, &done)
	if done.again != 0 || len(s.read) > 0 {
		t.Errorf("the cache shows it as it was: %+v", done)
	}
	done.children[0].Behind = false
	cr.SetDeletionTimestamp(timeOf(now))
	s.r.diagnose(t.Context(), cr, &done)
	if done.again != 0 || len(s.read) > 0 {
		t.Errorf("it is being deleted: %+v", done)
	}
}

func TestRunsPods(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
		{Group: "batch", Kind: "Job"}: true, {Group: "batch", Kind: "CronJob"}: false, {Kind: "Service"}: false,
		{Group: "example.com", Kind: "Deployment"}: false,
	} {
		if RunsPods(kind) != want {
			t.Errorf("%s: %t", kind, !want)
		}
	}
	for after, tt := range map[string]struct{ again, d, want time.Duration }{
		"no time yet": {0, time.Second, time.Second}, "later": {time.Second, time.Minute, time.Second},
		"sooner": {time.Minute, time.Second, time.Second},
	} {
		e := effect{again: tt.again}
		if e.lookAgain(tt.d); e.again != tt.want {
			t.Errorf("%s: %s", after, e.again)
		}
	}
}
