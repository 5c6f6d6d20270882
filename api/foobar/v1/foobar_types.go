// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	chartv1 "middleware.hc.cn/operator/api/chart/v1"
)

// Condition types that follow the Job of the present command.
const (
	// ConditionComplete is True once the command has succeeded.
	ConditionComplete = "Complete"
	// ConditionFailed is True once the command has failed for good.
	ConditionFailed = "Failed"
)

// FooBarSpec says what to run, and what runs it again.
type FooBarSpec struct {
	// Text that the command finds in its environment as FOO.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Foo",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Foo string `json:"foo,omitempty"`

	// What runs the command again: "true", each change of foo, command or image;
	// "false", a change of command or image only (a later run then sees the new
	// foo). A change of barz itself runs it, too. The command finds this value in
	// its environment as BARZ.
	// +optional
	// +kubebuilder:default="false"
	// +kubebuilder:validation:Enum="true";"false"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Run Again on Every Change",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:true","urn:alm:descriptor:com.tectonic.ui:select:false"}
	Barz string `json:"barz,omitempty"`

	// Shell command, run by "sh -c" in the image. Required. It reaches the shell
	// exactly as it is written here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Command",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Command string `json:"command"`

	// Container image that runs the command. It must hold a shell. Default:
	// docker.io/library/busybox:1.36, or what the operator's RELATED_IMAGE_FOOBAR_SHELL
	// says; it is written here when the object is made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image,omitempty"`

	chartv1.PodPlacement `json:",inline"`
	chartv1.PodVolumes   `json:",inline"`
}

// FooBarStatus says how the command does.
type FooBarStatus struct {
	chartv1.ReleaseStatus `json:",inline"`

	// Successful and wanted runs, such as 1/1.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="Completions",xDescriptors={"urn:alm:descriptor:text"}
	Completions string `json:"completions,omitempty"`

	// Job that runs the present command: kubectl logs job/NAME shows its output.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Job",xDescriptors={"urn:alm:descriptor:io.kubernetes:Job"}
	JobName string `json:"jobName,omitempty"`
}

// FooBar runs a shell command to completion.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foobars,singular=foobar,categories=middleware
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, an example kind of the Middleware Operator in a protected group; it is not part of Kubernetes and nobody reviewed it"
// +kubebuilder:printcolumn:name="Command",type=string,JSONPath=`.spec.command`
// +kubebuilder:printcolumn:name="Completions",type=string,JSONPath=`.status.completions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must have at most 52 characters, because the name of its Job appends 11"
// +operator-sdk:csv:customresourcedefinitions:order=5,displayName="Foo Bar",resources={{Job,v1},{Pod,v1},{ConfigMap,v1},{Secret,v1},{Event,v1}}
type FooBar struct {
	metav1.TypeMeta `json:",inline"`
	// Name, namespace, labels and annotations of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run, and what runs it again.
	// +required
	Spec FooBarSpec `json:"spec"`

	// How the command does. Written by the operator.
	// +optional
	Status FooBarStatus `json:"status,omitempty"`
}

// FooBarList is a list of FooBars.
//
// +kubebuilder:object:root=true
type FooBarList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// The FooBars.
	Items []FooBar `json:"items"`
}
