// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// PodTemplate is what every instance's pod has in common.
type PodTemplate struct {
	// labels are added to the pods. Labels of the operator's own cannot be set.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// env are added to the Redis container. Names that the operator sets cannot be
	// used, and values come from the manifest, from the pod's own fields or from its
	// own resources; not from Secrets or ConfigMaps.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// affinity of the pods. When podAntiAffinity is unset, instances of a shard prefer
	// to run on different nodes.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// resources of the Redis container.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// updateStrategy says who restarts instances when their template changes.
	//
	// +kubebuilder:default={}
	// +optional
	UpdateStrategy PodUpdateStrategy `json:"updateStrategy,omitempty"`

	// volumes says where data is kept when it is not in a claim an instance (see
	// storage).
	//
	// +optional
	Volumes *Volumes `json:"volumes,omitempty"`

	// configmap is the name of a ConfigMap in the same namespace whose key redis.conf
	// holds settings, merged under what the operator must own.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Configmap string `json:"configmap,omitempty"`

	// monitorImage is the image of a Redis exporter. When set, it runs beside every
	// instance and serves metrics on port 9121.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	MonitorImage string `json:"monitorImage,omitempty"`

	// initImage is the image of an init container that runs its own entrypoint, with
	// the data directory mounted at /data, before Redis starts.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	InitImage string `json:"initImage,omitempty"`

	// middlewareImage overrides repository and version: the whole image reference of
	// the Redis container.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	MiddlewareImage string `json:"middlewareImage,omitempty"`

	// nodeSelector of the pods.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	//
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints of the pods.
	//
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName of the pods.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets of the pods.
	//
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// PodUpdateStrategy says who restarts instances when their template changes.
type PodUpdateStrategy struct {
	// type is RollingUpdate (the operator restarts one instance at a time, failing
	// over first) or OnDelete (it waits for you to delete pods).
	//
	// +kubebuilder:default=RollingUpdate
	// +optional
	Type PodUpdateStrategyType `json:"type,omitempty"`
}

// PodUpdateStrategyType names who restarts instances.
//
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type PodUpdateStrategyType string

// The pod update strategies.
const (
	RollingUpdate PodUpdateStrategyType = "RollingUpdate"
	OnDelete      PodUpdateStrategyType = "OnDelete"
)

// Volumes says where data is kept when it is not in a claim an instance.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'nfs' || (has(self.persistentVolumeClaimName) && size(self.persistentVolumeClaimName) > 0)",message="type nfs needs persistentVolumeClaimName, the claim of the shared volume",fieldPath=".persistentVolumeClaimName"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['emptyDir', 'hostPath']) || !has(self.persistentVolumeClaimName) || size(self.persistentVolumeClaimName) == 0",message="persistentVolumeClaimName belongs to the types nfs and pvc",fieldPath=".persistentVolumeClaimName"
type Volumes struct {
	// type is emptyDir (data lives as long as its pod), hostPath (a directory of the
	// node; the operator must be started with --allow-host-path), nfs or pvc (an
	// existing claim, shared by all instances, each in a directory of its own; type
	// pvc without a name is a claim an instance). Required.
	Type VolumeType `json:"type"`

	// persistentVolumeClaimName is the existing claim of the types nfs and pvc.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PersistentVolumeClaimName string `json:"persistentVolumeClaimName,omitempty"`
}

// VolumeType names where data is kept.
//
// +kubebuilder:validation:Enum=emptyDir;hostPath;nfs;pvc
type VolumeType string

// The volume types.
const (
	VolumeEmptyDir VolumeType = "emptyDir"
	VolumeHostPath VolumeType = "hostPath"
	VolumeNFS      VolumeType = "nfs"
	VolumePVC      VolumeType = "pvc"
)
