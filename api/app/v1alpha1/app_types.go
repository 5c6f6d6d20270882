// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	chartv1 "middleware.hc.cn/operator/api/chart/v1"
)

// AppSpec says which image to run and how it is reached.
type AppSpec struct {
	// Container image to run. Required. It runs as user 65532 with a read-only
	// root file system and a writable /tmp.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// Number of pods. Without effect while autoscaling is set.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// Command that replaces the image's entrypoint. $(NAME) refers to an
	// environment variable, as in a pod. Default: the image's own entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	Command []string `json:"command,omitempty"`

	// Arguments of the command. Default: the image's own arguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	Args []string `json:"args,omitempty"`

	// Environment variables, as in a pod. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Env []corev1.EnvVar `json:"env,omitempty"`

	// ConfigMaps and Secrets whose entries become environment variables, as in a
	// pod. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Computing resources of each pod. Default: none are requested. Autoscaling
	// needs requests.cpu.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// Ports that the container listens on. The first one is what the Ingress and
	// the probes use. An empty list means that nothing is served.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:default={{name: "http", containerPort: 8080, servicePort: 80, protocol: "TCP"}}
	Ports []Port `json:"ports,omitzero"`

	// How the health of a pod is asked for. Default: a pod is ready when its first
	// port accepts TCP connections.
	// +optional
	Probes *Probes `json:"probes,omitempty"`

	// Service in front of the pods.
	// +optional
	// +kubebuilder:default={}
	Service Service `json:"service,omitempty,omitzero"`

	// Ingress that leads to the Service.
	// +optional
	// +kubebuilder:default={}
	Ingress Ingress `json:"ingress,omitempty,omitzero"`

	// Lets the number of pods follow the load. Default: replicas applies.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// A second version beside the first one, which a part of the traffic reaches.
	// Default: none.
	// +optional
	Canary *Canary `json:"canary,omitempty"`
}

// Port is a port of the container and of the Service.
type Port struct {
	// Name of the port. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// Port that the container listens on. It runs without privileges, so ports
	// below 1024 may be out of its reach. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ContainerPort int32 `json:"containerPort"`

	// Port of the Service. Default: the same as containerPort.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ServicePort int32 `json:"servicePort,omitempty"`

	// Protocol of the port.
	// +optional
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// Probes says how the health of a pod is asked for.
// +kubebuilder:validation:XValidation:rule="!has(self.path) || size(self.path) == 0 || self.path.startsWith('/')",message="path must begin with a slash",fieldPath=".path"
type Probes struct {
	// HTTP path that answers with a status from 200 to 399 while the pod is well,
	// such as /healthz. A pod that fails it gets no traffic, and is restarted when
	// it fails for a minute. Default: no HTTP request, the port must accept TCP
	// connections for the pod to get traffic.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// Name or number of the container's port. Default: the first of ports.
	// +optional
	Port *intstr.IntOrString `json:"port,omitempty"`
}

// Service configures the Service in front of the pods.
type Service struct {
	// Whether there is a Service.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// How the Service is reached: within the cluster only, through a port of every
	// node, or through a load balancer.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// Annotations of the Service. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Ingress configures the Ingress that leads to the Service.
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.host) && size(self.host) > 0)",message="host is required when the Ingress is enabled: without one it would receive the requests of every host",fieldPath=".host"
// +kubebuilder:validation:XValidation:rule="!has(self.path) || self.path.startsWith('/')",message="path must begin with a slash",fieldPath=".path"
type Ingress struct {
	// Whether there is an Ingress.
	// +optional
	// +kubebuilder:default=false
	Enabled *bool `json:"enabled,omitempty"`

	// IngressClass that serves the Ingress. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClassName string `json:"className,omitempty"`

	// Host name that the Ingress answers for, such as app.example.com or
	// *.example.com. Required when the Ingress is enabled.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`

	// Path below which requests go to the App.
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// How the path is compared.
	// +optional
	// +kubebuilder:default=Prefix
	// +kubebuilder:validation:Enum=Prefix;Exact;ImplementationSpecific
	PathType string `json:"pathType,omitempty"`

	// Secret with the certificate of the host. Default: no TLS.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TLSSecretName string `json:"tlsSecretName,omitempty"`

	// Annotations of the Ingress. Configuration snippets and the canary annotations
	// of ingress-nginx are refused. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Autoscaling lets the number of pods follow their CPU load.
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not exceed maxReplicas",fieldPath=".minReplicas"
type Autoscaling struct {
	// Least number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// Greatest number of pods. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas int32 `json:"maxReplicas"`

	// CPU load to aim at, in percent of resources.requests.cpu.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	TargetCPUUtilization *int32 `json:"targetCPUUtilization,omitempty"`
}

// Canary is a second version that a part of the traffic reaches. The Ingress
// must be served by ingress-nginx. Canary pods are as many as weight percent of
// replicas, and at least one.
// +kubebuilder:validation:XValidation:rule="!has(self.headerValue) || size(self.headerValue) == 0 || (has(self.header) && size(self.header) > 0)",message="headerValue needs header",fieldPath=".headerValue"
type Canary struct {
	// Container image of the second version. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// Share of the requests that reach the second version, in percent.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`

	// HTTP header that selects the version, whatever the weight. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9][A-Za-z0-9-]*)?$`
	Header string `json:"header,omitempty"`

	// Value of the header that selects the second version. Default: "always"
	// selects the second version and "never" the first one.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._~-]*$`
	HeaderValue string `json:"headerValue,omitempty"`
}

// AppStatus says how the App does and where it is.
type AppStatus struct {
	chartv1.ReleaseStatus `json:",inline"`

	// Number of pods, canary pods not counted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Number of pods that are ready, canary pods not counted.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Label selector of the pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Where the App answers: the host of the Ingress, or the name of the Service
	// within the cluster.
	// +optional
	URL string `json:"url,omitempty"`
}

// App is a web application: pods, a Service, an Ingress, and on request
// autoscaling and a canary.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=apps,singular=app,categories={all,middleware}
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="metadata.name must begin with a letter, hold only lower case letters, digits and hyphens, and have at most 56 characters, because it becomes the name of a Service"
type App struct {
	metav1.TypeMeta `json:",inline"`
	// Name, namespace, labels and annotations of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run and how it is reached.
	// +required
	Spec AppSpec `json:"spec"`

	// How the App does and where it is. Written by the operator.
	// +optional
	Status AppStatus `json:"status,omitempty"`
}

// AppList is a list of Apps.
//
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// The Apps.
	Items []App `json:"items"`
}
