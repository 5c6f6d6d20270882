// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standin has what a StatefulSet controller and kubelets do to pods, for tests and benchmarks whose Redis is package redistest's:
// where there is an API server and nothing else of a cluster.
package standin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// NewPod is the pod of a StatefulSet, which is on one of three nodes.
func NewPod(set *appsv1.StatefulSet, name string, ordinal int, revision string) *corev1.Pod {
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = set.Namespace, name
	pod.Labels[appsv1.StatefulSetPodNameLabel] = name
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", ordinal%3)
	for _, claim := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + name}}})
	}
	return pod
}

// Run shows a pod as one that runs at an address and is not ready.
func Run(pod *corev1.Pod, address string) {
	const host = "192.168.0.1"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, HostIP: host,
		HostIPs: []corev1.HostIP{{IP: host}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
}

// SetReady shows a pod that runs as ready if its readiness gates allow it, and reports whether that changed anything.
func SetReady(pod *corev1.Pod) bool {
	ready := corev1.ConditionTrue
	for _, gate := range pod.Spec.ReadinessGates {
		if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}) {
			ready = corev1.ConditionFalse
		}
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status != ready {
			c.Status = ready
			return true
		}
	}
	return false
}

// Hostname is what follows --cluster-announce-hostname in the command of a pod's container.
func Hostname(pod *corev1.Pod) string {
	command := pod.Spec.Containers[0].Command
	at := slices.Index(command, "--cluster-announce-hostname")
	return strings.ReplaceAll(command[at+1], "$(POD_NAME)", pod.Name)
}

// Users reads auth.conf from the Secret that the pod mounts; empty when it mounts none.
func Users(ctx context.Context, from client.Reader, pod *corev1.Pod) (string, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret == nil {
				continue
			}
			var secret corev1.Secret
			if err := from.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: source.Secret.Name}, &secret); err != nil {
				return "", err
			}
			return string(secret.Data[v1alpha1.SecretKeyConfig]), nil
		}
	}
	return "", nil
}

// Settings reads redis.conf from the ConfigMap that the pod mounts, as a server reads it.
func Settings(ctx context.Context, from client.Reader, pod *corev1.Pod) (map[string]string, error) {
	var config corev1.ConfigMap
	if err := from.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster] + "-config"}, &config); err !=
		nil {
		return nil, err
	}
	file := map[string]string{}
	for line := range strings.Lines(config.Data["redis.conf"]) {
		args, err := redisconf.SplitArguments(line)
		if err != nil {
			return nil, err
		}
		if len(args) > 1 && !strings.HasPrefix(args[0], "#") && args[0] != "include" {
			file[args[0]] = strings.Join(args[1:], " ")
		}
	}
	return file, nil
}
