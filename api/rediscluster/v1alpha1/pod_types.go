// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodTemplate is what every instance's pod has in common.
type PodTemplate struct {
	// labels are added to the pods. Labels of the operator's own cannot be set.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=90,displayName="Labels",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=91,displayName="Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Annotations map[string]string `json:"annotations,omitempty"`

	// env are added to the Redis container. Names that the operator sets cannot be
	// used, and values come from the manifest, from the pod's own fields or from its
	// own resources; not from Secrets or ConfigMaps. MAXMEMORY is a memory size such as
	// 2gb, and taken for the setting maxmemory where config and configmap have none; no
	// other variable is a setting.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=89,displayName="Environment Variables",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Env []corev1.EnvVar `json:"env,omitempty"`

	// affinity of the pods. podAntiAffinity replaces the preference of a shard's instances
	// for different nodes and zones. See antiAffinity.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=92,displayName="Affinity",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// resources of the Redis container.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=81,displayName="Resource Requirements",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements"}
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// updateStrategy says who restarts instances when their template changes.
	//
	// +kubebuilder:default={}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=98,displayName="Pod Update Strategy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	UpdateStrategy PodUpdateStrategy `json:"updateStrategy,omitempty"`

	// volumes says where data is kept when it is not in a claim an instance (see
	// storage).
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=83,displayName="Data Volume",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Volumes *Volumes `json:"volumes,omitempty"`

	// configmap is the name of a ConfigMap in the same namespace whose key redis.conf
	// holds settings, merged under what the operator must own.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=82,displayName="Configuration ConfigMap",xDescriptors={"urn:alm:descriptor:io.kubernetes:ConfigMap"}
	Configmap string `json:"configmap,omitempty"`

	// monitorImage is the image of a Redis exporter. When set, it runs beside every
	// instance and serves metrics on port 9121.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=86,displayName="Exporter Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MonitorImage string `json:"monitorImage,omitempty"`

	// monitor says more about the container of monitorImage. It cannot be set without it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=861,displayName="Exporter Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Monitor *MonitorContainer `json:"monitor,omitempty"`

	// initImage is the image of an init container that runs its own entrypoint, with
	// the data directory mounted at /data, before Redis starts. See init.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=87,displayName="Init Container Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	InitImage string `json:"initImage,omitempty"`

	// init gives the container of initImage the variables of env and, read-only, the
	// configuration at /etc/redis/redis.conf; {} is enough. Without init it has neither.
	// It cannot be set without initImage.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=871,displayName="Init Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Init *InitContainer `json:"init,omitempty"`

	// middlewareImage overrides repository and version: the whole image reference of
	// the Redis container.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=88,displayName="Redis Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	MiddlewareImage string `json:"middlewareImage,omitempty"`

	// nodeSelector of the pods.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=93,displayName="Node Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=94,displayName="Tolerations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints of the pods. Without any, the instances of the cluster
	// prefer to be spread evenly over zones and over nodes; these replace that. Their
	// labelSelector can name redis.middleware.hc.cn/cluster, whose value is the name of the
	// RedisCluster.
	//
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=95,displayName="Topology Spread Constraints",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName of the pods.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=96,displayName="Priority Class",xDescriptors={"urn:alm:descriptor:io.kubernetes:scheduling.k8s.io:v1:PriorityClass","urn:alm:descriptor:com.tectonic.ui:advanced"}
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets of the pods.
	//
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=97,displayName="Image Pull Secrets",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// overlay is a part of a pod spec (core/v1), with its words, that is merged into the pods': sidecars and init
	// containers, volumes, mounts and the times of probes of the container redis, serviceAccountName, securityContext,
	// dnsPolicy, dnsConfig, hostAliases, runtimeClassName and terminationGracePeriodSeconds, within the restricted Pod
	// Security Standard. The webhook and the operator check it; its schema is not repeated here.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=981,displayName="Pod Overlay",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Overlay *runtime.RawExtension `json:"overlay,omitempty"`
}

// MonitorContainer says more about the container of monitorImage.
type MonitorContainer struct {
	// resources of the container. Default: requests of 10m cpu and 32Mi memory, and a
	// limit of 128Mi memory; what is set here replaces all of that.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=862,displayName="Exporter Resources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// args are the arguments of the image's entrypoint.
	//
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=863,displayName="Exporter Arguments",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Args []string `json:"args,omitempty"`
}

// InitContainer says more about the container of initImage.
type InitContainer struct {
	// args are the arguments of the image's entrypoint.
	//
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=872,displayName="Init Arguments",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Args []string `json:"args,omitempty"`
}

// PodUpdateStrategy says who restarts instances when their template changes.
type PodUpdateStrategy struct {
	// type is RollingUpdate (the operator restarts one instance at a time, failing
	// over first) or OnDelete (it waits for you to delete pods).
	//
	// +kubebuilder:default=RollingUpdate
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=99,displayName="Update Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:RollingUpdate","urn:alm:descriptor:com.tectonic.ui:select:OnDelete"}
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
	// pvc without a name is a claim an instance, whose size and class are those of
	// spec.storage). Required.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=84,displayName="Volume Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:emptyDir","urn:alm:descriptor:com.tectonic.ui:select:hostPath","urn:alm:descriptor:com.tectonic.ui:select:nfs","urn:alm:descriptor:com.tectonic.ui:select:pvc"}
	Type VolumeType `json:"type"`

	// persistentVolumeClaimName is the existing claim of the types nfs and pvc.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=85,displayName="Volume Claim",xDescriptors={"urn:alm:descriptor:io.kubernetes:PersistentVolumeClaim"}
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
