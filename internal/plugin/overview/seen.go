// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview is what `kubectl middleware status` shows: a model of what was read, and the model as text. It is pure: the same
// objects, time and page give the same text.
package overview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Seen is what was read of a RedisCluster. A list that could not be read is empty, and Unread says so.
type Seen struct {
	Cluster *v1alpha1.RedisCluster
	Pods    []corev1.Pod
	Claims  []corev1.PersistentVolumeClaim
	// Events are those about the cluster, and warnings about its pods and claims.
	Events []corev1.Event
	// Memory is what the Redis container of each pod uses, by pod, as the cluster's metrics say.
	Memory map[string]resource.Quantity
	Unread []Unread
	Now    time.Time
}

// Unread is something that could not be read. What else there is, is shown all the same.
type Unread struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// SeenList is what was read of all kinds.
type SeenList struct {
	Objects []unstructured.Unstructured
	// AllNamespaces reports whether they are of more than one.
	AllNamespaces bool
	Unread        []Unread
	Now           time.Time
}
