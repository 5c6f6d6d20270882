// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// The log and the status name the instances that a step is carried out on: each once, sorted.
func TestPods(t *testing.T) {
	a, b := Target{Pod: "c-0-0"}, Target{Pod: "c-1-0"}
	move := []Move{{From: b, To: a, Slots: slots.Of(1)}, {From: b, To: a, Slots: slots.Of(2)}}
	one, both := []string{"c-0-0"}, []string{"c-0-0", "c-1-0"}
	for _, tt := range []struct {
		step Step
		want []string
	}{
		{SetAccess{On: []Target{b, a}}, both},
		{ChangePassword{On: []Target{b, a}}, both},
		{ReloadCertificates{On: []Target{b, a}}, both},
		{SetNodeTimeout{On: []Target{b, a}}, both},
		{Forget{On: []Target{b, a}}, both},
		{CancelJobs{On: []Target{b, a}}, both},
		{CopyFunctions{From: Target{Pod: "c-2-0"}, To: []Target{b, a}}, both},
		{BumpEpoch{On: a}, one},
		{Promote{Replica: a}, one},
		{CutOver{Followers: []Follower{{On: b}, {On: a}}}, both},
		{Switchover{Master: b, Replica: a}, both},
		{SetTLS{Changes: []InstanceConfig{{On: b}, {On: a}}}, both},
		{SetConfig{Changes: []InstanceConfig{{On: b}, {On: a}}}, both},
		{AssignSlots{Assignments: []Assignment{{To: b}, {To: a}}}, both},
		{RewriteAOF{On: a}, one},
		{ReclaimSlots{Claims: []Claim{{On: b}, {On: a}}}, both},
		{Meet{Meetings: []Meeting{{From: b, To: a}, {From: a, To: b}}}, both},
		{Replicate{Replications: []Replication{{Replica: b}, {Replica: a}}}, both},
		{StabilizeSlots{Stabilizations: []Stabilization{{On: b}, {On: a}}}, both},
		{RepairSlots{Moves: move}, both},
		{MoveSlots{Moves: move}, both},
		{Place{Pods: []Placement{{Pod: "c-1-0"}, {Pod: "c-0-0"}}}, both},
		{AddToEndpoints{Pods: []string{"c-1-0", "c-0-0"}}, both},
		{RemoveFromEndpoints{Pods: []string{"c-1-0", "c-0-0"}}, both},
		{GiveUp{Pods: []string{"c-1-0", "c-0-0"}}, both},
		{ForceDelete{Pod: "c-0-0"}, one},
		{Recreate{Pod: "c-0-0"}, one},
		{Restart{Pod: "c-0-0"}, one},
		{None{}, nil},
		{RemoveShards{Shards: map[int]string{0: ""}}, nil},
	} {
		if diff := cmp.Diff(tt.want, Pods(tt.step)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.step.Name(), diff)
		}
	}
}
