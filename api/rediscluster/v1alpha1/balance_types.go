// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DefaultMegabytesPerHour is how much a Balance moves in an hour.
const DefaultMegabytesPerHour int32 = 1024

// Balance has slots follow the load: a shard that bears much more than the others gives some of its slots away.
type Balance struct {
	// mode is Move (slots move) or Report (status.balance says which shard is hot, and slots stay where they are).
	//
	// +kubebuilder:default=Move
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=301,displayName="Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Move","urn:alm:descriptor:com.tectonic.ui:select:Report"}
	Mode BalanceMode `json:"mode,omitempty"`

	// megabytesPerHour is how many MiB of keys may move in an hour because of the load. The last slot may be beyond it: one that is larger
	// moves alone.
	//
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=302,displayName="Megabytes per Hour",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MegabytesPerHour int32 `json:"megabytesPerHour,omitempty"`
}

// BalanceMode says whether slots move because of the load.
//
// +kubebuilder:validation:Enum=Move;Report
type BalanceMode string

// The modes of Balance.
const (
	BalanceMove   BalanceMode = "Move"
	BalanceReport BalanceMode = "Report"
)

// BalanceStatus is how evenly shards bear the load. Figures that go to and fro are told five minutes late at most.
type BalanceStatus struct {
	// measure is by what hottestShard bears much more than the others: Memory or Processor. It is absent while none does.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=304,displayName="Measure",xDescriptors={"urn:alm:descriptor:text"}
	Measure string `json:"measure,omitempty"`

	// hottestShard is the number of the shard that bears most of the measure.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=305,displayName="Hottest Shard",xDescriptors={"urn:alm:descriptor:text"}
	HottestShard *int32 `json:"hottestShard,omitempty"`

	// percent is what it bears, as a percentage of what a shard bears on average.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=306,displayName="Percent",xDescriptors={"urn:alm:descriptor:text"}
	Percent int32 `json:"percent,omitempty"`

	// since is since when without a break it has borne so much.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=307,displayName="Since",xDescriptors={"urn:alm:descriptor:text"}
	Since *metav1.Time `json:"since,omitempty"`

	// notBefore is when slots move at the earliest, if it goes on.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=308,displayName="Not Before",xDescriptors={"urn:alm:descriptor:text"}
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// reason explains it in a sentence.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=309,displayName="Reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// hotSlots are the slots that bear most, five at most; those that bear less than a tenth of what a shard does are not told.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=310,displayName="Hot Slots"
	HotSlots []HotSlot `json:"hotSlots,omitempty"`

	// moved is what began to move in the last hour: it counts towards spec.balance.megabytesPerHour.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=311,displayName="Moved"
	Moved []BalanceMoved `json:"moved,omitempty"`
}

// HotSlot is a slot that bears much.
type HotSlot struct {
	// slot is its number.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=312,displayName="Slot",xDescriptors={"urn:alm:descriptor:text"}
	Slot int32 `json:"slot"`
	// shard is the number of the shard that owns it.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=313,displayName="Shard",xDescriptors={"urn:alm:descriptor:text"}
	Shard int32 `json:"shard"`
	// measure is of what it bears much: Memory or Processor.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=314,displayName="Measure",xDescriptors={"urn:alm:descriptor:text"}
	Measure string `json:"measure"`
	// percent is what it bears, as a percentage of what a shard bears on average.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=315,displayName="Percent",xDescriptors={"urn:alm:descriptor:text"}
	Percent int32 `json:"percent"`
}

// BalanceMoved are slots that began to move because of the load.
type BalanceMoved struct {
	// time is when they did.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=316,displayName="Time",xDescriptors={"urn:alm:descriptor:text"}
	Time metav1.Time `json:"time"`
	// slots is how many.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=317,displayName="Slots",xDescriptors={"urn:alm:descriptor:text"}
	Slots int32 `json:"slots"`
	// megabytes is what their keys take, in MiB, rounded up.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=318,displayName="Megabytes",xDescriptors={"urn:alm:descriptor:text"}
	Megabytes int64 `json:"megabytes"`
}

// Budget is megabytesPerHour, or its default, in bytes.
func (b *Balance) Budget() float64 {
	if b.MegabytesPerHour == 0 {
		return float64(DefaultMegabytesPerHour) * (1 << 20)
	}
	return float64(b.MegabytesPerHour) * (1 << 20)
}
