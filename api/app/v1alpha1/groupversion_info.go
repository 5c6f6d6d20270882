// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

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

// SchemeGroupVersion and Resource are what generated clients, listers and
// informers call the same.
var SchemeGroupVersion = GroupVersion

// Resource is the group's resource of that name.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}
