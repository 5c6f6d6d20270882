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
}
