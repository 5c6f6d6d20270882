// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds Application: a Deployment kept as its template says.
//
// +kubebuilder:object:generate=true
// +groupName=controller.controller.daocloud.io
package v1
