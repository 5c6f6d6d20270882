// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds App: a web application with its Service, Ingress, autoscaling and canary.
//
// +kubebuilder:object:generate=true
// +groupName=appcontroller.middleware.hc.cn
package v1alpha1
