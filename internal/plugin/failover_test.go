// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
)

func keyOf(name string) client.ObjectKey { return read.Key("shop", name) }

// A request that can come to nothing, or takes the place of another one, is not written.
func TestWhoMayTakeOver(t *testing.T) {
	for name, tt := range map[string]struct {
		instance string
		pending  string
		spec     v1alpha1.RedisClusterSpec
		why      string
	}{
		"a replica":            {"cache-0-1", "", v1alpha1.RedisClusterSpec{}, ""},
		"asked for again":      {"cache-0-1", "cache-0-1", v1alpha1.RedisClusterSpec{}, ""},
		"another is asked for": {"cache-0-1", "cache-1-1", v1alpha1.RedisClusterSpec{}, "cache-1-1 is asked for already"},
		"the master":           {"cache-0-0", "", v1alpha1.RedisClusterSpec{}, "is the master of shard 0 already"},
		"nobody":               {"cache-7-0", "", v1alpha1.RedisClusterSpec{}, "is none of its instances"},
		"paused":               {"cache-0-1", "", v1alpha1.RedisClusterSpec{Pause: true}, "kubectl middleware resume cache -n shop"},
		"to hibernate":         {"cache-0-1", "", v1alpha1.RedisClusterSpec{Hibernate: true}, "spec.hibernate"},
	} {
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache",
			Annotations: map[string]string{v1alpha1.AnnotationSwitchover: tt.pending}}, Spec: tt.spec}
		cluster.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-0-0", Type: "master"}, {Name: "cache-0-1", Type: "slave"}}
		if err := mayTakeOver(cluster, tt.instance); (tt.why == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What became of a request is what the operator said last, and a warning alone is a refusal.
func TestWhatBecameOfARequest(t *testing.T) {
	since := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	event := func(kind, reason, message string, after time.Duration) corev1.Event {
		return corev1.Event{Type: kind, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(since.Add(after))}
	}
	done, refused := event("Normal", eventEnd, "is the master", 2*time.Second), event("Warning", eventEnd, "is refused", time.Second)
	for name, tt := range map[string]struct {
		events    []corev1.Event
		said, err string
	}{
		"carried out":       {[]corev1.Event{done, refused}, "is the master", ""},
		"refused":           {[]corev1.Event{event("Normal", "Switchover", "takes over", 3*time.Second), refused}, "", "is refused"},
		"nothing was said":  {nil, "", "no Event EndSwitchover says why"},
		"of an earlier one": {[]corev1.Event{event("Normal", eventEnd, "is the master", -time.Hour)}, "", "no Event EndSwitchover says why"},
	} {
		said, err := endOf(tt.events, since)
		if said != tt.said || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
}

// An instance that is the master is that, whether or not the request has been taken away, and who interrupts the wait is told what the
// operator does.
func TestTheWaitForASwitchover(t *testing.T) {
	server := one{cluster: v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache",
		Annotations: map[string]string{v1alpha1.AnnotationSwitchover: "cache-0-1"}}}}
	server.cluster.Status.Plan = &v1alpha1.PlanStatus{Step: "Wait", Reason: "a backup is taken"}
	server.cluster.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-0-1", Type: "slave"}}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	said, err := serving(server).awaitSwitchover(ctx, &server.cluster, "cache-0-1")
	if !errors.Is(err, context.Canceled) || said != "Wait: a backup is taken" {
		t.Errorf("%q, %v", said, err)
	}
	server.cluster.Status.Nodes[0].Type = "master"
	if said, err := serving(server).awaitSwitchover(t.Context(), &server.cluster, "cache-0-1"); err != nil ||
		said != "cache-0-1 is the master of shard 0" {
		t.Errorf("%q, %v", said, err)
	}
}

// Only a backup that is complete is restored, and an encrypted one with a key.
func TestRestorable(t *testing.T) {
	backup := func(phase string, recipients ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"cluster": "cache", "recipients": recipients},
			"status": map[string]any{"phase": phase, "reason": "its pod was evicted"}}}
	}
	for name, tt := range map[string]struct {
		backup   *unstructured.Unstructured
		identity string
		why      string
	}{
		"complete":                {backup("Completed"), "", ""},
		"encrypted":               {backup("Completed", "age1x"), "keys", ""},
		"failed":                  {backup("Failed"), "", "its pod was evicted"},
		"not begun":               {&unstructured.Unstructured{Object: map[string]any{}}, "", "only one that is Completed"},
		"encrypted without a key": {backup("Completed", "age1x"), "", "with --identity"},
		"a key for nothing":       {backup("Completed"), "keys", "leave that out"},
	} {
		of, err := restorable(tt.backup, tt.identity)
		if (tt.why == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.why) || err == nil && of != "cache" {
			t.Errorf("%s: %q, %v", name, of, err)
		}
	}
}
