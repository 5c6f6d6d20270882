// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlanStatus is what the operator does next.
type PlanStatus struct {
	// step is the next step's name, such as Meet, AssignSlots, ApplyChildren or None.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=141,displayName="Next Step",xDescriptors={"urn:alm:descriptor:text"}
	Step string `json:"step"`

	// reason says why that step is next, or what it waits for.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=142,displayName="Reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// blockedBy names the safety predicate that holds the step back.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=143,displayName="Blocked By",xDescriptors={"urn:alm:descriptor:text"}
	BlockedBy string `json:"blockedBy,omitempty"`

	// moves are the slots that are to move, before and while they do.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=144,displayName="Slot Moves"
	Moves []MoveStatus `json:"moves,omitempty"`

	// settings are the settings that are not yet in force on every instance, and how they
	// come into force.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=149,displayName="Setting Changes"
	Settings []SettingChange `json:"settings,omitempty"`
}

// SettingStatus is a setting of redis.conf.
type SettingStatus struct {
	// name is the setting, such as maxmemory.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=191,displayName="Setting",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name"`

	// value is its value, such as 192mb.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=192,displayName="Value",xDescriptors={"urn:alm:descriptor:text"}
	Value string `json:"value"`
}

// RefusedSetting is a setting that an engine refused.
type RefusedSetting struct {
	// name is the setting.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=194,displayName="Setting",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name"`

	// value is the value that was refused.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=195,displayName="Value",xDescriptors={"urn:alm:descriptor:text"}
	Value string `json:"value"`

	// engine is who refused it, such as redis 7.0.15. Another version is asked again.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=196,displayName="Engine",xDescriptors={"urn:alm:descriptor:text"}
	Engine string `json:"engine"`

	// message is what the engine said.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=197,displayName="Message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message"`

	// immutable reports whether the engine takes the setting only when it starts.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=198,displayName="At Start Only",xDescriptors={"urn:alm:descriptor:text"}
	Immutable bool `json:"immutable,omitempty"`

	// time is when it was refused. It is asked again ten minutes later.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=199,displayName="Time",xDescriptors={"urn:alm:descriptor:text"}
	Time metav1.Time `json:"time"`
}

// SettingChange is a setting that is not yet in force on every instance.
type SettingChange struct {
	// name is the setting.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=200,displayName="Setting",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name"`

	// from is the value in force on the first of the instances, to the one asked for.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=201,displayName="From",xDescriptors={"urn:alm:descriptor:text"}
	From string `json:"from,omitempty"`

	// to is the value asked for.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=202,displayName="To",xDescriptors={"urn:alm:descriptor:text"}
	To string `json:"to,omitempty"`

	// applyMethod is Live (changed on running instances), AtRestart (instances restart one after
	// the other) or Blocked (not now; reason says why).
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=203,displayName="Apply Method",xDescriptors={"urn:alm:descriptor:text"}
	ApplyMethod string `json:"applyMethod"`

	// instances are the pods on which it is not in force.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=204,displayName="Pods"
	Instances []string `json:"instances,omitempty"`

	// reason is why it is blocked, or why the setting changes.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=205,displayName="Reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`
}

// MoveStatus is slots that change their owner.
type MoveStatus struct {
	// from is the pod of the master that gives the slots.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=145,displayName="From Pod",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	From string `json:"from"`

	// to is the pod of the master that receives them.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=146,displayName="To Pod",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	To string `json:"to"`

	// count is how many slots are left to move.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=147,displayName="Slots Left",xDescriptors={"urn:alm:descriptor:text"}
	Count int32 `json:"count"`

	// slots are those slots, such as 0-1364.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=148,displayName="Slots",xDescriptors={"urn:alm:descriptor:text"}
	Slots string `json:"slots,omitempty"`
}

// MigrationStatus is the progress of moving slots between shards.
type MigrationStatus struct {
	// fromShards is how many shards owned slots when the scaling began.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=151,displayName="Shards Before",xDescriptors={"urn:alm:descriptor:text"}
	FromShards int32 `json:"fromShards"`

	// toShards is how many shards are to own slots.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=152,displayName="Shards After",xDescriptors={"urn:alm:descriptor:text"}
	ToShards int32 `json:"toShards"`

	// method is how the engine moves slots: Atomic (whole slots by the engine itself,
	// from Valkey 9 and Redis 8.4 on) or Classic (keys, by MIGRATE).
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=153,displayName="Method",xDescriptors={"urn:alm:descriptor:text"}
	Method MigrationMethod `json:"method,omitempty"`

	// slotsTotal is how many slots have to move altogether.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=154,displayName="Slots in Total",xDescriptors={"urn:alm:descriptor:text"}
	SlotsTotal int32 `json:"slotsTotal,omitempty"`

	// slotsLeft is how many of them have not moved yet.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=155,displayName="Slots Left",xDescriptors={"urn:alm:descriptor:text"}
	SlotsLeft int32 `json:"slotsLeft"`

	// keysMoved is how many keys have been moved so far. An atomic migration counts
	// none.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=156,displayName="Keys Moved",xDescriptors={"urn:alm:descriptor:text"}
	KeysMoved int64 `json:"keysMoved,omitempty"`

	// slotsPerSecond is the rate since startTime.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=157,displayName="Slots per Second",xDescriptors={"urn:alm:descriptor:text"}
	SlotsPerSecond int32 `json:"slotsPerSecond,omitempty"`

	// startTime is when the first slots began to move.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=158,displayName="Start Time",xDescriptors={"urn:alm:descriptor:text"}
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// estimatedEndTime is when the last slot will have moved, at the rate so far.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=159,displayName="Estimated End",xDescriptors={"urn:alm:descriptor:text"}
	EstimatedEndTime *metav1.Time `json:"estimatedEndTime,omitempty"`

	// goal is the slots that each shard is to own, by shard number. The operator keeps
	// to it when it is restarted in the middle.
	//
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=160,displayName="Goal",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Goal []string `json:"goal"`

	// for identifies the part of the spec that the goal was computed for.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=161,displayName="Goal Computed For",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
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
