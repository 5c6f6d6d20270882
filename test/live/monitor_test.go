// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func redisCluster(slots int32, phase v1alpha1.Phase, retain v1alpha1.RetainPolicy) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cache", Generation: 2},
		Spec: v1alpha1.RedisClusterSpec{Storage: &v1alpha1.Storage{Retain: retain}},
		Status: v1alpha1.RedisClusterStatus{Slots: slots, Phase: phase, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}}}
}

func ofCluster[T client.Object](object T, name, shard string, stops bool) T {
	object.SetNamespace("n")
	object.SetName(name)
	object.SetLabels(map[string]string{v1alpha1.LabelCluster: "cache", v1alpha1.LabelShard: shard})
	if stops {
		object.SetDeletionTimestamp(&metav1.Time{})
	}
	return object
}

func redisPod(name, shard string, ready corev1.ConditionStatus, stops bool) *corev1.Pod {
	return ofCluster(&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}},
		name, shard, stops)
}

func TestMonitor(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	running := redisCluster(16384, v1alpha1.PhaseRunning, v1alpha1.Retain)
	both := []any{running, redisPod("cache-0-0", "0", yes, false), redisPod("cache-0-1", "0", yes, false)}
	for name, tt := range map[string]struct {
		seen               []any
		always, forPlanned []string
	}{
		"nothing": {seen: both},
		"Ready without a slot": {seen: []any{redisCluster(16383, v1alpha1.PhaseRunning, "")},
			always: []string{"RedisCluster cache is Ready with 16383 slots"}},
		"one stops": {seen: append(both, redisPod("cache-0-1", "0", yes, true), redisPod("cache-0-1", "0", no, true))},
		"another stops before it is back": {seen: append(both, redisPod("cache-0-1", "0", no, false), redisPod("cache-0-0", "0", yes, true)),
			forPlanned: []string{"pod cache-0-0 was stopped while cache-0-1 of its shard did not serve"}},
		"one of another shard": {seen: append(both, redisPod("cache-1-0", "1", no, false), redisPod("cache-0-0", "0", yes, true))},
		"a shard that leaves": {seen: append(both, redisCluster(16384, v1alpha1.PhaseScaling, ""), redisPod("cache-0-1", "0", yes, true),
			redisPod("cache-0-0", "0", yes, true))},
		"a claim that was to be kept": {seen: []any{running, ofCluster(&corev1.PersistentVolumeClaim{}, "data-cache-0-0", "0", true)},
			always: []string{"claim data-cache-0-0 of RedisCluster cache is deleted, and spec.storage.retain says Retain"}},
		"a claim that goes": {seen: []any{redisCluster(16384, v1alpha1.PhaseRunning, v1alpha1.RetainDelete),
			ofCluster(&corev1.PersistentVolumeClaim{}, "data-cache-0-0", "0", true)}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor()
			for _, object := range tt.seen {
				m.sees(object)
			}
			if diff := cmp.Diff(tt.always, m.alarmsOf("n", false)); diff != "" {
				t.Errorf("at any time (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append(tt.forPlanned, tt.always...), m.alarmsOf("n", true)); diff != "" {
				t.Errorf("while only planned work goes on (-want +got):\n%s", diff)
			}
		})
	}
}
