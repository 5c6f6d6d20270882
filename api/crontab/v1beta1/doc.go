// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds CronTab: a container image run on a cron schedule.
//
// +kubebuilder:object:generate=true
// +groupName=stable.example.com
package v1beta1
