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
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image"`

	// Number of pods. Without effect while autoscaling is set.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// Command that replaces the image's entrypoint. $(NAME) refers to an
	// environment variable, as in a pod. Default: the image's own entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=100,displayName="Command",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Command []string `json:"command,omitempty"`

	// Arguments of the command. Default: the image's own arguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=101,displayName="Arguments",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Args []string `json:"args,omitempty"`

	// Environment variables, as in a pod. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=90,displayName="Environment Variables",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Env []corev1.EnvVar `json:"env,omitempty"`

	// ConfigMaps and Secrets whose entries become environment variables, as in a
	// pod. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=91,displayName="Environment Sources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Computing resources of each pod. Default: none are requested. Autoscaling
	// needs requests.cpu.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=70,displayName="Resource Requirements",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:resourceRequirements"}
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// Ports that the container listens on. The first one is what the Ingress and
	// the probes use. An empty list means that nothing is served.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:default={{name: "http", containerPort: 8080, servicePort: 80, protocol: "TCP"}}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Ports"
	Ports []Port `json:"ports,omitzero"`

	// How the health of a pod is asked for. Default: a pod is ready when its first
	// port accepts TCP connections.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=80,displayName="Health Probes"
	Probes *Probes `json:"probes,omitempty"`

	// Service in front of the pods.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Service"
	Service Service `json:"service,omitempty,omitzero"`

	// Ingress that leads to the Service.
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=50,displayName="Ingress"
	Ingress Ingress `json:"ingress,omitempty,omitzero"`

	// Lets the number of pods follow the load. Default: replicas applies.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=60,displayName="Autoscaling"
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// A second version beside the first one, which a part of the traffic reaches.
	// Default: none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=110,displayName="Canary",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Canary *Canary `json:"canary,omitempty"`

	// How pods are spread over nodes and zones, as in a pod. Without a labelSelector, the pods of the same Deployment count: those of the
	// App, or those of its canary. Default: that of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=8
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=207,displayName="Topology Spread Constraints",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	chartv1.PodPlacement `json:",inline"`
	chartv1.PodVolumes   `json:",inline"`
}

// Port is a port of the container and of the Service.
type Port struct {
	// Name of the port. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=31,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`

	// Port that the container listens on. It runs without privileges, so ports
	// below 1024 may be out of its reach. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=32,displayName="Container Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	ContainerPort int32 `json:"containerPort"`

	// Port of the Service. Default: the same as containerPort.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=33,displayName="Service Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	ServicePort int32 `json:"servicePort,omitempty"`

	// Protocol of the port.
	// +optional
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=34,displayName="Protocol",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:TCP","urn:alm:descriptor:com.tectonic.ui:select:UDP","urn:alm:descriptor:com.tectonic.ui:select:SCTP"}
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
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=81,displayName="HTTP Path",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Path string `json:"path,omitempty"`

	// Name or number of the container's port. Default: the first of ports.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=82,displayName="Port",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Port *intstr.IntOrString `json:"port,omitempty"`
}

// Service configures the Service in front of the pods.
type Service struct {
	// Whether there is a Service.
	// +optional
	// +kubebuilder:default=true
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=41,displayName="Create Service",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Enabled *bool `json:"enabled,omitempty"`

	// How the Service is reached: within the cluster only, through a port of every
	// node, or through a load balancer.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=42,displayName="Service Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:ClusterIP","urn:alm:descriptor:com.tectonic.ui:select:NodePort","urn:alm:descriptor:com.tectonic.ui:select:LoadBalancer","urn:alm:descriptor:com.tectonic.ui:fieldDependency:service.enabled:true"}
	Type corev1.ServiceType `json:"type,omitempty"`

	// Annotations of the Service. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=43,displayName="Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:fieldDependency:service.enabled:true"}
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Ingress configures the Ingress that leads to the Service.
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.host) && size(self.host) > 0)",message="host is required when the Ingress is enabled: without one it would receive the requests of every host",fieldPath=".host"
// +kubebuilder:validation:XValidation:rule="!has(self.path) || self.path.startsWith('/')",message="path must begin with a slash",fieldPath=".path"
type Ingress struct {
	// Whether there is an Ingress.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=51,displayName="Create Ingress",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Enabled *bool `json:"enabled,omitempty"`

	// IngressClass that serves the Ingress. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=55,displayName="Ingress Class",xDescriptors={"urn:alm:descriptor:io.kubernetes:networking.k8s.io:v1:IngressClass","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	ClassName string `json:"className,omitempty"`

	// Host name that the Ingress answers for, such as app.example.com or
	// *.example.com. Required when the Ingress is enabled.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=52,displayName="Host",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	Host string `json:"host,omitempty"`

	// Path below which requests go to the App.
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=53,displayName="Path",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	Path string `json:"path,omitempty"`

	// How the path is compared.
	// +optional
	// +kubebuilder:default=Prefix
	// +kubebuilder:validation:Enum=Prefix;Exact;ImplementationSpecific
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=54,displayName="Path Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Prefix","urn:alm:descriptor:com.tectonic.ui:select:Exact","urn:alm:descriptor:com.tectonic.ui:select:ImplementationSpecific","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	PathType string `json:"pathType,omitempty"`

	// Secret with the certificate of the host. Default: no TLS.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=56,displayName="TLS Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	TLSSecretName string `json:"tlsSecretName,omitempty"`

	// Annotations of the Ingress. Configuration snippets and the canary annotations
	// of ingress-nginx are refused. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=57,displayName="Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	Annotations map[string]string `json:"annotations,omitempty"`

	// Gateway of the Gateway API that leads to the Service, by an HTTPRoute in place
	// of the Ingress, on clusters that serve HTTPRoute of gateway.networking.k8s.io/v1.
	// On others there is an Ingress. Default: none.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=121,displayName="Gateway",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:fieldDependency:ingress.enabled:true"}
	Gateway *Gateway `json:"gateway,omitempty"`
}

// Gateway names a Gateway of the Gateway API. Whether it takes the route is for its
// listeners to say (allowedRoutes, hostname).
type Gateway struct {
	// Name of the Gateway. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=122,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`

	// Namespace of the Gateway. Default: the App's own.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=123,displayName="Namespace",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Namespace string `json:"namespace,omitempty"`

	// Listener of the Gateway. Default: every listener that takes the route.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=124,displayName="Listener",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	SectionName string `json:"sectionName,omitempty"`
}

// Autoscaling lets the number of pods follow their CPU load.
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not exceed maxReplicas",fieldPath=".minReplicas"
type Autoscaling struct {
	// Least number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=61,displayName="Minimum Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// Greatest number of pods. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=62,displayName="Maximum Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	MaxReplicas int32 `json:"maxReplicas"`

	// CPU load to aim at, in percent of resources.requests.cpu.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=63,displayName="Target CPU Utilization",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	TargetCPUUtilization *int32 `json:"targetCPUUtilization,omitempty"`
}

// Canary is a second version that a part of the traffic reaches: through an
// HTTPRoute (ingress.gateway), or through an Ingress whose controller knows the
// canary annotations of ingress-nginx. Canary pods are as many as weight percent
// of replicas, and at least one.
// +kubebuilder:validation:XValidation:rule="!has(self.headerValue) || size(self.headerValue) == 0 || (has(self.header) && size(self.header) > 0)",message="headerValue needs header",fieldPath=".headerValue"
type Canary struct {
	// Container image of the second version. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=111,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image"`

	// Share of the requests that reach the second version, in percent.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=112,displayName="Traffic Weight",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Weight *int32 `json:"weight,omitempty"`

	// HTTP header that selects the version, whatever the weight. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9][A-Za-z0-9-]*)?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=113,displayName="Header",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Header string `json:"header,omitempty"`

	// Value of the header that selects the second version. Default: "always"
	// selects the second version and "never" the first one.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._~-]*$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=114,displayName="Header Value",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	HeaderValue string `json:"headerValue,omitempty"`
}

// AppStatus says how the App does and where it is.
type AppStatus struct {
	chartv1.ReleaseStatus `json:",inline"`

	// Number of pods, canary pods not counted.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=30,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas,omitempty"`

	// Number of pods that are ready, canary pods not counted.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Ready Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Label selector of the pods, for the scale subresource.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=100,displayName="Pod Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Selector string `json:"selector,omitempty"`

	// Where the App answers: the host of the HTTPRoute or Ingress, or the name of
	// the Service within the cluster.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="URL",xDescriptors={"urn:alm:descriptor:org.w3:link"}
	URL string `json:"url,omitempty"`
}

// App is a web application: pods, a Service, an Ingress, and on request
// autoscaling and a canary.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=apps,singular=app,categories={all,middleware}
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="metadata.name must begin with a letter, hold only lower case letters, digits and hyphens, and have at most 56 characters, because it becomes the name of a Service"
// +operator-sdk:csv:customresourcedefinitions:order=2,displayName="App",resources={{Deployment,v1},{ReplicaSet,v1},{Pod,v1},{Service,v1},{Ingress,v1},{HTTPRoute,v1},{HorizontalPodAutoscaler,v2},{Secret,v1},{Event,v1}}
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
