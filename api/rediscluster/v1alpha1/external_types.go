// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of External. The schema markers below repeat them.
const (
	DefaultGateways          int32 = 2
	DefaultExternalFirstPort int32 = 7000
)

// Limits of External. The schema markers below repeat those of fields.
const (
	// MaxGateways is how many gateways there may be.
	MaxGateways int32 = 10
	// MaxExternalInstances is how many instances a cluster with clients outside may have, MaxExternalPerShard how many a shard: each has a
	// port of the Service.
	MaxExternalInstances int32 = 100
	MaxExternalPerShard  int32 = 10
	// MaxExternalFirstPort leaves a port for each instance that there may be.
	MaxExternalFirstPort int32 = 64525
)

// LabelGateway on a pod is the name of the RedisCluster that it leads clients outside to.
const LabelGateway = "redis.middleware.hc.cn/gateway"

// LabelExternalTLS with the value true is what a Secret must carry to be named in spec.external.tls.
const LabelExternalTLS = "redis.middleware.hc.cn/external-tls"

// ExternalMode says how clients outside reach instances.
//
// +kubebuilder:validation:Enum=Gateway
type ExternalMode string

// ExternalModeGateway leads them through gateways, which tell them one host with a port for each instance.
const ExternalModeGateway ExternalMode = "Gateway"

// ExternalType is the type of the Service that clients outside come to.
//
// +kubebuilder:validation:Enum=LoadBalancer;NodePort
type ExternalType string

// The types of the Service.
const (
	ExternalLoadBalancer ExternalType = "LoadBalancer"
	ExternalNodePort     ExternalType = "NodePort"
)

// External is how clients outside of Kubernetes reach a RedisCluster.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'NodePort' || has(self.host)",message="say where clients reach the nodes: a DNS name that leads to some of them, or the address of one",fieldPath=".host"
type External struct {
	// mode is how clients outside reach instances. Gateway, which is the default: through pods of the operator's that have a port for each
	// instance, and rewrite the addresses that instances tell.
	//
	// +kubebuilder:default=Gateway
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=251,displayName="Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Gateway","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Mode ExternalMode `json:"mode,omitempty"`

	// type of the Service that clients come to: LoadBalancer or NodePort. Required.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=252,displayName="Service Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:LoadBalancer","urn:alm:descriptor:com.tectonic.ui:select:NodePort"}
	Type ExternalType `json:"type"`

	// host is the DNS name or the IP address that clients use, for all instances. Default: what the load balancer says. Required for
	// NodePort: a name that leads to some of the nodes, or the address of one.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=253,displayName="Host",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Host string `json:"host,omitempty"`

	// firstPort is the port that leads to any instance. That of an instance is firstPort + 10 + 10 times its shard + its number, whatever
	// is scaled. Default: 7000 for LoadBalancer; for NodePort, node ports that Kubernetes chooses, which stay as long as the Service.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64525
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=254,displayName="First Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	FirstPort *int32 `json:"firstPort,omitempty"`

	// replicas is how many gateways there are.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=255,displayName="Gateways",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// sourceRanges are the networks that clients may come from, such as 192.0.2.0/24. Only nodes with a gateway accept connections then,
	// since the others would hide where they come from. Default: anywhere.
	//
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=49
	// +listType=set
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=256,displayName="Source Ranges"
	SourceRanges []string `json:"sourceRanges,omitempty"`

	// tls encrypts connections of clients outside. Required where spec.tls encrypts those inside.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=257,displayName="TLS"
	TLS *ExternalTLS `json:"tls,omitempty"`

	// resources of a gateway. Default: requests of 100m cpu and 64Mi memory, and a limit of 512Mi memory; what is set here replaces all
	// of that. A connection takes 64Ki.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=259,displayName="Gateway Resources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// annotations of the Service, by which load balancers and DNS are told what to do.
	//
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=261,displayName="Service Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ExternalTLS is the certificate that clients outside are shown.
type ExternalTLS struct {
	// secretName is a Secret of type kubernetes.io/tls with a certificate for the host, and with the label
	// redis.middleware.hc.cn/external-tls: "true". What is changed in it is used within a minute or two. Required.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=258,displayName="Certificate Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName"`
}

// ExternalStatus is how clients outside reach the cluster.
type ExternalStatus struct {
	// addresses are what to give to clients: HOST:PORT, which leads to any instance. It is empty until that is known.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=222,displayName="Addresses"
	Addresses []string `json:"addresses,omitempty"`

	// instances are how many instances of each shard gateways are told of, by shard.
	//
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=223,displayName="Instances",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Instances []int32 `json:"instances,omitempty"`

	// served are how many of them every gateway has said that it leads clients to, by shard. Slots move to others when they are among them.
	//
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=224,displayName="Served Instances",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Served []int32 `json:"served,omitempty"`

	// leaving are instances that are gone, and that clients may not have heard of yet.
	//
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=225,displayName="Leaving Instances",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Leaving []ExternalLeaving `json:"leaving,omitempty"`
}

// ExternalLeaving is an instance that is gone.
type ExternalLeaving struct {
	// name is that of its pod.
	//
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=226,displayName="Pod",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name"`

	// until is for how long gateways are told of it.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=227,displayName="Until",xDescriptors={"urn:alm:descriptor:text"}
	Until metav1.Time `json:"until"`
}

// ConditionExternalAccess is True while clients outside reach the cluster: at an address that is known, through a gateway that is ready. It
// is absent without spec.external.
const ConditionExternalAccess = "ExternalAccess"

// Reasons of ConditionExternalAccess.
const (
	// ReasonExternalAvailable: it is True.
	ReasonExternalAvailable = "Available"
	// ReasonExternalNotBegun: the cluster has not formed; gateways start when it has.
	ReasonExternalNotBegun = "NotBegun"
	// ReasonExternalAddressPending: the Service has no address or no node ports yet.
	ReasonExternalAddressPending = "AddressPending"
	// ReasonExternalBehind: a gateway that runs does not lead clients to all instances, and is not waited for any more.
	ReasonExternalBehind = "Behind"
	// ReasonExternalRefused: the API server does not take what is asked for. The message says why.
	ReasonExternalRefused = "Refused"
	// ReasonExternalWithheld: gateways may not be given what they need, such as a Secret.
	ReasonExternalWithheld = "Withheld"
	// ReasonExternalNotRunning: no gateway is ready. The message says why.
	ReasonExternalNotRunning = "NotRunning"
	// ReasonExternalHibernated: no instance runs, and no gateway (spec.hibernate).
	ReasonExternalHibernated = "Hibernated"
)

// GatewayName is the name of all that leads clients outside to the instances: the Deployment, its Service, its map and so on.
func (c *RedisCluster) GatewayName() string { return c.Name + "-gateway" }

// ExternalConfigMap is the ConfigMap that says where clients outside reach the cluster.
func (c *RedisCluster) ExternalConfigMap() string { return c.Name + "-external" }

// ExternalOffset is how far the port of an instance is from the first one, which leads to any instance; false: it has none.
func ExternalOffset(shard, ordinal int) (int32, bool) {
	if shard < 0 || shard >= int(MaxExternalInstances) || ordinal < 0 || ordinal >= int(MaxExternalPerShard) {
		return 0, false
	}
	return MaxExternalPerShard*(int32(shard)+1) + int32(ordinal), true
}

// ServicePort is the port of the Service that is so far from the first one.
func (e *External) ServicePort(offset int32) int32 {
	if e.FirstPort == nil {
		return DefaultExternalFirstPort + offset
	}
	return *e.FirstPort + offset
}

// GatewayCount is spec.external.replicas, or its default.
func (e *External) GatewayCount() int32 {
	if e.Replicas == nil {
		return DefaultGateways
	}
	return *e.Replicas
}
