// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
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
	// BlockedBy names the safety predicate that holds, empty when nothing does.
	BlockedBy Predicate
	// After is when to look again; 0 means at the next event or the poll interval.
	After time.Duration
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

// AddFinalizer lets deletion follow the policy.
type AddFinalizer struct{ base }

// CreateAuth makes the Secret that holds the password.
type CreateAuth struct{ base }

// ApplyChildren makes the children be as the chart renders them for Topology.
type ApplyChildren struct {
	base
	Topology v1alpha1.Topology
}

// Target is an instance that a command is sent to, or sent about.
type Target struct {
	Pod, IP, NodeID string
}

// AssignSlots gives slots that nobody owns to masters.
type AssignSlots struct {
	base
	Assignments []Assignment
}

// Assignment is what one master is given, or the epoch of a replica of a new cluster.
type Assignment struct {
	To    Target
	Slots slots.Set
	// Epoch is the configuration epoch to set first; 0 leaves it. Only a node that
	// knows no other takes one (CLUSTER SET-CONFIG-EPOCH).
	Epoch uint64
}

// Meet makes nodes know each other's present addresses.
type Meet struct {
	base
	Meetings []Meeting
}

// Meeting is one CLUSTER MEET, sent to From about To.
type Meeting struct{ From, To Target }

// SetNodeTimeout changes cluster-node-timeout of running instances.
type SetNodeTimeout struct {
	base
	On      []Target
	Timeout time.Duration
}

// Replicate makes instances replicas of their shard's master.
type Replicate struct {
	base
	Replications []Replication
}

// Replication is one CLUSTER REPLICATE.
type Replication struct {
	Replica  Target
	MasterID string
}

// Promote makes a replica the master of a shard whose master is gone for good.
type Promote struct {
	base
	Replica Target
	// Takeover goes without the consent of other masters: only right when their
	// majority is proven to be gone. Otherwise the promotion is forced but voted on.
	Takeover bool
}

// Forget removes nodes that are gone from every instance's table.
type Forget struct {
	base
	NodeIDs []string
	On      []Target
}

// DeleteChildren deletes what the cluster owns.
type DeleteChildren struct{ base }

// OrphanChildren takes the owner off what the cluster owns, and leaves it running.
type OrphanChildren struct{ base }

// RemoveFinalizer lets the object go.
type RemoveFinalizer struct{ base }

// Name implements Step.
func (None) Name() string            { return "None" }
func (Wait) Name() string            { return "Wait" }
func (Hold) Name() string            { return "Hold" }
func (Stall) Name() string           { return "Stall" }
func (AddFinalizer) Name() string    { return "AddFinalizer" }
func (CreateAuth) Name() string      { return "CreateAuth" }
func (ApplyChildren) Name() string   { return "ApplyChildren" }
func (AssignSlots) Name() string     { return "AssignSlots" }
func (Meet) Name() string            { return "Meet" }
func (SetNodeTimeout) Name() string  { return "SetNodeTimeout" }
func (Replicate) Name() string       { return "Replicate" }
func (Promote) Name() string         { return "Promote" }
func (Forget) Name() string          { return "Forget" }
func (DeleteChildren) Name() string  { return "DeleteChildren" }
func (OrphanChildren) Name() string  { return "OrphanChildren" }
func (RemoveFinalizer) Name() string { return "RemoveFinalizer" }
