// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds FooBar: a shell command run to completion, once or on each change.
//
// +kubebuilder:object:generate=true
// +groupName=k8s.io
package v1
