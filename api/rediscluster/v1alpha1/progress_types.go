// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TransferProgress is how far a backup or a restore is, by what its pods say of themselves.
type TransferProgress struct {
	// stage is Reading (data comes from the instances), Marking (the moment of the backup is set), ReadingBack (what was written
	// is read back from the store) or Restoring.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=220,displayName="Stage",xDescriptors={"urn:alm:descriptor:text"}
	Stage string `json:"stage"`

	// percent of the work that is done. What a backup reads counts as much as what it reads back. It is absent while it is not
	// known.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=221,displayName="Percent",xDescriptors={"urn:alm:descriptor:text"}
	Percent *int32 `json:"percent,omitempty"`

	// estimatedEnd is when the work is done if it goes on as it went.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=222,displayName="Estimated End",xDescriptors={"urn:alm:descriptor:text"}
	EstimatedEnd *metav1.Time `json:"estimatedEnd,omitempty"`

	// bytes are done in this stage.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=223,displayName="Bytes",xDescriptors={"urn:alm:descriptor:text"}
	Bytes int64 `json:"bytes"`

	// expectedBytes is how many there are in this stage; while data comes from the instances, an estimate. It is absent while it is
	// not known.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=224,displayName="Bytes Expected",xDescriptors={"urn:alm:descriptor:text"}
	ExpectedBytes int64 `json:"expectedBytes,omitempty"`

	// shards are the same of each shard. They are left out where there are too many to be told by a pod.
	//
	// +listType=map
	// +listMapKey=shard
	// +kubebuilder:validation:MaxItems=500
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=225,displayName="Shards"
	Shards []ShardProgress `json:"shards,omitempty"`
}

// ShardProgress is one shard's part of a TransferProgress.
type ShardProgress struct {
	// shard is its number, from 0.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=226,displayName="Shard",xDescriptors={"urn:alm:descriptor:text"}
	Shard int32 `json:"shard"`
	// bytes are done.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=227,displayName="Bytes",xDescriptors={"urn:alm:descriptor:text"}
	Bytes int64 `json:"bytes"`
	// expectedBytes is how many there are.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=228,displayName="Bytes Expected",xDescriptors={"urn:alm:descriptor:text"}
	ExpectedBytes int64 `json:"expectedBytes,omitempty"`
}
