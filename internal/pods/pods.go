// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods says in a few words why a pod does not run. It is pure.
package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Starting is the answer about a pod that is on its way and has nothing to complain about.
const Starting = "starting"

// Why says, in the words of Kubernetes, what keeps a pod from running: no node that fits, a container that waits (image, crash
// loop) or that ended badly. It is Starting while its containers are made, and empty if nothing keeps it. When containers are
// named, the others do not count, save for init containers, and those only until one that was named runs (a sidecar may be an
// init container that goes on).
func Why(pod *corev1.Pod, containers ...string) string {
	return excerpt.Of(why(pod, containers), longest)
}

// longest is how much is told. What kubelets and schedulers say repeats what registries, runtimes and images said.
const longest = 500

func why(pod *corev1.Pod, containers []string) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "not scheduled: " + c.Message
		}
	}
	named := slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return len(containers) > 0 && !slices.Contains(containers, c.Name)
	})
	first := pod.Status.InitContainerStatuses
	if len(containers) > 0 && slices.ContainsFunc(named, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }) {
		first = nil
	}
	for _, c := range slices.Concat(first, named) {
		w := c.State.Waiting
		if w != nil && w.Reason == "ContainerCreating" {
			return Starting
		}
		if w != nil && w.Reason != "PodInitializing" {
			return strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message), ": ")
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with exit code %d (%s)", c.Name, t.ExitCode, t.Reason)
		}
	}
	if pod.Status.PodIP == "" {
		return Starting
	}
	return ""
}

// Unready names a container that runs and is not ready, as the kubelet says: a sidecar or, unless it is named, one beside the others. It is
// empty if there is none. Init containers that end do not count.
func Unready(pod *corev1.Pod, but string) string {
	unready := func(c corev1.ContainerStatus) bool { return c.State.Running != nil && !c.Ready && c.Name != but }
	for _, c := range pod.Status.InitContainerStatuses {
		if unready(c) && always(pod, c.Name) {
			return fmt.Sprintf("container %s is not ready", c.Name)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if unready(c) {
			return fmt.Sprintf("container %s is not ready", c.Name)
		}
	}
	return ""
}

// Initializing names the init container that another container waits for, which has never run; empty if none runs.
func Initializing(pod *corev1.Pod, waits string) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == waits &&
			(c.State.Waiting == nil || c.State.Waiting.Reason != "PodInitializing" || c.LastTerminationState.Terminated != nil) {
			return ""
		}
	}
	// Those before it have ended, or have started and go on.
	for _, c := range pod.Status.InitContainerStatuses {
		if c.State.Running != nil && (c.Started == nil || !*c.Started || !always(pod, c.Name)) {
			return c.Name
		}
	}
	return ""
}

// always reports whether an init container goes on beside the others.
func always(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// Ready reports whether the pod has the condition Ready.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
