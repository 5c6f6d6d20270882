// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of Autoscale.
const (
	DefaultInstancesPerShard int32 = 2
	// DefaultMemoryPercent is the target of an Autoscale without targets.
	DefaultMemoryPercent     int32 = 70
	DefaultScaleOutStability       = time.Minute
	DefaultScaleInStability        = 30 * time.Minute
	DefaultCoolDown                = 5 * time.Minute
	DefaultWindowTimeZone          = "Etc/UTC"
)

// Autoscale has the number of shards follow the load.
type Autoscale struct {
	// mode is Auto (the operator scales) or DryRun (status.autoscale says what it would do, and the number of shards stays as it is, also
	// when the bounds do not allow it).
	//
	// +kubebuilder:default=Auto
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=281,displayName="Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:DryRun"}
	Mode AutoscaleMode `json:"mode,omitempty"`

	// minShards is the least number of shards, which a new cluster begins with. Required.
	//
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=500
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=282,displayName="Least Shards",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MinShards int32 `json:"minShards"`

	// maxShards is the largest number of shards. Required.
	//
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=500
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=283,displayName="Most Shards",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxShards int32 `json:"maxShards"`

	// instancesPerShard is how many instances each shard has, its master among them.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=284,displayName="Instances per Shard",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	InstancesPerShard int32 `json:"instancesPerShard,omitempty"`

	// targets are what a master is to bear at most. When the busiest one bears more, shards are added; they are removed when every master
	// of those that stay would bear less than four fifths of each target. Default: memoryPercent 70.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=285,displayName="Targets"
	Targets AutoscaleTargets `json:"targets,omitempty"`

	// scaleOut is when shards are added. Default of its stabilization: 1m.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=289,displayName="Scale Out",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ScaleOut AutoscaleRule `json:"scaleOut,omitempty"`

	// scaleIn is when shards are removed. Default of its stabilization: 30m.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=290,displayName="Scale In",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ScaleIn AutoscaleRule `json:"scaleIn,omitempty"`

	// coolDown is how long after one scaling has begun the next may begin at the earliest, 24h at most. Default: 5m.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="must be from 0s to 24h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=292,displayName="Cool Down",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	CoolDown *metav1.Duration `json:"coolDown,omitempty"`

	// windows are times in which other bounds count than minShards and maxShards.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=293,displayName="Windows",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Windows []AutoscaleWindow `json:"windows,omitempty"`
}

// AutoscaleTargets are what a master is to bear at most. A target that is not set counts for nothing.
type AutoscaleTargets struct {
	// memoryPercent is the part of maxmemory that is used, or of 75 % of the memory limit when maxmemory is 0.
	//
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=90
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=286,displayName="Memory Percent",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MemoryPercent *int32 `json:"memoryPercent,omitempty"`

	// operationsPerSecond is how many commands a master carries out.
	//
	// +kubebuilder:validation:Minimum=100
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=287,displayName="Operations per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	OperationsPerSecond *int64 `json:"operationsPerSecond,omitempty"`

	// networkBytesPerSecond is what a master receives from clients and sends to them. What it sends to replicas is not counted.
	//
	// +kubebuilder:validation:Minimum=65536
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=288,displayName="Network Bytes per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	NetworkBytesPerSecond *int64 `json:"networkBytesPerSecond,omitempty"`
}

// AutoscaleRule is when the number of shards changes in one direction.
type AutoscaleRule struct {
	// stabilization is for how long without a break the load must ask for it, from 1m to 24h.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be from 1m to 24h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=291,displayName="Stabilization",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Stabilization *metav1.Duration `json:"stabilization,omitempty"`
}

// AutoscaleWindow is a time in which other bounds count. Of several that are open the largest minShards counts, and the largest maxShards.
// A bound that none of them has is the one of the spec. What is at most is never less than what is at least.
type AutoscaleWindow struct {
	// name is how the status names it. Required.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=294,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`

	// start is when it opens: five cron fields (minute, hour, day of month, month, day of week). Required. A start that clocks leave out is
	// when they are set forward, and one that they show twice counts once.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4}$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=295,displayName="Start",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Start string `json:"start"`

	// timeZone is the IANA name of the time zone of start, such as Asia/Shanghai. Default: Etc/UTC.
	//
	// +kubebuilder:default=Etc/UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=296,displayName="Time Zone",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	TimeZone string `json:"timeZone,omitempty"`

	// duration is for how long it is open, from 10m to 168h. Required.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('168h')",message="must be from 10m to 168h"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=297,displayName="Duration",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Duration metav1.Duration `json:"duration"`

	// minShards is the least number of shards in it. If there are fewer when it opens, they are added at once. It or maxShards is required.
	//
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=500
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=298,displayName="Least Shards",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MinShards *int32 `json:"minShards,omitempty"`

	// maxShards is the largest number of shards in it. If there are more when it opens, they go as they do when the load asks for fewer.
	//
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=500
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=299,displayName="Most Shards",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxShards *int32 `json:"maxShards,omitempty"`
}

// AutoscaleMode says whether the operator scales.
//
// +kubebuilder:validation:Enum=Auto;DryRun
type AutoscaleMode string

// The modes of Autoscale.
const (
	AutoscaleAuto   AutoscaleMode = "Auto"
	AutoscaleDryRun AutoscaleMode = "DryRun"
)

// AutoscaleStatus is how many shards the load asks for. Figures that go to and fro are told five minutes late at most.
type AutoscaleStatus struct {
	// shards is how many shards the cluster is to have: what spec.shards would say.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=241,displayName="Shards in Force",xDescriptors={"urn:alm:descriptor:text"}
	Shards int32 `json:"shards"`

	// wanted is how many the load asks for, within the bounds. It is absent while that is not known.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=242,displayName="Wanted Shards",xDescriptors={"urn:alm:descriptor:text"}
	Wanted *int32 `json:"wanted,omitempty"`

	// measure is what asks for it: Memory, Operations or Network. busiestShard is the shard that bears most of it. Both are absent while
	// nothing asks for another number.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=243,displayName="Measure",xDescriptors={"urn:alm:descriptor:text"}
	Measure string `json:"measure,omitempty"`

	// busiestShard is the number of the shard that bears most of the measure.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=244,displayName="Busiest Shard",xDescriptors={"urn:alm:descriptor:text"}
	BusiestShard *int32 `json:"busiestShard,omitempty"`

	// since is since when without a break the load has asked for more shards, or for fewer.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=245,displayName="Since",xDescriptors={"urn:alm:descriptor:text"}
	Since *metav1.Time `json:"since,omitempty"`

	// notBefore is when the number may change at the earliest, if the load goes on asking for it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=246,displayName="Not Before",xDescriptors={"urn:alm:descriptor:text"}
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// reason explains wanted in a sentence.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=247,displayName="Reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// scaledAt is when the number last changed because of the load.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=248,displayName="Scaled At",xDescriptors={"urn:alm:descriptor:text"}
	ScaledAt *metav1.Time `json:"scaledAt,omitempty"`

	// outgrown is what was too much for how many shards, when shards were last added: as long as the load is about that, there are more.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=249,displayName="Outgrown"
	Outgrown *Outgrown `json:"outgrown,omitempty"`

	// window is the window of spec.autoscale that is open. Of several it is the one with the largest minShards, or else the largest
	// maxShards. It and the bounds in force are absent while none is open.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=253,displayName="Window",xDescriptors={"urn:alm:descriptor:text"}
	Window string `json:"window,omitempty"`

	// minShards is the least number of shards while the window is open.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=254,displayName="Least Shards in Force",xDescriptors={"urn:alm:descriptor:text"}
	MinShards int32 `json:"minShards,omitempty"`

	// maxShards is the largest number of shards while the window is open.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=255,displayName="Most Shards in Force",xDescriptors={"urn:alm:descriptor:text"}
	MaxShards int32 `json:"maxShards,omitempty"`
}

// Outgrown is a load that was too much for a number of shards.
type Outgrown struct {
	// shards is how many there were.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=250,displayName="Shards",xDescriptors={"urn:alm:descriptor:text"}
	Shards int32 `json:"shards"`
	// measure is what was too much: Memory, Operations or Network.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=251,displayName="Measure",xDescriptors={"urn:alm:descriptor:text"}
	Measure string `json:"measure"`
	// percent is what all masters bore together, as a percentage of one master's target.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=252,displayName="Percent",xDescriptors={"urn:alm:descriptor:text"}
	Percent int64 `json:"percent"`
}

// ConditionAutoscalingLimited is True while the load asks for more shards than spec.autoscale allows. It is absent without
// spec.autoscale.
const ConditionAutoscalingLimited = "AutoscalingLimited"

// The reasons of ConditionAutoscalingLimited.
const (
	// ReasonAutoscaleTooMany: it is True.
	ReasonAutoscaleTooMany = "TooManyShards"
	// ReasonAutoscaleWithin: what the load asks for is allowed.
	ReasonAutoscaleWithin = "WithinBounds"
	// ReasonAutoscaleUnknown: what the load asks for is not known.
	ReasonAutoscaleUnknown = "LoadUnknown"
	// ReasonAutoscaleTooManyBefore: it is not known, either, and was more than is allowed when it was known last.
	ReasonAutoscaleTooManyBefore = "TooManyShardsBefore"
)

// PerShard is instancesPerShard, or its default.
func (a *Autoscale) PerShard() int32 {
	if a.InstancesPerShard == 0 {
		return DefaultInstancesPerShard
	}
	return a.InstancesPerShard
}

// Asked is targets, or the default ones.
func (a *Autoscale) Asked() AutoscaleTargets {
	if a.Targets == (AutoscaleTargets{}) {
		return AutoscaleTargets{MemoryPercent: new(DefaultMemoryPercent)}
	}
	return a.Targets
}

// Waits are the stabilizations of adding and removing shards and the cool-down, or their defaults.
func (a *Autoscale) Waits() (out, in, coolDown time.Duration) {
	or := func(d *metav1.Duration, otherwise time.Duration) time.Duration {
		if d == nil {
			return otherwise
		}
		return d.Duration
	}
	return or(a.ScaleOut.Stabilization, DefaultScaleOutStability), or(a.ScaleIn.Stabilization, DefaultScaleInStability),
		or(a.CoolDown, DefaultCoolDown)
}

// LargestShards is the largest number of shards that spec and windows allow at any time.
func (a *Autoscale) LargestShards() int32 {
	most := a.MaxShards
	for _, w := range a.Windows {
		for _, bound := range []*int32{w.MinShards, w.MaxShards} {
			if bound != nil {
				most = max(most, *bound)
			}
		}
	}
	return most
}

// WithShards is the cluster with so many shards in place of spec.autoscale, and the instances that these have. The cluster itself is not
// changed; without spec.autoscale it is returned as it is.
func (c *RedisCluster) WithShards(shards int32) *RedisCluster {
	a := c.Spec.Autoscale
	if a == nil {
		return c
	}
	with := *c
	with.Spec.Shards, with.Spec.Replicas, with.Spec.Autoscale = new(shards), new(shards*a.PerShard()), nil
	return &with
}

// ShardsInForce is how many shards a cluster with spec.autoscale is to have: as many as its status says, or as exist when that says
// nothing, at least so many, and no more than are ever allowed. In a dry run the bounds are only those of a new cluster: one that stopped
// in the middle of being made has fewer shards than it is to have.
func (c *RedisCluster) ShardsInForce(exist, least int32) int32 {
	a, is := c.Spec.Autoscale, c.Status.Autoscale
	if is != nil {
		exist = is.Shards
	}
	if a.Mode == AutoscaleDryRun && exist > 0 && (is != nil || meta.IsStatusConditionTrue(c.Status.Conditions, ConditionFormed)) {
		return min(exist, MaxShards)
	}
	return max(min(exist, a.LargestShards()), least)
}
