// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// spread is how pods are spread once the chart has added whose pods count.
func spread(constraints []corev1.TopologySpreadConstraint) []corev1.TopologySpreadConstraint {
	constraints = slices.Clone(constraints)
	for i := range constraints {
		if constraints[i].LabelSelector == nil {
			constraints[i].LabelSelector = &metav1.LabelSelector{}
		}
	}
	return constraints
}

func resources(at *field.Path, r corev1.ResourceRequirements) field.ErrorList {
	var refused field.ErrorList
	if len(r.Claims) > 0 {
		refused = append(refused, field.Forbidden(at.Child("claims"), "an App has no resource claims; remove it"))
	}
	for _, list := range []struct {
		name string
		list corev1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.list)) {
			if quantity := list.list[name]; quantity.Sign() < 0 {
				refused = append(refused, field.Invalid(at.Child(list.name).Key(string(name)), quantity.String(), "must not be negative"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			refused = append(refused, field.Invalid(at.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must not exceed the limit of %s", limit.String())))
		}
	}
	return refused
}

func ports(at *field.Path, ports []v1alpha1.Port) field.ErrorList {
	var refused field.ErrorList
	type number struct {
		port     int32
		protocol corev1.Protocol
	}
	names, container, service := map[string]bool{}, map[number]bool{}, map[number]bool{}
	duplicate := func(at *field.Path, value any, there bool) {
		if there {
			refused = append(refused, field.Duplicate(at, value))
		}
	}
	for i, p := range ports {
		at := at.Index(i)
		for _, problem := range validation.IsValidPortName(p.Name) {
			refused = append(refused, field.Invalid(at.Child("name"), p.Name, problem))
		}
		refused = append(refused, rules.Range(at.Child("containerPort"), &p.ContainerPort, 1, 65535)...)
		servicePort := p.ServicePort
		if servicePort == 0 {
			servicePort = p.ContainerPort
		} else {
			refused = append(refused, rules.Range(at.Child("servicePort"), &servicePort, 1, 65535)...)
		}
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		refused = append(refused, rules.OneOf(at.Child("protocol"), protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		duplicate(at.Child("name"), p.Name, names[p.Name])
		duplicate(at.Child("containerPort"), p.ContainerPort, container[number{p.ContainerPort, protocol}])
		duplicate(at.Child("servicePort"), servicePort, service[number{servicePort, protocol}])
		names[p.Name] = true
		container[number{p.ContainerPort, protocol}] = true
		service[number{servicePort, protocol}] = true
	}
	return refused
}

func probes(at *field.Path, spec *v1alpha1.AppSpec) field.ErrorList {
	if spec.Probes == nil {
		return nil
	}
	var refused field.ErrorList
	if spec.Probes.Path != "" {
		refused = append(refused, httpPath(at.Child("path"), spec.Probes.Path)...)
	}
	noPorts := spec.Ports != nil && len(spec.Ports) == 0
	if noPorts && spec.Probes.Port == nil {
		refused = append(refused,
			field.Required(at.Child("port"), "spec.ports is empty, so there is no first port to ask; name the port's number"))
	}
	port := spec.Probes.Port
	if port == nil {
		return refused
	}
	if port.Type == intstr.Int {
		return append(refused, rules.Range(at.Child("port"), &port.IntVal, 1, 65535)...)
	}
	for _, p := range spec.Ports {
		if p.Name == port.StrVal {
			return refused
		}
	}
	if spec.Ports == nil && port.StrVal == "http" { // the default of ports
		return refused
	}
	return append(refused, field.NotFound(at.Child("port"), port.StrVal))
}

func autoscaling(at *field.Path, spec *v1alpha1.AppSpec) field.ErrorList {
	scaling := spec.Autoscaling
	if scaling == nil {
		return nil
	}
	refused := rules.Range(at.Child("minReplicas"), scaling.MinReplicas, 1, 1000)
	refused = append(refused, rules.Range(at.Child("maxReplicas"), &scaling.MaxReplicas, 1, 1000)...)
	refused = append(refused, rules.Range(at.Child("targetCPUUtilization"), scaling.TargetCPUUtilization, 1, 1000)...)
	if least := ptr.Deref(scaling.MinReplicas, 1); least > scaling.MaxReplicas {
		refused = append(refused,
			field.Invalid(at.Child("minReplicas"), least, fmt.Sprintf("must not exceed maxReplicas (%d)", scaling.MaxReplicas)))
	}
	request, limit := spec.Resources.Requests[corev1.ResourceCPU], spec.Resources.Limits[corev1.ResourceCPU]
	if request.Cmp(resource.Quantity{}) <= 0 && limit.Cmp(resource.Quantity{}) <= 0 { // a limit alone is the request, too
		refused = append(refused, field.Required(field.NewPath("spec", "resources", "requests").Key("cpu"),
			"autoscaling follows the load in percent of the requested CPU; request some, such as 100m"))
	}
	return refused
}
