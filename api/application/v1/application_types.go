// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of an Application.
const (
	// ConditionReady is True while the Deployment is as the template says and has
	// all its pods available.
	ConditionReady = "Ready"
	// ConditionProgressing is True while the Deployment is on its way there.
	ConditionProgressing = "Progressing"
	// ConditionStalled is True when only a change by a person can help.
	ConditionStalled = "Stalled"
	// ConditionPaused is True while the annotation middleware.hc.cn/pause keeps the
	// operator from changing the Deployment.
	ConditionPaused = "Paused"
)

// Reasons of the conditions of an Application.
const (
	// ReasonAvailable: the Deployment has all its pods available.
	ReasonAvailable = "Available"
	// ReasonRollingOut: the Deployment does not have all its pods available yet.
	ReasonRollingOut = "RollingOut"
	// ReasonDeploymentFailed: the Deployment gave up rolling out.
	ReasonDeploymentFailed = "DeploymentFailed"
	// ReasonInvalid: the spec is refused.
	ReasonInvalid = "Invalid"
	// ReasonConflict: a Deployment of someone else is in the way.
	ReasonConflict = "Conflict"
	// ReasonApplyFailed: the API server refused the Deployment.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonDeleting: the Application is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonSettled: nothing is left to do.
	ReasonSettled = "Settled"
)

// ApplicationSpec says which Deployment there has to be.
type ApplicationSpec struct {
	// Labels by which the Deployment is found. The template's labels must match
	// it. Required, and immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector is immutable: delete the Application and create it again"
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="selector must not be empty: an empty one would match every Deployment of the namespace"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:apps:v1:Deployment"}
	Selector *metav1.LabelSelector `json:"selector"`

	// Deployment to keep. Required.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.metadata) && has(self.metadata.name) ? self.metadata.name : '') == (has(oldSelf.metadata) && has(oldSelf.metadata.name) ? oldSelf.metadata.name : '')",message="metadata.name is immutable: delete the Application and create it again",fieldPath=".metadata"
	// +kubebuilder:validation:XValidation:rule="has(self.spec.selector) == has(oldSelf.spec.selector) && (!has(self.spec.selector) || self.spec.selector == oldSelf.spec.selector)",message="spec.selector is immutable: delete the Application and create it again",fieldPath=".spec"
	// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.namespace) || self.metadata.namespace == ''",message="metadata.namespace must be left out: the Deployment is made in the namespace of the Application",fieldPath=".metadata"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Deployment Template"
	Template DeploymentTemplate `json:"template"`
}

// DeploymentTemplate describes the Deployment to keep.
type DeploymentTemplate struct {
	// Name, labels and annotations of the Deployment.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=21,displayName="Deployment Metadata"
	Metadata TemplateMetadata `json:"metadata,omitempty,omitzero"`

	// Spec of the Deployment, as in apps/v1. Required. A field that is set here is
	// restored when another client changes it; a field that is left out belongs
	// to others (leave out replicas to let an autoscaler have them).
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Deployment Spec"
	Spec DeploymentSpec `json:"spec"`
}

// DeploymentSpec is the DeploymentSpec of apps/v1, field by field. It is spelled
// out because the schema of a whole pod spec (700 kB) would make the CRD larger
// than what "kubectl apply" can take.
type DeploymentSpec struct {
	// Number of pods. Default: 1 when the Deployment is made; afterwards it belongs
	// to others, such as an autoscaler.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=31,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// Labels of the pods that belong to the Deployment. Default: the selector of
	// the Application. Immutable, as in every Deployment.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=37,displayName="Pod Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:selector:core:v1:Pod","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Pods to run. Required.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=32,displayName="Pod Template"
	Template PodTemplate `json:"template"`

	// How pods are replaced by new ones. Default: RollingUpdate.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=38,displayName="Update Strategy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:updateStrategy"}
	Strategy appsv1.DeploymentStrategy `json:"strategy,omitempty,omitzero"`

	// Seconds that a pod must be ready before it counts as available. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=39,displayName="Minimum Ready Seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Number of old ReplicaSets to keep. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Revision History Limit",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Holds back the rollout of changes. Default: false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=42,displayName="Rollout Paused",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Paused bool `json:"paused,omitempty"`

	// Seconds after which a rollout that does not advance counts as failed.
	// Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=41,displayName="Progress Deadline Seconds",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// PodTemplate is the PodTemplateSpec of core/v1.
type PodTemplate struct {
	// Labels and annotations of the pods.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=33,displayName="Pod Metadata"
	Metadata PodMetadata `json:"metadata,omitempty,omitzero"`

	// Spec of the pods, as in core/v1. Required. The pods must keep to the
	// "baseline" Pod Security Standard and cannot choose a service account. The
	// webhook and the operator check it; its schema is not repeated here.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=36,displayName="Pod Spec"
	Spec corev1.PodSpec `json:"spec"`
}

// PodMetadata is the part of the pods' metadata that a template may set.
type PodMetadata struct {
	// Labels of the pods. They must match the selector.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=34,displayName="Pod Labels"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the pods. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=35,displayName="Pod Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Annotations map[string]string `json:"annotations,omitempty"`
}

// TemplateMetadata is the part of the Deployment's metadata that a template may set.
type TemplateMetadata struct {
	// Name of the Deployment. Default: the name of the Application. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=22,displayName="Deployment Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name,omitempty"`

	// Refused: the Deployment is made in the namespace of the Application.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=23,displayName="Namespace",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Namespace string `json:"namespace,omitempty"`

	// Labels of the Deployment. They must match the selector. Default: the labels
	// of the pod template.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=24,displayName="Deployment Labels"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the Deployment. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=25,displayName="Deployment Annotations",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ApplicationStatus says how the Deployment does.
type ApplicationStatus struct {
	// Generation of the object that this status describes.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=50,displayName="Observed Generation",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Number of reconciliations that had something to look at: a change of the
	// Application, or of its Deployment.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Reconciliations",xDescriptors={"urn:alm:descriptor:text"}
	Count int64 `json:"count,omitempty"`

	// Number of pods that are ready.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="Ready Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// What the last counted reconciliation looked at. An equal one is not counted
	// again.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=40,displayName="Observed State",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Observed string `json:"observed,omitempty"`

	// State of the object: Ready, Progressing, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=30,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Application keeps a Deployment as its template says: made when there is none,
// recreated when deleted, restored when changed, removed with the Application.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=applications,singular=application,categories=middleware
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Count",type=integer,JSONPath=`.status.count`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +operator-sdk:csv:customresourcedefinitions:order=3,displayName="Application",resources={{Deployment,v1},{ReplicaSet,v1},{Pod,v1},{Event,v1}}
type Application struct {
	metav1.TypeMeta `json:",inline"`
	// Name, namespace, labels and annotations of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which Deployment there has to be.
	// +required
	Spec ApplicationSpec `json:"spec"`

	// How the Deployment does. Written by the operator.
	// +optional
	Status ApplicationStatus `json:"status,omitempty"`
}

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// The Applications.
	Items []Application `json:"items"`
}
