// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// LabelPod with the value true is what a ConfigMap, Secret, PersistentVolumeClaim or ServiceAccount must carry to be
// named in spec.pod[0].overlay: who may write RedisClusters may not read every one of them.
const LabelPod = "redis.middleware.hc.cn/pod"

// ContainerRedis is the container of an instance that an overlay may say something of.
const ContainerRedis = "redis"

// ClientService says how the Service of clients looks. A change of it restarts nothing.
type ClientService struct {
	// labels are added to the Service. Labels of the operator's own cannot be set.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=271,displayName="Service Labels",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the Service.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=272,displayName="Service Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Annotations map[string]string `json:"annotations,omitempty"`

	// ipFamilies are IPv4, IPv6 or both, the first one first, of this Service and of the one that gives instances their
	// names. The first one cannot change. Default: the first family of the Kubernetes cluster.
	//
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=273,displayName="IP Families",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`

	// ipFamilyPolicy is SingleStack, PreferDualStack or RequireDualStack, for the same Services. Default: that of
	// Kubernetes, SingleStack.
	//
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=274,displayName="IP Family Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:SingleStack","urn:alm:descriptor:com.tectonic.ui:select:PreferDualStack","urn:alm:descriptor:com.tectonic.ui:select:RequireDualStack","urn:alm:descriptor:com.tectonic.ui:advanced"}
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`
}
