// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/status"
	"middleware.hc.cn/operator/internal/shell"
)

// reporter tells what happened as Kubernetes Events. Nothing is said of a reconciliation in which
// nothing happened.
type reporter struct{ recorder events.EventRecorder }

func (r reporter) report(before, after *v1alpha1.RedisCluster, report Report) {
	step := report.Decision.Step
	_, moving := step.(plan.MoveSlots)
	if report.Acted && report.Err == nil && !moving {
		kind := corev1.EventTypeNormal
		if end, _ := step.(plan.EndSwitchover); end.Refused || losesData(step) {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, step.Name(), step.Name(), "%s", shell.Note(step.Why()))
	}
	if report.Err != nil && !outcome.NamespaceGoing(report.Err) && before.Status.Reason != after.Status.Reason {
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, "StepFailed", step.Name(), "%s", shell.Note(report.Err.Error()))
	}
	if moved := progress(before.Status.Migration, after.Status.Migration); moved != "" {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "MoveSlots", "MoveSlots", "%s", moved)
	}
	if refused := refusal(before, after); refused != "" {
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, "SettingRefused", "SetConfig", "%s", refused)
	}
	for _, told := range []struct{ condition, as, well string }{
		{v1alpha1.ConditionArchiving, "Archive", "the archive is far enough"},
		{v1alpha1.ConditionExternalAccess, "External", "clients outside reach the cluster"},
	} {
		c := change(told.condition, before, after)
		if c == nil {
			continue
		}
		kind := corev1.EventTypeNormal
		if c.Status != metav1.ConditionTrue && !slices.Contains(ordinary, c.Reason) {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, told.as+c.Reason, told.as, "%s", shell.Note(cmp.Or(c.Message, told.well)))
	}
	if found := change(v1alpha1.ConditionAnomalous, before, after); found != nil && found.Status == metav1.ConditionTrue {
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, found.Reason, "Observe", "%s", shell.Note(found.Message))
	}
	if limited := newlyLimited(before, after); limited != nil {
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, "Autoscale"+limited.Reason, "Autoscale", "%s", shell.Note(limited.Message))
	}
	if window := newWindow(before.Status.Autoscale, after.Status.Autoscale); window != "" {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "AutoscaleWindow", "Autoscale", "%s", window)
	}
	if fence := change(v1alpha1.ConditionFenced, before, after); fence != nil {
		kind := corev1.EventTypeNormal
		if fence.Reason != v1alpha1.ReasonFenced {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, fence.Reason, "Fence", "%s", shell.Note(fence.Message))
	}
	was, is := before.Status.Phase, after.Status.Phase
	if stall := newStall(before, after); stall != nil && report.Err == nil && (was == is || !worthTelling[is]) {
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, stall.Reason, "Reconcile", "%s", shell.Note(stall.Message))
	}
	if was != is && worthTelling[is] {
		kind := corev1.EventTypeNormal
		if is == v1alpha1.PhaseFailed {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, string(is), "Reconcile", "%s", cmp.Or(after.Status.Reason, "the cluster is "+string(is)))
	}
}

// refusal tells of settings that will not come into force, when others do than before.
func refusal(before, after *v1alpha1.RedisCluster) string {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionConfigured)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionConfigured)
	if is == nil || is.Reason != "SettingRefused" || was != nil && was.Message == is.Message {
		return ""
	}
	return is.Message
}

// ordinary are reasons for which a condition is not True although nothing is wrong.
var ordinary = []string{v1alpha1.ReasonArchiveNotBegun, v1alpha1.ReasonArchiveHibernated, v1alpha1.ReasonExternalAddressPending}

// change is a condition when it says something else than before; what it says first is told if it is no beginning.
func change(condition string, before, after *v1alpha1.RedisCluster) *metav1.Condition {
	was := meta.FindStatusCondition(before.Status.Conditions, condition)
	is := meta.FindStatusCondition(after.Status.Conditions, condition)
	if is == nil || was != nil && was.Reason == is.Reason || was == nil && slices.Contains(ordinary, is.Reason) {
		return nil
	}
	return is
}

// newlyLimited is the condition AutoscalingLimited when it has become True; a time in which the load was not known is no news.
func newlyLimited(before, after *v1alpha1.RedisCluster) *metav1.Condition {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAutoscalingLimited)
	is := change(v1alpha1.ConditionAutoscalingLimited, before, after)
	if is == nil || is.Status != metav1.ConditionTrue || was != nil && status.WasLimited(was.Reason) {
		return nil
	}
	return is
}

// newWindow tells of a window that has opened, or of one that is over when no other is open.
func newWindow(before, after *v1alpha1.AutoscaleStatus) string {
	was := ""
	if before != nil {
		was = before.Window
	}
	switch {
	case after == nil || after.Window == was:
		return ""
	case after.Window == "":
		return fmt.Sprintf("window %s is over", was)
	}
	return fmt.Sprintf("window %s is open: from %d to %d shards", after.Window, after.MinShards, after.MaxShards)
}

// newStall is the condition Stalled when it tells of another cause than before.
func newStall(before, after *v1alpha1.RedisCluster) *metav1.Condition {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionStalled)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionStalled)
	if is == nil || is.Status != metav1.ConditionTrue || is.Reason == "SettingRefused" || was != nil && was.Reason == is.Reason {
		return nil
	}
	return is
}

// progress tells of moving slots when another quarter of them has moved.
func progress(before, after *v1alpha1.MigrationStatus) string {
	switch {
	case before == nil:
		return ""
	case after == nil:
		return fmt.Sprintf("all %d slots have moved", before.SlotsTotal)
	case quarter(before) == quarter(after):
		return ""
	}
	return fmt.Sprintf("%d of %d slots have moved, %d keys, %d slots a second", after.SlotsTotal-after.SlotsLeft, after.SlotsTotal,
		after.KeysMoved, after.SlotsPerSecond)
}

func quarter(m *v1alpha1.MigrationStatus) int32 {
	return 4 * (m.SlotsTotal - m.SlotsLeft) / max(m.SlotsTotal, 1)
}

// worthTelling are the phases that say more than the steps that led to them.
var worthTelling = map[v1alpha1.Phase]bool{v1alpha1.PhaseRunning: true, v1alpha1.PhaseFailed: true, v1alpha1.PhasePaused: true,
	v1alpha1.PhaseHibernated: true}

// losesData reports whether a step gives up data, or may.
func losesData(step plan.Step) bool {
	promote, _ := step.(plan.Promote)
	over, took := step.(plan.RecordCutOver)
	end, _ := step.(plan.EndImport)
	return promote.Takeover || plan.Is[plan.GiveUp](step) || took && !over.Clone && (over.Missed == nil || *over.Missed > 0) || end.Missed > 0
}
