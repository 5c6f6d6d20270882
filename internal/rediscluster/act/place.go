// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// place binds pods to their nodes and lets them start, in one write. As long as a pod has a
// scheduling gate, Kubernetes lets requirements be added to its node affinity, and nothing else.
func (a *Actor) place(ctx context.Context, s Subject, step plan.Place) error {
	return each(ctx, step.Pods, func(ctx context.Context, p plan.Placement) error {
		var pod corev1.Pod
		err := a.Client.Get(ctx, client.ObjectKey{Namespace: s.Cluster.Namespace, Name: p.Pod}, &pod)
		if apierrors.IsForbidden(err) {
			return mayNotPlace(err)
		}
		if err != nil || string(pod.UID) != p.UID {
			return client.IgnoreNotFound(err) // one of another UID is seen in the next reconciliation
		}
		before := pod.DeepCopy()
		if p.Node != "" {
			bind(&pod.Spec, p.Node)
		}
		pod.Spec.SchedulingGates =
			slices.DeleteFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == v1alpha1.SchedulingGateNode })
		err = a.Client.Patch(ctx, &pod, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsForbidden(err) {
			return mayNotPlace(err)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("let pod %s start: %w", p.Pod, err)
		}
		return nil
	})
}

func mayNotPlace(err error) error {
	return &StallError{
		Cause: "Forbidden", Message: fmt.Sprintf("%v: volumes of type hostPath need the role of config/components/host-path", err)}
}

// bind adds a node to each of the terms of a pod's node affinity, of which one must hold.
func bind(spec *corev1.PodSpec, node string) {
	here := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = append(terms[i].MatchFields, here)
	}
}
