// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// Pods are the instances that a step is carried out on, sorted; none where it is about the cluster.
func Pods(step Step) []string {
	var pods []string
	on := func(targets ...Target) {
		for _, t := range targets {
			pods = append(pods, t.Pod)
		}
	}
	switch step := step.(type) {
	case SetAccess:
		on(step.On...)
	case ChangePassword:
		on(step.On...)
	case ReloadCertificates:
		on(step.On...)
	case SetNodeTimeout:
		on(step.On...)
	case Forget:
		on(step.On...)
	case CancelJobs:
		on(step.On...)
	case CopyFunctions:
		on(step.To...)
	case BumpEpoch:
		on(step.On)
	case Promote:
		on(step.Replica)
	case Switchover:
		on(step.Master, step.Replica)
	case SetConfig:
		for _, change := range step.Changes {
			on(change.On)
		}
	case AssignSlots:
		for _, assignment := range step.Assignments {
			on(assignment.To)
		}
	case Meet:
		for _, meeting := range step.Meetings {
			on(meeting.From, meeting.To)
		}
	case Replicate:
		for _, replication := range step.Replications {
			on(replication.Replica)
		}
	case StabilizeSlots:
		for _, closing := range step.Stabilizations {
			on(closing.On)
		}
	case RepairSlots:
		for _, move := range step.Moves {
			on(move.From, move.To)
		}
	case MoveSlots:
		for _, move := range step.Moves {
			on(move.From, move.To)
		}
	case Place:
		for _, placement := range step.Pods {
			pods = append(pods, placement.Pod)
		}
	case AddToEndpoints:
		pods = append(pods, step.Pods...)
	case RemoveFromEndpoints:
		pods = append(pods, step.Pods...)
	case GiveUp:
		pods = append(pods, step.Pods...)
	case ForceDelete:
		pods = []string{step.Pod}
	case Recreate:
		pods = []string{step.Pod}
	case Restart:
		pods = []string{step.Pod}
	case None, Wait, Hold, Stall, RolloutWait, RecordNodes, AddFinalizer, CreateAuth, ApplyChildren, ExpandPVCs, RecordGoal, RemoveShards,
		DeleteChildren, OrphanChildren, RemoveFinalizer:
	}
	slices.Sort(pods)
	return slices.Compact(pods)
}
