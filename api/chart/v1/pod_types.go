// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

// PodPlacement says where pods of a chart kind run, and with whose images.
type PodPlacement struct {
	// Labels of the nodes that pods may run on, as in a pod. Default: any node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=200,displayName="Node Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Taints of nodes that pods tolerate, as in a pod. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=201,displayName="Tolerations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Secrets with the credentials of image registries, as in a pod. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=202,displayName="Image Pull Secrets",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Priority class of the pods. Default: that of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=203,displayName="Priority Class",xDescriptors={"urn:alm:descriptor:io.kubernetes:scheduling.k8s.io:v1:PriorityClass","urn:alm:descriptor:com.tectonic.ui:advanced"}
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Which nodes pods prefer or need, by labels of nodes and by pods that are there, as in a pod. Default: none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=204,displayName="Affinity",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// PodVolumes says which files the pods of a chart kind have besides those of the image.
type PodVolumes struct {
	// Volumes of the pods, as in a pod: of ConfigMaps, Secrets and claims of the namespace, of the pod itself, and empty ones. Names are
	// free but for "tmp". Default: an empty /tmp.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=205,displayName="Volumes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Volumes []Volume `json:"volumes,omitempty"`

	// Where the container has these volumes, as in a pod. Default: nowhere.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=20
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=206,displayName="Volume Mounts",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
}

// Volume is one of a pod, with one of the sources that reach neither a node nor the API server.
type Volume struct {
	// Name of the volume: lower-case letters, digits and hyphens. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// A ConfigMap of the namespace.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// A Secret of the namespace.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// A claim of the namespace. The files of one that is not mounted readOnly get the group 65532.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// An empty directory, which goes with the pod.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`

	// What is known of the pod itself.
	// +optional
	DownwardAPI *corev1.DownwardAPIVolumeSource `json:"downwardAPI,omitempty"`

	// Several of these in one directory.
	// +optional
	Projected *ProjectedVolume `json:"projected,omitempty"`
}

// ProjectedVolume is a directory with files of several sources.
type ProjectedVolume struct {
	// What the directory has. Required.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Sources []ProjectedSource `json:"sources,omitempty"`

	// Mode of the files, in octal, or decimal in JSON. Default: 0644.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// ProjectedSource is one of the sources of a projected volume.
type ProjectedSource struct {
	// Keys of a ConfigMap of the namespace.
	// +optional
	ConfigMap *corev1.ConfigMapProjection `json:"configMap,omitempty"`

	// Keys of a Secret of the namespace.
	// +optional
	Secret *corev1.SecretProjection `json:"secret,omitempty"`

	// What is known of the pod itself.
	// +optional
	DownwardAPI *corev1.DownwardAPIProjection `json:"downwardAPI,omitempty"`
}

// VolumeMount is where the container has a volume.
type VolumeMount struct {
	// Name of the volume. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Path in the container, without a colon. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	MountPath string `json:"mountPath"`

	// File or directory of the volume to mount, of one that no pod writes to. Default: all of it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SubPath string `json:"subPath,omitempty"`

	// Whether the container cannot write there.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// InPod is the volume in the words of a pod.
func (v *Volume) InPod() corev1.Volume {
	is := corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{ConfigMap: v.ConfigMap, Secret: v.Secret,
		PersistentVolumeClaim: v.PersistentVolumeClaim, EmptyDir: v.EmptyDir, DownwardAPI: v.DownwardAPI}}
	if p := v.Projected; p != nil {
		is.Projected = &corev1.ProjectedVolumeSource{DefaultMode: p.DefaultMode}
		for _, s := range p.Sources {
			is.Projected.Sources = append(is.Projected.Sources,
				corev1.VolumeProjection{ConfigMap: s.ConfigMap, Secret: s.Secret, DownwardAPI: s.DownwardAPI})
		}
	}
	return is
}
