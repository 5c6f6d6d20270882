// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// migration is the progress towards the goal; nil when no slots are to move.
func migration(before *v1alpha1.MigrationStatus, p Reconciliation, now time.Time) *v1alpha1.MigrationStatus {
	goal := p.Decision.Goal
	if goal == nil {
		return nil
	}
	m := &v1alpha1.MigrationStatus{FromShards: int32(goal.From), For: goal.For} //nolint:gosec // at most 500 shards
	for _, set := range goal.Shards {
		m.Goal = append(m.Goal, set.String())
		if !set.IsEmpty() {
			m.ToShards++
		}
	}
	for _, move := range p.Decision.Moves {
		m.SlotsLeft += int32(move.Slots.Len()) //nolint:gosec // at most 16384
	}
	m.SlotsTotal = m.SlotsLeft
	if before != nil && before.For == m.For {
		m.SlotsTotal, m.Method, m.KeysMoved, m.StartTime = max(before.SlotsTotal, m.SlotsLeft), before.Method, before.KeysMoved, before.StartTime
	}
	if step, moving := p.Decision.Step.(plan.MoveSlots); moving {
		m.Method = v1alpha1.MigrationClassic
		if step.Atomic {
			m.Method = v1alpha1.MigrationAtomic
		}
		if m.StartTime == nil {
			m.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
		}
	}
	m.KeysMoved += p.KeysMoved
	estimate(m, now)
	return m
}

// estimate says how fast slots have moved, and when the last will have at that rate.
func estimate(m *v1alpha1.MigrationStatus, now time.Time) {
	if m.StartTime == nil {
		return
	}
	seconds := now.Sub(m.StartTime.Time).Seconds()
	moved := float64(m.SlotsTotal - m.SlotsLeft)
	if seconds < 1 || moved == 0 {
		return
	}
	m.SlotsPerSecond = int32(moved / seconds)
	left := time.Duration(float64(m.SlotsLeft) / moved * seconds * float64(time.Second))
	m.EstimatedEndTime = &metav1.Time{Time: now.Add(left).Truncate(time.Second)}
}

// moves lists the slots that are to move.
func moves(planned []plan.Move) []v1alpha1.MoveStatus {
	var list []v1alpha1.MoveStatus
	for _, move := range planned {
		list = append(list, v1alpha1.MoveStatus{From: move.From.Pod, To: move.To.Pod,
			Count: int32(move.Slots.Len()), Slots: move.Slots.String()}) //nolint:gosec // at most 16384
	}
	return list
}

func scaling(d plan.Decision) bool {
	return d.Situation == plan.ScalingOut || d.Situation == plan.ScalingIn
}
