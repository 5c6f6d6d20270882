// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// What happened is told, what goes on is not, and losing data is a warning.
func TestReport(t *testing.T) {
	with := func(phase v1alpha1.Phase, reason string) *v1alpha1.RedisCluster {
		return &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Phase: phase, Reason: reason}}
	}
	pass := func(step plan.Step, err error) status.Reconciliation {
		return status.Reconciliation{Decision: plan.Decision{Step: step}, Err: err}
	}
	refused := func(message string) *v1alpha1.RedisCluster {
		c := with("Running", "")
		c.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionConfigured, Status: metav1.ConditionFalse, Reason: "SettingRefused", Message: message}}
		return c
	}
	stalled := func(reason string) *v1alpha1.RedisCluster {
		c := with("Failed", "")
		c.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: "empty"}}
		return c
	}
	archiving := func(reason string, is metav1.ConditionStatus) *v1alpha1.RedisCluster {
		c := with("Running", "")
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionArchiving, Status: is, Reason: reason, Message: reason + "!"}}
		return c
	}
	fenced := func(reason string, is metav1.ConditionStatus) *v1alpha1.RedisCluster {
		c := with("Running", "")
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFenced, Status: is, Reason: reason, Message: reason + "!"}}
		return c
	}
	limited := func(reason string, is metav1.ConditionStatus) *v1alpha1.RedisCluster {
		c := with("Running", "")
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAutoscalingLimited, Status: is, Reason: reason, Message: reason + "!"}}
		return c
	}
	window := func(name string) *v1alpha1.RedisCluster {
		c := with("Running", "")
		c.Status.Autoscale = &v1alpha1.AutoscaleStatus{Window: name, MinShards: 5, MaxShards: 9}
		return c
	}
	broken := errors.New("c-0-0 does not answer")
	for name, tt := range map[string]struct {
		before, after *v1alpha1.RedisCluster
		pass          status.Reconciliation
		acted         bool
		want          []string
	}{
		"nothing happened":   {with("Running", ""), with("Running", ""), pass(plan.None{}, nil), false, nil},
		"a wait for another": {with("Creating", "a"), with("Creating", "b"), pass(plan.Wait{}, nil), false, nil},
		"an instance is left alone": {fenced("FenceWaits", "False"), fenced("Fenced", "True"), pass(plan.None{}, nil), false,
			[]string{"Normal Fenced Fenced!"}},
		"the load asks for too much": {limited("WithinBounds", "False"), limited("TooManyShards", "True"), pass(plan.None{}, nil), false,
			[]string{"Warning AutoscaleTooManyShards TooManyShards!"}},
		"it asked for less before that was unknown": {limited("LoadUnknown", "Unknown"), limited("TooManyShards", "True"), pass(plan.None{}, nil),
			false, []string{"Warning AutoscaleTooManyShards TooManyShards!"}},
		"whether it does is not known": {limited("TooManyShards", "True"), limited("TooManyShardsBefore", "Unknown"), pass(plan.None{}, nil),
			false, nil},
		"it does as before": {limited("TooManyShardsBefore", "Unknown"), limited("TooManyShards", "True"), pass(plan.None{}, nil), false, nil},
		"a window opens": {with("Running", ""), window("peak"), pass(plan.None{}, nil), false,
			[]string{"Normal AutoscaleWindow window peak is open: from 5 to 9 shards"}},
		"another one": {window("day"), window("peak"), pass(plan.None{}, nil), false,
			[]string{"Normal AutoscaleWindow window peak is open: from 5 to 9 shards"}},
		"it is over":       {window("peak"), window(""), pass(plan.None{}, nil), false, []string{"Normal AutoscaleWindow window peak is over"}},
		"it is still open": {window("peak"), window("peak"), pass(plan.None{}, nil), false, nil},
		"it still is":      {fenced("Fenced", "True"), fenced("Fenced", "True"), pass(plan.None{}, nil), false, nil},
		"none is left alone yet": {with("Running", ""), fenced("FenceWaits", "False"), pass(plan.None{}, nil), false,
			[]string{"Warning FenceWaits FenceWaits!"}},
		"a step": {with("Creating", ""), with("Creating", ""), pass(plan.Meet{}, nil), true, []string{"Normal Meet "}},
		"it runs": {with("Creating", "x"), with("Running", ""), pass(plan.None{}, nil), false,
			[]string{"Normal Running the cluster is Running"}},
		"it fails": {with("Running", ""), with("Failed", "no slot"), pass(plan.Wait{}, nil), false,
			[]string{"Warning Failed no slot"}},
		"a forced promotion": {with("Failed", ""), with("Failed", ""), pass(plan.Promote{}, nil), true, []string{"Normal Promote "}},
		"a takeover": {with("Failed", ""), with("Failed", ""), pass(plan.Promote{Takeover: true}, nil), true,
			[]string{"Warning Promote "}},
		"a step that fails": {with("Running", ""), with("Running", broken.Error()), pass(plan.Meet{}, broken), true,
			[]string{"Warning StepFailed " + broken.Error()}},
		"it fails the same way": {with("Running", broken.Error()), with("Running", broken.Error()), pass(plan.Meet{}, broken), true, nil},
		"a setting is refused": {with("Running", ""), refused("hz: no"), pass(plan.None{}, nil), false,
			[]string{"Warning SettingRefused hz: no"}},
		"and is still refused": {refused("hz: no"), refused("hz: no"), pass(plan.None{}, nil), false, nil},
		"data is lost":         {with("Failed", ""), stalled("DataLost"), pass(plan.Stall{}, nil), false, []string{"Warning DataLost empty"}},
		"and is still":         {stalled("DataLost"), stalled("DataLost"), pass(plan.Stall{}, nil), false, nil},
		"data is given up":     {stalled("DataLost"), with("Failed", ""), pass(plan.GiveUp{}, nil), true, []string{"Warning GiveUp "}},
		"an archive is behind": {archiving("WithinObjective", "True"), archiving("Behind", "False"), pass(plan.None{}, nil), false,
			[]string{"Warning ArchiveBehind Behind!"}},
		"and is behind still": {archiving("Behind", "False"), archiving("Behind", "False"), pass(plan.None{}, nil), false, nil},
		"and is no more": {archiving("Behind", "False"), archiving("WithinObjective", "True"), pass(plan.None{}, nil), false,
			[]string{"Normal ArchiveWithinObjective WithinObjective!"}},
		"an archive is asked for": {with("Running", ""), archiving("NotBegun", "False"), pass(plan.None{}, nil), false, nil},
		"an archive is given up":  {archiving("Behind", "False"), with("Running", ""), pass(plan.None{}, nil), false, nil},
		"deleted: nothing extra":  {with("Running", ""), with("Deleting", ""), pass(plan.Wait{}, nil), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fake := events.NewFakeRecorder(10)
			reporter{recorder: fake}.report(tt.before, tt.after, Report{Reconciliation: tt.pass, Acted: tt.acted})
			close(fake.Events)
			var got []string
			for event := range fake.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
