// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
)

// roll is one change that restarted every instance, under load.
type roll struct {
	Seconds float64                `json:"seconds"` // from the patch to Ready
	Load    application.LoadResult `json:"load"`
}

// rolls changes the memory of every instance again and again.
func (s *subject) rolls(ctx context.Context, f *figures) error {
	if err := s.fill(ctx, f); err != nil {
		return err
	}
	for i := range s.rollouts {
		r, err := s.roll(ctx, func(spec *v1alpha1.RedisClusterSpec) {
			memory := resource.MustParse([]string{"768Mi", "800Mi"}[i%2])
			spec.Pod = []v1alpha1.PodTemplate{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: memory}}}}
		})
		if err != nil {
			return err
		}
		progress("rollout %d: %.1f s; %d commands, %d failed, %d lost, longest command %.0f ms, longest stall of a sixteenth %.0f ms (the client's own %.0f ms)",
			i+1, r.Seconds, r.Load.Writes+r.Load.Reads, r.Load.Failed, r.Load.Lost, r.Load.LongestStallMS, slices.Max(r.Load.GapsMS),
			r.Load.ClientStallMS)
		f.Rolls = append(f.Rolls, r)
	}
	return nil
}

// roll measures one change under load.
func (s *subject) roll(ctx context.Context, mutate func(*v1alpha1.RedisClusterSpec)) (roll, error) {
	running, err := s.app.Begin(ctx, "run", "--addr", s.app.Address(), "--writes", strconv.Itoa(s.writes), "--reads", strconv.Itoa(s.reads))
	if err != nil {
		return roll{}, err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // its connections are made by then
		return roll{}, err
	}
	started := time.Now()
	if err := s.change(ctx, s.cluster, mutate); err != nil {
		return roll{}, err
	}
	at, err := s.until(ctx, s.cluster, "rolled out", func(c *v1alpha1.RedisCluster) bool {
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == s.cluster.Generation &&
			c.Status.Phase == v1alpha1.PhaseRunning
	})
	if err != nil {
		return roll{}, err
	}
	r := roll{Seconds: at.Sub(started).Seconds()}
	return r, running.End(ctx, &r.Load)
}

// rollLines are the report's lines about rollouts.
func (f figures) rollLines() string {
	if len(f.Rolls) == 0 {
		return ""
	}
	var seconds, commands, stalls, own []float64
	var failed, lost, done int64
	for _, r := range f.Rolls {
		seconds, own = append(seconds, r.Seconds), append(own, r.Load.ClientStallMS)
		commands, stalls = append(commands, r.Load.LongestStallMS), append(stalls, slices.Max(r.Load.GapsMS))
		failed, lost, done = failed+r.Load.Failed, lost+r.Load.Lost, done+r.Load.Writes+r.Load.Reads
	}
	return fmt.Sprintf("| %s %s | %d | %s | %s | %s | %s | %d | %d | %d |\n", name(f.Engine), f.Engine.Version, len(f.Rolls),
		quantiles(seconds, "%.1f s"), quantiles(stalls, "%.0f ms"), quantiles(commands, "%.0f ms"), quantiles(own, "%.0f ms"), done, failed, lost)
}
