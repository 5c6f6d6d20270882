// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a RedisCluster needs next. It is pure: the same desired
// state, snapshot and time give the same decision.
package plan

import (
	"fmt"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Situation is the state of the cluster in one word; phase and conditions follow from it.
type Situation string

// The situations.
const (
	Absent     Situation = "Absent"
	Forming    Situation = "Forming"
	Steady     Situation = "Steady"
	Healing    Situation = "Healing"
	ScalingOut Situation = "ScalingOut"
	ScalingIn  Situation = "ScalingIn"
	RollingOut Situation = "RollingOut"
	Paused     Situation = "Paused"
	// Hibernating: all instances are being stopped, as spec.hibernate asks. Hibernated: they are. Waking: they start again.
	Hibernating Situation = "Hibernating"
	Hibernated  Situation = "Hibernated"
	Waking      Situation = "Waking"
	Deleting    Situation = "Deleting"
	Failed      Situation = "Failed"
)

// Decision is what a reconciliation does, and the topology that the chart is asked for.
type Decision struct {
	Situation Situation
	Topology  v1alpha1.Topology
	Step      Step
	// Rule is the one that found the step; empty when nothing is to be done.
	Rule string
	// Stalled is what a person has to change, also while Step does something else; nil when
	// there is nothing.
	Stalled *Stall
	// Goal is which shard is to own which slots; nil when no slots are to move.
	Goal *snapshot.Goal
	// Moves are the slots that are not where the goal wants them.
	Moves []Move
	// Settings are those that redis.conf holds after this reconciliation, and that instances may still
	// have from it. SettingChanges are not in force everywhere yet, SettingProblems will not
	// be until someone changes them.
	Settings        map[string]string
	SettingChanges  []SettingChange
	SettingProblems []SettingProblem
	// DataVolumes are, by pod, the volumes that data was last seen in.
	DataVolumes map[string]string
	// PlacedOn are, by pod, the nodes that instances with their data there last ran on.
	PlacedOn map[string]string
	// Rollout is how far the new template has come; nil when no instance is to be restarted.
	Rollout *Rollout
	// Overdue says, in a sentence, which time limit has passed; empty when none has.
	Overdue string
	// SlotsAssigned reports whether the slots are distributed by AssignReceive; when it does not ask for
	// that any more, they are balanced.
	SlotsAssigned bool
	// Hibernated are how many instances each shard had, by shard, when the cluster was told to hibernate, until it is awake again.
	Hibernated v1alpha1.Topology
	// Outside is whom gateways are told of; nil: nobody outside is let in.
	Outside *snapshot.Outside
	// Healthy reports whether every instance of the cluster serves, every slot is covered, and
	// every replica is in sync, whatever else is to be done.
	Healthy bool
	// Spread is how the masters are spread over nodes and zones.
	Spread Spread
	// Fences are the instances that a person asks to have left alone, FenceProblem says what of that is not followed; empty: nothing.
	Fences       []Fence
	FenceProblem string
	// TLS is which connections instances take, and what it waits for that they take those that are asked for; its mode is empty
	// when nothing is said of TLS and nothing of it is left.
	TLS TLSInForce
}

// Look again soon: Redis answers within one gossip round.
const soon = 100 * time.Millisecond

type input struct {
	desired Desired
	// snap is what was seen, without what the disputes are about.
	snap     *snapshot.Snapshot
	disputes map[string]dispute
	// asked are the instances that a person asks to have left alone.
	asked   []Fence
	pending Pending
	// problems are why the spec cannot be followed; while there are any, desired is the cluster as
	// it is.
	problems []problem
	topology v1alpha1.Topology
	// dormant: the StatefulSets are to ask for no instance.
	dormant bool
	// tls is the stage of TLS that redis.conf is to have.
	tls redisconf.TLSStage
	// clients is what redis.conf is to want of clients.
	clients v1alpha1.ClientCertificates
	now     time.Time
}

// problem is why the spec cannot be followed: the cause of the stall, and a sentence.
type problem struct {
	cause, message string
	// refused is the step that could not be carried out; nil when none was tried.
	refused Step
}

// Shape is as much of a desire as is safe now: what the chart is asked for.
type Shape struct {
	Topology v1alpha1.Topology
	// Dormant: of none of its instances there is to be a pod.
	Dormant bool
	// Held: a template that only the operator changed is not written to StatefulSets that exist, before it is the cluster's turn.
	Held bool
	// Settings are those that redis.conf is to hold.
	Settings []redisconf.Setting
	// Outside is whom gateways are to be told of; nil: nobody outside is let in.
	Outside *snapshot.Outside
	// TLS is what it is to say of TLS.
	TLS redisconf.TLS
	in  input
	// partial is in which direction the cluster is scaled when it has formed; empty: it has the shards that the spec asks for.
	partial Situation
}

// ShapeOf computes the shape of a cluster.
func ShapeOf(d Desired, s *snapshot.Snapshot, now time.Time) Shape {
	s = s.Indexed()
	found := disputes(s)
	shards, asked := beginsWith(s), len(d.Topology)
	if d.FileShards > 0 {
		shards = d.FileShards
	}
	partial := (d.Import != nil || d.FileShards > 0) && !s.Formed && asked != shards
	if partial {
		// It has the shards of the server, or of the files, until the cluster has formed; then it is scaled to what is asked for.
		d.Topology, d.AssignReceive = beginning(d.Topology, shards), false
	}
	marked, fences := fenced(d.Fenced, setAside(s, found))
	in := input{desired: d, snap: marked.Indexed(), disputes: found, asked: fences, now: now}
	for _, message := range d.Problems {
		in.problems = append(in.problems, problem{cause: "InvalidSpec", message: message})
	}
	in.asBefore()
	in.topology = in.effective()
	in.dormant = in.dormancy()
	in.tls, in.clients = in.tlsStage(), in.clientCertificates()
	shape := Shape{Topology: in.topology, Dormant: in.dormant, Held: in.held(), Settings: in.effectiveSettings(),
		TLS:     redisconf.TLS{Stage: in.tls, Clients: in.clients},
		Outside: in.outside(), in: in}
	if partial {
		shape.partial = ScalingOut
		if asked < shards {
			shape.partial = ScalingIn
		}
	}
	return shape
}

// Next decides what a cluster needs next.
func (shape Shape) Next(pending Pending) Decision {
	in := shape.in
	d, s := in.desired, in.snap
	in.pending = pending
	if d.Deleting {
		return Decision{Situation: Deleting, Topology: in.topology, Step: planDeletion(in), Rule: "deletion", Settings: s.Settings,
			DataVolumes: s.DataVolumes, PlacedOn: s.PlacedOn, SlotsAssigned: s.SlotsAssigned, Hibernated: s.Hibernated}
	}
	if pending.Refused != nil && len(in.problems) == 0 {
		in.problems = []problem{{cause: pending.Refused.Cause, message: pending.Refused.Message, refused: pending.Refused.Step}}
		in.desired.Settings, in.desired.NodeTimeout = nil, 0
	}
	order := rules
	switch {
	case in.stopped() && len(in.problems) == 0:
		order = dormant
	case len(in.problems) > 0:
		order = rules[:1]
		if stays, exists := asItIs(in.desired, in); exists && !in.stopped() {
			in.desired, order = stays, healing
			in.topology = in.effective()
		}
	}
	decision := Decision{Topology: in.topology, Healthy: awaitConvergence(in, in.retiring) == nil, Spread: in.spread()}
	decision.Step, decision.Stalled, decision.Rule = next(in, order)
	decision.Step, decision.Stalled = heldByStall(decision)
	decision.Situation, decision.Hibernated = situation(in, decision), in.hibernatedAfter(decision.Step)
	if shape.partial != "" && decision.Situation == Steady {
		decision.Situation, decision.Step = shape.partial, None{base{"the cluster has formed, and is scaled to what the spec asks for"}}
	}
	if decision.Situation == RollingOut {
		decision.Rollout = in.rollout()
	}
	if decision.Overdue = overdue(in, decision.Situation); decision.Overdue != "" {
		decision.Situation = Failed
	}
	decision.Goal, decision.Moves = kept(in, decision.Step)
	decision.DataVolumes, decision.PlacedOn, decision.SlotsAssigned = in.dataVolumes(decision.Step), in.placedOn(), in.slotsAssigned()
	decision.Outside = shape.Outside
	decision.Settings, decision.SettingChanges, decision.SettingProblems = in.settingsAfter(), in.settingChanges(), in.settingProblems()
	decision.TLS = in.tlsInForce()
	decision.Fences, decision.FenceProblem = in.fences(), d.FenceProblem
	if d.Paused {
		decision.Situation, decision.Overdue, decision.Stalled = Paused, "", nil
		decision.Step = Hold{base: base{"spec.pause is true: nothing is changed; set it to false to go on"}, Next: decision.Step}
	}
	return decision
}

// kept is the goal after this reconciliation, and what is left to move: the goal that the step
// records, else the recorded one until it is reached or nothing asks for it any more.
func kept(in input, step Step) (*snapshot.Goal, []Move) {
	goal, err := in.goal()
	record, recorded := step.(RecordGoal)
	if record.ByLoad != nil {
		goal = record.ByLoad
	}
	switch {
	case recorded && in.desired.Paused:
		return in.snap.Goal, record.Moves
	case recorded:
		return goal, record.Moves
	case in.snap.Goal != nil && len(in.problems) > 0:
		return in.snap.Goal, in.moves(in.snap.Goal) // what is asked for is not known
	case in.snap.Goal == nil || goal == nil && err == nil && slotsCovered(in.snap):
		return nil, nil
	}
	return in.snap.Goal, in.moves(in.snap.Goal)
}

func situation(in input, d Decision) Situation {
	switch {
	case d.Stalled != nil && !in.asleep():
		return Failed
	case in.asleep() && in.desired.Hibernate && (Is[EndSwitchover](d.Step) || in.certificateLags(d.Step)),
		in.stopped() && in.desired.Hibernate && Is[Sleep](d.Step):
		return Hibernated
	case in.stopped() && in.desired.Hibernate, Is[Hibernate](d.Step):
		return Hibernating
	case d.Stalled != nil:
		return Failed
	case in.snap.Hibernated != nil && !in.desired.Hibernate:
		return Waking
	case Is[None](d.Step), Is[SetShards](d.Step), Is[TakeTurn](d.Step):
		return Steady
	case Is[RolloutWait](d.Step):
		return RollingOut
	case Is[RecordGoal](d.Step):
		if direction, scales := scaling(in); scales {
			return direction
		}
		return ScalingOut // slots are assigned anew
	}
	if s := unsteady(in); s != Healing || !in.certificateLags(d.Step) {
		return s
	}
	return Steady
}

// unsteady is the situation of a cluster that something has to be done for.
func unsteady(in input) Situation {
	switch {
	case in.snap.Formed:
		if direction, ok := scaling(in); ok {
			return direction
		}
		if in.rolling() {
			return RollingOut
		}
		return Healing
	case len(in.snap.Shards) == 0 && in.snap.Restore == nil && in.snap.Import == nil:
		return Absent
	default:
		return Forming
	}
}

// overdue says what takes longer than it may, forming the cluster or its rollout; empty when nothing does. A user who
// restarts instances takes the time that it takes, and so does loading a backup.
func overdue(in input, s Situation) string {
	d := in.desired
	switch {
	case s == Forming && !in.begins() && late(in.formingSince(), d.CreateTimeout, in.now):
		return fmt.Sprintf("the cluster is not formed after %s", d.CreateTimeout)
	case s == RollingOut && !d.OnDelete && late(in.snap.RolledAt, d.UpgradeTimeout, in.now):
		return fmt.Sprintf("the rollout has made no progress for %s", d.UpgradeTimeout)
	}
	return ""
}

// formingSince is when the first child was made.
func (in input) formingSince() time.Time {
	var since time.Time
	for i, shard := range in.snap.Shards {
		if i == 0 || shard.CreatedAt.Before(since) {
			since = shard.CreatedAt
		}
	}
	return since
}

// late reports whether something which began at since takes longer than it may. A zero since or
// limit is never late.
func late(since time.Time, limit time.Duration, now time.Time) bool {
	return limit > 0 && !since.IsZero() && now.Sub(since) > limit
}
