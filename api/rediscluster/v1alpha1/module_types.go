// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Module is a module that every instance loads when it starts.
type Module struct {
	// name is the module: bloom, search, json or timeseries of an image redis:8 or
	// later, bloom, search or json of an image valkey-bundle, or the absolute path of
	// the module's file in any image (/usr/lib/modules/mine.so). Required.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Module",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`

	// args are handed to the module when it is loaded, each as one argument. Default:
	// none.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Module Arguments"
	Args []string `json:"args,omitempty"`
}
