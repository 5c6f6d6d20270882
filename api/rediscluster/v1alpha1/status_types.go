// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RedisClusterStatus is the cluster seen.
type RedisClusterStatus struct {
	// replicas is the number of instances that exist (scale subresource).
	//
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// selector selects the pods of the cluster (scale subresource).
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// shards is the number of masters that own slots.
	//
	// +optional
	Shards int32 `json:"shards,omitempty"`

	// slots is how many of the 16384 slots are served by a reachable master.
	//
	// +optional
	Slots int32 `json:"slots,omitempty"`

	// instances is the number of ready instances and of all that are asked for, such
	// as 6/6.
	//
	// +optional
	Instances string `json:"instances,omitempty"`

	// phase is the situation in one word.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// reason explains the phase in a sentence.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Progressing, Degraded, SlotsCovered, Formed, Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// nodes are the instances.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Nodes []NodeStatus `json:"nodes,omitempty"`

	// plan is what the operator does next.
	//
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`

	// migration is the progress of moving slots between shards. It is absent when no
	// slots are to move.
	//
	// +optional
	Migration *MigrationStatus `json:"migration,omitempty"`

	// currentVersion is the oldest version that an instance runs.
	//
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// targetVersion is the version asked for.
	//
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`

	// engine is what the instances run: redis or valkey.
	//
	// +optional
	Engine string `json:"engine,omitempty"`

	// secretName is the Secret that holds the password under the key password.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// Phase is the situation of a cluster in one word.
//
// +kubebuilder:validation:Enum=None;Creating;Running;Failed;Scaling;Upgrading;Paused;Deleting
type Phase string

// The phases.
const (
	PhaseNone      Phase = "None"
	PhaseCreating  Phase = "Creating"
	PhaseRunning   Phase = "Running"
	PhaseFailed    Phase = "Failed"
	PhaseScaling   Phase = "Scaling"
	PhaseUpgrading Phase = "Upgrading"
	PhasePaused    Phase = "Paused"
	PhaseDeleting  Phase = "Deleting"
)

// Condition types of RedisCluster.
const (
	// ConditionReady is True when every instance asked for serves, every slot is
	// covered and every replica is in sync.
	ConditionReady = "Ready"
	// ConditionProgressing is True while the operator works towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when a cluster that was formed lacks something:
	// an instance, a replica in sync, a slot.
	ConditionDegraded = "Degraded"
	// ConditionSlotsCovered is True when all 16384 slots are owned by reachable masters.
	ConditionSlotsCovered = "SlotsCovered"
	// ConditionFormed is True once the cluster was as it should be for the first time.
	ConditionFormed = "Formed"
	// ConditionStalled is True when the operator cannot go on until someone changes
	// something. Its message says what.
	ConditionStalled = "Stalled"
)

// ReasonRollOut is the reason of Progressing while instances run an older template.
const ReasonRollOut = "RollOut"

// NodeStatus is one instance.
type NodeStatus struct {
	// name is the instance's pod.
	Name string `json:"name"`

	// instance is the address that clients use, ip:port.
	//
	// +optional
	Instance string `json:"instance,omitempty"`

	// type is master or slave (a replica, in the words of the Redis protocol).
	//
	// +optional
	Type string `json:"type,omitempty"`

	// masterNodeId is the node ID of the master that this instance replicates; a
	// master's own node ID.
	//
	// +optional
	MasterNodeID string `json:"masterNodeId,omitempty"`

	// nodeId is the instance's own node ID, 40 hex digits.
	//
	// +optional
	NodeID string `json:"nodeId,omitempty"`

	// shard is the number of the shard, from 0.
	//
	// +optional
	Shard int32 `json:"shard"`

	// domainName is the instance's stable DNS name.
	//
	// +optional
	DomainName string `json:"domainName,omitempty"`

	// slots that the instance owns, as ranges: 0-5460,6000.
	//
	// +optional
	Slots string `json:"slots,omitempty"`

	// hostname is the Kubernetes node that the instance runs on.
	//
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// hostIP is the address of that Kubernetes node.
	//
	// +optional
	HostIP string `json:"hostIP,omitempty"`

	// status is True when the instance serves, False when it does not, Unknown when it
	// could not be asked.
	Status metav1.ConditionStatus `json:"status"`

	// reason is why, in one CamelCase word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is why, in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// PlanStatus is what the operator does next.
type PlanStatus struct {
	// step is the next step's name, such as Meet, AssignSlots, ApplyChildren or None.
	Step string `json:"step"`

	// reason says why that step is next, or what it waits for.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// blockedBy names the safety predicate that holds the step back.
	//
	// +optional
	BlockedBy string `json:"blockedBy,omitempty"`

	// moves are the slots that are to move, before and while they do.
	//
	// +listType=atomic
	// +optional
	Moves []MoveStatus `json:"moves,omitempty"`
}

// MoveStatus is slots that change their owner.
type MoveStatus struct {
	// from is the pod of the master that gives the slots.
	From string `json:"from"`

	// to is the pod of the master that receives them.
	To string `json:"to"`

	// count is how many slots are left to move.
	Count int32 `json:"count"`

	// slots are those slots, such as 0-1364.
	//
	// +optional
	Slots string `json:"slots,omitempty"`
}

// MigrationStatus is the progress of moving slots between shards.
type MigrationStatus struct {
	// fromShards is how many shards owned slots when the scaling began.
	FromShards int32 `json:"fromShards"`

	// toShards is how many shards are to own slots.
	ToShards int32 `json:"toShards"`

	// method is how the engine moves slots: Atomic (whole slots by the engine itself,
	// from Valkey 9 and Redis 8.4 on) or Classic (keys, by MIGRATE).
	//
	// +optional
	Method MigrationMethod `json:"method,omitempty"`

	// slotsTotal is how many slots have to move altogether.
	//
	// +optional
	SlotsTotal int32 `json:"slotsTotal,omitempty"`

	// slotsLeft is how many of them have not moved yet.
	SlotsLeft int32 `json:"slotsLeft"`

	// keysMoved is how many keys have been moved so far. An atomic migration counts
	// none.
	//
	// +optional
	KeysMoved int64 `json:"keysMoved,omitempty"`

	// slotsPerSecond is the rate since startTime.
	//
	// +optional
	SlotsPerSecond int32 `json:"slotsPerSecond,omitempty"`

	// startTime is when the first slots began to move.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// estimatedEndTime is when the last slot will have moved, at the rate so far.
	//
	// +optional
	EstimatedEndTime *metav1.Time `json:"estimatedEndTime,omitempty"`

	// goal is the slots that each shard is to own, by shard number. The operator keeps
	// to it when it is restarted in the middle.
	//
	// +listType=atomic
	Goal []string `json:"goal"`

	// for identifies the part of the spec that the goal was computed for.
	For string `json:"for"`
}

// MigrationMethod is how slots move.
//
// +kubebuilder:validation:Enum=Atomic;Classic
type MigrationMethod string

// The migration methods.
const (
	MigrationAtomic  MigrationMethod = "Atomic"
	MigrationClassic MigrationMethod = "Classic"
)
