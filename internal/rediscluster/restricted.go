// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"

	"middleware.hc.cn/operator/internal/admission/rules"
)

// restricted refuses objects whose pods do not keep to the restricted Pod Security Standard, whatever the namespace allows: the operator
// makes them with its own rights. A directory of the node, which only --allow-host-path admits, and the container that hands it to Redis
// are the exception.
func restricted(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		template, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
		if err != nil || !found {
			continue
		}
		var spec corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &spec); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		data := func(v corev1.Volume) bool { return v.Name == "data" && v.HostPath != nil }
		if slices.ContainsFunc(spec.Volumes, data) {
			spec.Volumes = slices.DeleteFunc(spec.Volumes, data)
			spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == "data-owner" })
		}
		at := field.NewPath("spec", "template", "spec")
		refused := rules.PodSecurity(at, api.LevelRestricted, "a RedisCluster", &metav1.ObjectMeta{}, &spec)
		if len(refused) > 0 {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), refused.ToAggregate())
		}
	}
	return nil
}
