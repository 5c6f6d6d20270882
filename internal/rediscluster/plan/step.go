// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Step is what one reconciliation does. The set is closed: act and status handle every member.
//
//sumtype:decl
type Step interface {
	// Name is the step's name in status, logs and events.
	Name() string
	// Why is the reason in a sentence.
	Why() string
	step()
}

// Is reports whether a step is a T. Where steps are told apart by what becomes of them, a switch lists all (gochecksumtype).
func Is[T Step](step Step) bool {
	_, is := step.(T)
	return is
}

type base struct{ Reason string }

func (b base) Why() string { return b.Reason }
func (base) step()         {}

// None is the step of a cluster that is healthy.
type None struct{ base }

// Wait lets something that was started come to its end.
type Wait struct {
	base
	// BlockedBy names the predicate that does not hold yet.
	BlockedBy Predicate
	// After is when to look again; 0 means at the next event or the poll interval.
	After time.Duration
	// Requested reports whether it is a person's request for a switchover that waits, of a cluster that lacks nothing else.
	Requested bool
}

// Hold is the step of a paused cluster: Next is what would be done.
type Hold struct {
	base
	Next Step
}

// Stall says what cannot be done until someone changes something.
type Stall struct {
	base
	// Cause is the reason in one CamelCase word.
	Cause string
	// BlockedBy names the safety predicate that holds, empty when none does.
	BlockedBy Predicate
	// After is when to look again because of something else that was started; 0 means at the
	// next event or the poll interval.
	After time.Duration
	// Refused is the step that could not be carried out; nil when none was tried.
	Refused Step
}

// Target is an instance that a command is sent to, or sent about.
type Target struct {
	Pod, IP, NodeID string
	// Way is how the operator reaches it. MovesBySecondPort: other instances send it keys by the port for TLS beside 6379.
	Way               snapshot.Way
	MovesBySecondPort bool
}

// Name implements Step.
func (None) Name() string  { return "None" }
func (Wait) Name() string  { return "Wait" }
func (Hold) Name() string  { return "Hold" }
func (Stall) Name() string { return "Stall" }

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
	case CutOver:
		for _, follower := range step.Followers {
			on(follower.On)
		}
	case Switchover:
		on(step.Master, step.Replica)
	case SetTLS:
		for _, change := range step.Changes {
			on(change.On)
		}
	case SetConfig:
		for _, change := range step.Changes {
			on(change.On)
		}
	case RewriteAOF:
		on(step.On)
	case ReclaimSlots:
		for _, claim := range step.Claims {
			on(claim.On)
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
	case None, Wait, Hold, Stall, RolloutWait, RecordHibernation, Hibernate, Wake, Sleep, RecordNodes, AddFinalizer, CreateAuth,
		RecordCertificate, ApplyCertificate,
		ApplyChildren, ExpandPVCs, RecordGoal, SetShards, TakeTurn, RemoveShards,
		RestoreShards, KeepRestored, DeleteRestoreJobs, RecordKeys, PrepareImport, KeepFollower, RecordCutOver, EndImport, EndSwitchover,
		DeleteChildren, OrphanChildren, RemoveFinalizer:
	}
	slices.Sort(pods)
	return slices.Compact(pods)
}

func target(in *snapshot.Instance) Target {
	return Target{Pod: in.Name, IP: in.IP, NodeID: in.Redis.NodeID, Way: in.Way, MovesBySecondPort: in.TLSStage().EncryptsBus() &&
		in.TLSStage() != redisconf.TLSRequired}
}
