// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds App: a web application with its Service, Ingress, autoscaling and canary.
//
// +kubebuilder:object:generate=true
// +groupName=appcontroller.middleware.hc.cn
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1"}

// SchemeBuilder collects what AddToScheme adds; AddToScheme adds this package's
// kinds to a scheme.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &App{}, &AppList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
