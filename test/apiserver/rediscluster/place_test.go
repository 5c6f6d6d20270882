// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// A pod that waits is bound to its node beside what its author asks of nodes, in every alternative, and its other gates stay. One of
// another UID is left alone.
func TestPlace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	zone := func(names ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: names}}}
	}
	here := []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node1"}}}
	in := func(term corev1.NodeSelectorTerm) corev1.NodeSelectorTerm { term.MatchFields = here; return term }
	for name, tt := range map[string]struct {
		asked   []corev1.NodeSelectorTerm
		node    string
		another bool
		want    []corev1.NodeSelectorTerm
		gates   []corev1.PodSchedulingGate
	}{
		"no-wish": {nil, "node1", false, []corev1.NodeSelectorTerm{in(corev1.NodeSelectorTerm{})},
			[]corev1.PodSchedulingGate{{Name: "example.com/quota"}}},
		"wishes": {[]corev1.NodeSelectorTerm{zone("a"), zone("b")}, "node1", false, []corev1.NodeSelectorTerm{in(zone("a")), in(zone("b"))},
			[]corev1.PodSchedulingGate{{Name: "example.com/quota"}}},
		"any-node": {[]corev1.NodeSelectorTerm{zone("a")}, "", false, []corev1.NodeSelectorTerm{zone("a")},
			[]corev1.PodSchedulingGate{{Name: "example.com/quota"}}},
		"successor": {nil, "node1", true, nil, []corev1.PodSchedulingGate{{Name: v1alpha1.SchedulingGateNode}, {Name: "example.com/quota"}}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: v1alpha1.SchedulingGateNode}, {Name: "example.com/quota"}},
			Containers:      []corev1.Container{{Name: "redis", Image: "redis"}},
		}}
		if tt.asked != nil {
			pod.Spec.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tt.asked}}}
		}
		create(t, pod)
		seen := string(pod.UID)
		if tt.another {
			seen = "another"
		}
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"}}
		if _, err := (&act.Actor{Client: api}).Do(t.Context(), act.Subject{Cluster: cluster},
			plan.Place{Pods: []plan.Placement{{Pod: name, UID: seen, Node: tt.node}}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		get(t, pod)
		var terms []corev1.NodeSelectorTerm
		if a := pod.Spec.Affinity; a != nil {
			terms = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		}
		if diff := cmp.Diff(tt.want, terms) + cmp.Diff(tt.gates, pod.Spec.SchedulingGates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
