// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhy(t *testing.T) {
	waits := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "web",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
	}
	ended := func(code int32, reason string) corev1.PodStatus {
		return corev1.PodStatus{PodIP: "10.0.0.1", InitContainerStatuses: []corev1.ContainerStatus{{Name: "init",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}}}
	}
	for _, tc := range []struct {
		status corev1.PodStatus
		want   string
	}{
		{corev1.PodStatus{PodIP: "10.0.0.1"}, ""},
		{corev1.PodStatus{}, Starting},
		{waits("ContainerCreating", ""), Starting},
		{waits("PodInitializing", ""), ""},
		{waits("CrashLoopBackOff", ""), "container web: CrashLoopBackOff"},
		{waits("ErrImagePull", "no such image"), "container web: ErrImagePull: no such image"},
		{ended(0, "Completed"), ""},
		{ended(137, "OOMKilled"), "container init ended with exit code 137 (OOMKilled)"},
		{corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes"}}},
			"not scheduled: 0/3 nodes"},
	} {
		if got := Why(&corev1.Pod{Status: tc.status}); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.status, got, tc.want)
		}
	}
}

// Containers that were not named do not count; init containers do until one that was named runs.
func TestWhyOfSomeContainers(t *testing.T) {
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	initial := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	for name, tt := range map[string]struct {
		sidecar, beside, web corev1.ContainerState
		want, ofAll          string
	}{
		"all run":                  {runs, runs, runs, "", ""},
		"one beside it does not":   {runs, waits, runs, "", "container beside: CrashLoopBackOff"},
		"nor a sidecar":            {waits, runs, runs, "", "container sidecar: CrashLoopBackOff"},
		"none does":                {runs, waits, waits, "container web: CrashLoopBackOff", "container beside: CrashLoopBackOff"},
		"it waits for a sidecar":   {waits, initial, initial, "container sidecar: CrashLoopBackOff", "container sidecar: CrashLoopBackOff"},
		"all are being made ready": {runs, initial, initial, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1",
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", State: tt.sidecar}},
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "beside", State: tt.beside}, {Name: "web", State: tt.web}}}}
			if got, all := Why(pod, "web"), Why(pod); got != tt.want || all != tt.ofAll {
				t.Errorf("of web: %q, want %q; of all: %q, want %q", got, tt.want, all, tt.ofAll)
			}
		})
	}
}

// What registries and images said is repeated on one line, of bounded length.
func TestWhyIsBrief(t *testing.T) {
	message := "\x1b[31m" + strings.Repeat("no such image\n", 1000)
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: message}}}}}}
	got := Why(pod)
	if len(got) > longest || strings.ContainsAny(got, "\x1b\n") ||
		!strings.HasPrefix(got, "container web: ErrImagePull: ?[31mno such image no such") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// Which container keeps a pod from being ready, and which one keeps another from running.
func TestUnreadyAndInitializing(t *testing.T) {
	yes, no, goesOn := true, false, corev1.ContainerRestartPolicyAlways
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	initial := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for name, tt := range map[string]struct {
		sidecar, first, web, beside corev1.ContainerStatus
		unready, initializing       string
	}{
		"all run": {corev1.ContainerStatus{State: runs, Started: &yes, Ready: true}, corev1.ContainerStatus{State: over},
			corev1.ContainerStatus{State: runs, Ready: true}, corev1.ContainerStatus{State: runs, Ready: true}, "", ""},
		"it is not ready itself": {corev1.ContainerStatus{State: runs, Started: &yes, Ready: true}, corev1.ContainerStatus{State: over},
			corev1.ContainerStatus{State: runs}, corev1.ContainerStatus{State: runs, Ready: true}, "", ""},
		"a sidecar is not": {corev1.ContainerStatus{State: runs, Started: &yes}, corev1.ContainerStatus{State: over},
			corev1.ContainerStatus{State: runs}, corev1.ContainerStatus{State: runs}, "container sidecar is not ready", ""},
		"nor what is beside it": {corev1.ContainerStatus{State: runs, Started: &yes, Ready: true}, corev1.ContainerStatus{State: over},
			corev1.ContainerStatus{State: runs}, corev1.ContainerStatus{State: runs}, "container beside is not ready", ""},
		"a sidecar has not started": {corev1.ContainerStatus{State: runs, Started: &no}, corev1.ContainerStatus{State: initial},
			corev1.ContainerStatus{State: initial}, corev1.ContainerStatus{State: initial}, "container sidecar is not ready", "sidecar"},
		"an init container does not end": {corev1.ContainerStatus{State: runs, Started: &yes, Ready: true},
			corev1.ContainerStatus{State: runs, Started: &yes}, corev1.ContainerStatus{State: initial},
			corev1.ContainerStatus{State: initial}, "", "first"},
		"it ran before": {corev1.ContainerStatus{State: runs, Started: &no}, corev1.ContainerStatus{State: over},
			corev1.ContainerStatus{State: initial, LastTerminationState: over}, corev1.ContainerStatus{State: runs, Ready: true},
			"container sidecar is not ready", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for status, called := range map[*corev1.ContainerStatus]string{
				&tt.sidecar: "sidecar", &tt.first: "first", &tt.web: "web", &tt.beside: "beside"} {
				status.Name = called
			}
			pod := &corev1.Pod{
				Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "sidecar", RestartPolicy: &goesOn}, {Name: "first"}}},
				Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{tt.sidecar, tt.first},
					ContainerStatuses: []corev1.ContainerStatus{tt.web, tt.beside}}}
			if got := Unready(pod, "web"); got != tt.unready {
				t.Errorf("not ready: %q, want %q", got, tt.unready)
			}
			if got := Initializing(pod, "web"); got != tt.initializing {
				t.Errorf("initializing: %q, want %q", got, tt.initializing)
			}
		})
	}
}
