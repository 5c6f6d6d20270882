// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

func checkConfig(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	var refused field.ErrorList
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(cr.Spec.Config)) {
		at, value := specPath.Child("config").Key(name), cr.Spec.Config[name]
		if err := redisconf.CheckSetting(name, value); err != nil {
			if _, reserved := redisconf.Reserved(name); reserved {
				refused = append(refused, field.Forbidden(at, err.Error()))
				continue
			}
			refused = append(refused, field.Invalid(at, value, err.Error()))
			continue
		}
		canonical := redisconf.Canonical(name)
		if seen[canonical] {
			refused = append(refused, field.Duplicate(at, canonical))
		}
		seen[canonical] = true
	}
	return refused
}

// freeLabels are the recommended labels that the operator leaves to users.
var freeLabels = []string{"app.kubernetes.io/part-of", "app.kubernetes.io/version", "app.kubernetes.io/created-by"}

// controllerLabels are set by the StatefulSet's controller and have no domain.
var controllerLabels = []string{"controller-revision-hash", "pod-template-hash"}

func checkLabels(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	return addedLabels(podPath.Child("labels"), cr.Spec.Template().Labels)
}

// addedLabels are labels that are added to those that the operator sets.
func addedLabels(at *field.Path, labels map[string]string) field.ErrorList {
	refused := shared.Labels(at, labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		domain, _, hasDomain := strings.Cut(key, "/")
		owned := (hasDomain && shared.IsReserved(domain)) || slices.Contains(controllerLabels, key)
		if owned && !slices.Contains(freeLabels, key) {
			refused = append(refused,
				field.Forbidden(at.Key(key),
					"the operator and Kubernetes find objects by this label and set it themselves; remove it, or use a domain of your own"))
		}
	}
	return refused
}

func checkAnnotations(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	return shared.Annotations(podPath.Child("annotations"), cr.Spec.Template().Annotations)
}

func checkResources(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	return checkRequirements(podPath.Child("resources"), cr.Spec.Template().Resources)
}

// checkContainers is about what runs beside and before Redis.
func checkContainers(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	template := cr.Spec.Template()
	var refused field.ErrorList
	if monitor, at := template.Monitor, podPath.Child("monitor"); monitor != nil {
		if template.MonitorImage == "" {
			refused = append(refused,
				field.Forbidden(at, "it belongs to the container of monitorImage, which is not set: set it, or remove monitor"))
		}
		refused = append(refused, shared.Texts(at.Child("args"), monitor.Args)...)
		refused = append(refused, checkRequirements(at.Child("resources"), monitor.Resources)...)
	}
	if before, at := template.Init, podPath.Child("init"); before != nil {
		if template.InitImage == "" {
			refused = append(refused, field.Forbidden(at, "it belongs to the container of initImage, which is not set: set it, or remove init"))
		}
		refused = append(refused, shared.Texts(at.Child("args"), before.Args)...)
	}
	return refused
}

func checkRequirements(at *field.Path, r corev1.ResourceRequirements) field.ErrorList {
	var refused field.ErrorList
	if len(r.Claims) > 0 {
		refused = append(refused, field.Forbidden(at.Child("claims"), "an instance has no resource claims; remove it"))
	}
	refused = append(refused, checkQuantities(at.Child("limits"), r.Limits)...)
	refused = append(refused, checkQuantities(at.Child("requests"), r.Requests)...)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			refused = append(refused,
				field.Invalid(at.Child("requests").Key(string(name)), request.String(),
					fmt.Sprintf("must not exceed the limit of %s; lower the request or raise the limit", limit.String())))
		}
	}
	return refused
}

func checkQuantities(at *field.Path, list corev1.ResourceList) field.ErrorList {
	var refused field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if quantity := list[name]; quantity.Sign() < 0 {
			refused = append(refused, field.Invalid(at.Key(string(name)), quantity.String(), "must not be negative"))
		}
		if !isContainerResource(string(name)) {
			refused = append(refused,
				field.NotSupported(at, string(name), []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/device"}))
		}
	}
	return refused
}

// isContainerResource follows the API server's rule: a built-in resource of containers,
// or one of a domain.
func isContainerResource(name string) bool {
	switch {
	case name == "cpu", name == "memory", name == "ephemeral-storage", strings.HasPrefix(name, "hugepages-"):
		return true
	}
	return strings.Contains(name, "/") && len(validation.IsQualifiedName(name)) == 0
}

func checkScheduling(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	template := cr.Spec.Template()
	refused := shared.Labels(podPath.Child("nodeSelector"), template.NodeSelector)
	refused = append(refused, shared.Tolerations(podPath.Child("tolerations"), template.Tolerations)...)
	if strings.HasPrefix(template.PriorityClassName, "system-") {
		refused = append(refused,
			field.Forbidden(podPath.Child("priorityClassName"),
				"the system- classes would let a database evict what keeps the cluster running; use a class of your own"))
	}
	refused = append(refused, shared.Affinity(podPath.Child("affinity"), template.Affinity)...)
	refused = append(refused, shared.TopologySpread(podPath.Child("topologySpreadConstraints"), template.TopologySpreadConstraints)...)
	for i, constraint := range template.TopologySpreadConstraints {
		if cr.Spec.AntiAffinity == v1alpha1.AntiAffinityRequired && constraint.TopologyKey == corev1.LabelHostname &&
			constraint.WhenUnsatisfiable == corev1.DoNotSchedule {
			refused = append(refused,
				field.Forbidden(podPath.Child("topologySpreadConstraints").Index(i), "spec.antiAffinity Required is such a constraint of "+
					corev1.LabelHostname+", and a pod can have one; remove it, or set spec.antiAffinity to Preferred"))
		}
	}
	return refused
}
