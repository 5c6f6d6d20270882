// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of RedisCluster, group redis.middleware.hc.cn.
//
// +kubebuilder:object:generate=true
// +groupName=redis.middleware.hc.cn
package v1alpha1
