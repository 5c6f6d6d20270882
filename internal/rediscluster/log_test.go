// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// What acted is one line; what did not, what goes on and what failed, which the controller logs, is for who looks closer.
func TestLog(t *testing.T) {
	discard := plan.Decision{Rule: "discard", Step: plan.ForceDelete{Pod: "c-0-0"}, Situation: plan.Healing}
	moving := plan.Decision{
		Rule: "move", Step: plan.MoveSlots{Moves: []plan.Move{{From: plan.Target{Pod: "c-1-0"}, To: plan.Target{Pod: "c-0-0"}}}},
		Situation: plan.ScalingOut}
	for name, tt := range map[string]struct {
		report Report
		want   string
		level  int
	}{
		"acted": {Report{Reconciliation: status.Reconciliation{Decision: discard}, Acted: true},
			`"msg"="Acted" "rule"="discard" "step"="ForceDelete" "reason"="" "situation"="Healing" "pods"=["c-0-0"]`, 0},
		"failed": {Report{Reconciliation: status.Reconciliation{Decision: discard, Err: errors.New("no")}, Acted: true},
			`"msg"="Reconciled" "rule"="discard" "step"="ForceDelete" "reason"="" "situation"="Healing"`, 1},
		"waits": {Report{Reconciliation: status.Reconciliation{Decision: plan.Decision{Rule: "converge", Step: plan.Wait{},
			Situation: plan.Healing}}},
			`"msg"="Reconciled" "rule"="converge" "step"="Wait" "reason"="" "situation"="Healing"`, 1},
		"begins to move": {Report{Reconciliation: status.Reconciliation{Decision: moving, KeysMoved: 7}, Acted: true},
			`"msg"="Acted" "rule"="move" "step"="MoveSlots" "reason"="" "situation"="ScalingOut" "pods"=["c-0-0" "c-1-0"]`, 0},
		"goes on moving": {Report{Reconciliation: status.Reconciliation{Decision: moving, KeysMoved: 7}, Acted: true, movedBefore: true},
			`"msg"="Moved slots" "rule"="move" "step"="MoveSlots" "reason"="" "situation"="ScalingOut" "keys"=7`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for verbosity := range 2 {
				var got []string
				tt.report.log(funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{Verbosity: verbosity}))
				if want := verbosity >= tt.level; want && (len(got) != 1 || got[0] != `"level"=`+string(rune('0'+tt.level))+" "+tt.want) || !want &&
					len(got) > 0 {
					t.Errorf("at verbosity %d: %q, want %q", verbosity, got, tt.want)
				}
			}
		})
	}
}
