// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the part of the status that every chart kind shares. It is
// no API group of its own: a chart kind embeds ReleaseStatus inline, and the
// chart engine writes these fields whatever the kind. The name of a group is
// for the API reference, which would leave its types out.
//
// +kubebuilder:object:generate=true
// +groupName=shared
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleaseStatus is what the chart engine reports about the release of an object.
type ReleaseStatus struct {
	// Generation of the object that this status describes.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=90,displayName="Observed Generation",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State of the object. Ready is what most people wait for
	// (kubectl wait --for=condition=Ready).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=50,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Helm release that is deployed.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=60,displayName="Deployed Release"
	DeployedRelease *DeployedRelease `json:"deployedRelease,omitempty"`

	// Objects that belong to this one. It is recorded before they are applied,
	// so that none is ever lost track of.
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=70,displayName="Inventory"
	Inventory []InventoryEntry `json:"inventory,omitempty"`

	// How far the chart's hooks are, while they run.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=80,displayName="Hook Progress"
	Hooks *HookProgress `json:"hooks,omitempty"`
}

// HookProgress tells how far the hooks of one event are.
type HookProgress struct {
	// Event whose hooks run: pre-install, post-install, pre-upgrade, post-upgrade,
	// pre-delete or post-delete.
	Event string `json:"event"`

	// Revision of the release that they run for.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Digest of the release that they run for.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Number of the event's hooks that have succeeded.
	// +optional
	Completed int64 `json:"completed,omitempty"`

	// How often the hook that is next has failed.
	// +optional
	Failures int64 `json:"failures,omitempty"`

	// Why it failed last.
	// +optional
	Message string `json:"message,omitempty"`

	// When it failed last.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
}

// DeployedRelease identifies the Helm release that is deployed.
type DeployedRelease struct {
	// Name of the release, as "helm list" shows it.
	// +optional
	Name string `json:"name,omitempty"`

	// Revision of the release, counting from 1.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Digest of the chart, its values and the cluster's capabilities, from which
	// the release was rendered.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Rendered manifest, where the operator records it. "helm get manifest"
	// always shows it.
	// +optional
	Manifest string `json:"manifest,omitempty"`

	// Digest of the chart and of what the operator gives it besides the spec.
	// +optional
	Chart string `json:"chart,omitempty"`

	// Digest of the spec that the release was made by.
	// +optional
	Spec string `json:"spec,omitempty"`

	// When it was the object's turn to take what is new in the operator.
	// +optional
	Turn *ReleaseTurn `json:"turn,omitempty"`
}

// ReleaseTurn is the turn of an object to take what is new in the operator: canaries first, then waves.
type ReleaseTurn struct {
	// Digest of the chart that it is the turn for.
	// +optional
	Chart string `json:"chart,omitempty"`

	// Digest of the spec when the turn came.
	// +optional
	Spec string `json:"spec,omitempty"`

	// Number of the wave that the object went with: 1 are the canaries.
	// +optional
	Wave int64 `json:"wave,omitempty"`

	// When the turn came.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// When the object was ready with what it took.
	// +optional
	DoneTime *metav1.Time `json:"doneTime,omitempty"`
}

// InventoryEntry identifies one object that was applied.
type InventoryEntry struct {
	// API group, empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// API version within the group.
	Version string `json:"version"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object, empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`

	// UID of the object, once it was seen.
	// +optional
	UID string `json:"uid,omitempty"`

	// Digest of the fields that were applied. After a restart the operator
	// recognises by it, without a request, that nobody changed the object.
	// +optional
	Fields string `json:"fields,omitempty"`
}
