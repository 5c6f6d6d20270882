// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

var (
	before = v1alpha1.Applied{Revision: "r1", Template: "t1", Generation: 3, Config: "c1"}
	after  = v1alpha1.Applied{Revision: "r2", Template: "t2", Generation: 3, Config: "c1"}
)

func TestHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		applied, target string
		change          func(*v1alpha1.RedisCluster, *Upgrade)
		want            bool
	}{
		"another operator":             {applied: before.String(), want: true},
		"it had its turn":              {applied: before.String(), target: "r2"},
		"it had one before":            {applied: before.String(), target: "r1", want: true},
		"this operator":                {applied: after.String()},
		"the spec has changed as well": {applied: before.String(), change: func(c *v1alpha1.RedisCluster, u *Upgrade) { u.Makes.Generation = 4 }},
		"the ConfigMap has, too":       {applied: before.String(), change: func(_ *v1alpha1.RedisCluster, u *Upgrade) { u.Makes.Config = "" }},
		"nothing is recorded":          {want: true},
		"nonsense is":                  {applied: "a.b", want: true},
		"nor what was last seen": {change: func(c *v1alpha1.RedisCluster, _ *Upgrade) {
			c.Status.ObservedGeneration = 2
		}},
		"nothing is, and a rollout is under way": {change: func(c *v1alpha1.RedisCluster, _ *Upgrade) {
			c.Status.Rollout = &v1alpha1.RolloutStatus{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, u := cluster(), &Upgrade{Makes: after}
			c.Status.ObservedGeneration = c.Generation
			if tt.applied != "" {
				c.Status.Upgrade = &v1alpha1.UpgradeStatus{Applied: tt.applied, Target: tt.target}
			}
			if tt.change != nil {
				tt.change(c, u)
			}
			if got := u.Held(c); got != tt.want {
				t.Errorf("held: %t, want %t", got, tt.want)
			}
			if (*Upgrade)(nil).Held(c) {
				t.Error("held without waves")
			}
		})
	}
}

func TestUpgraded(t *testing.T) {
	turn := new(metav1.NewTime(now.Add(-time.Hour)))
	waits, stopped, takes := plan.TakeTurn{}, plan.TakeTurn{Stopped: true}, plan.TakeTurn{Wave: 2}
	waits.Reason, stopped.Reason = "waits for its turn: 3 of 40", "waits for its turn: 1 fails"
	for name, tt := range map[string]struct {
		was       *v1alpha1.UpgradeStatus
		step      plan.Step
		situation plan.Situation
		err       error
		noWaves   bool
		unknown   bool
		want      *v1alpha1.UpgradeStatus
		status    metav1.ConditionStatus
		reason    string
	}{
		"a cluster that has formed": {step: plan.None{}, want: &v1alpha1.UpgradeStatus{Applied: after.String()}, status: "True",
			reason: "UpToDate"},
		"it waits": {was: &v1alpha1.UpgradeStatus{Applied: before.String()}, step: waits,
			want: &v1alpha1.UpgradeStatus{Applied: before.String()}, status: "False", reason: "WaitsForTurn"},
		"all stop": {was: &v1alpha1.UpgradeStatus{Applied: before.String()}, step: stopped,
			want: &v1alpha1.UpgradeStatus{Applied: before.String()}, status: "False", reason: "UpgradeStopped"},
		"of what nothing was recorded": {step: waits, want: &v1alpha1.UpgradeStatus{Applied: "..3.c1"}, status: "False",
			reason: "WaitsForTurn"},
		"its turn": {was: &v1alpha1.UpgradeStatus{Applied: before.String()}, step: takes, status: "False", reason: "Upgrading",
			want: &v1alpha1.UpgradeStatus{Applied: before.String(), Target: "r2", Wave: 2, TurnTime: at(now)}},
		"a turn that was not taken": {was: &v1alpha1.UpgradeStatus{Applied: before.String()}, step: takes, err: errors.New("no"),
			want: &v1alpha1.UpgradeStatus{Applied: before.String()}, status: "False", reason: "WaitsForTurn"},
		"it goes on": {was: &v1alpha1.UpgradeStatus{Applied: before.String(), Target: "r2", Wave: 2, TurnTime: turn}, step: plan.Restart{},
			situation: plan.RollingOut, status: "False", reason: "Upgrading",
			want: &v1alpha1.UpgradeStatus{Applied: before.String(), Target: "r2", Wave: 2, TurnTime: turn}},
		"it is done": {was: &v1alpha1.UpgradeStatus{Applied: before.String(), Target: "r2", Wave: 2, TurnTime: turn}, step: plan.None{},
			want: &v1alpha1.UpgradeStatus{Applied: after.String(), Target: "r2", Wave: 2, TurnTime: turn}, status: "True", reason: "UpToDate"},
		"a person does the rest": {was: &v1alpha1.UpgradeStatus{Applied: before.String(), Target: "r2", Wave: 2, TurnTime: turn},
			step: plan.RolloutWait{}, situation: plan.RollingOut, status: "True", reason: "UpToDate",
			want: &v1alpha1.UpgradeStatus{Applied: after.String(), Target: "r2", Wave: 2, TurnTime: turn}},
		"the turn of a former operator": {was: &v1alpha1.UpgradeStatus{Applied: before.String(), Target: "r1", Wave: 2, TurnTime: turn},
			step: plan.None{}, want: &v1alpha1.UpgradeStatus{Applied: after.String()}, status: "True", reason: "UpToDate"},
		"the template is not known": {was: &v1alpha1.UpgradeStatus{Applied: after.String()}, step: plan.None{}, unknown: true,
			want: &v1alpha1.UpgradeStatus{Applied: after.String()}, status: "True", reason: "UpToDate"},
		"paused": {was: &v1alpha1.UpgradeStatus{Applied: before.String()}, step: plan.Hold{Next: takes}, situation: plan.Paused,
			want: &v1alpha1.UpgradeStatus{Applied: before.String()}},
		"forming":       {step: plan.Wait{}, situation: plan.Forming},
		"without waves": {was: &v1alpha1.UpgradeStatus{Applied: before.String()}, step: plan.None{}, noWaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster()
			c.Status.Upgrade = tt.was
			p := Reconciliation{Snapshot: healthy(), Decision: plan.Decision{Step: tt.step, Situation: tt.situation, Healthy: true}, Err: tt.err,
				Upgrade: &Upgrade{Makes: after}}
			if tt.situation == "" {
				p.Decision.Situation = plan.Steady
			}
			if tt.unknown {
				p.Upgrade.Makes.Template = ""
			}
			if tt.noWaves {
				p.Upgrade = nil
				c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpgraded, Status: "True"}}
			}
			got := Compute(c, p, now)
			if diff := cmp.Diff(tt.want, got.Upgrade); diff != "" {
				t.Errorf("upgrade (-want +got):\n%s", diff)
			}
			is := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionUpgraded)
			if is == nil {
				is = &metav1.Condition{}
			}
			if is.Status != tt.status || is.Reason != tt.reason {
				t.Errorf("Upgraded is %s, %s, want %s, %s", is.Status, is.Reason, tt.status, tt.reason)
			}
			if _, turns := tt.step.(plan.TakeTurn); turns && tt.err == nil && (got.Phase != v1alpha1.PhaseRunning ||
				!meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionReady) ||
				meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionProgressing)) {
				t.Errorf("who waits serves: phase %s, %v", got.Phase, got.Conditions)
			}
		})
	}
}
