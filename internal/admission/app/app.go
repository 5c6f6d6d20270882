// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app sets the defaults of an App and says what is wrong with one. The
// webhook and the operator call the same functions.
package app

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// maxName leaves room for "-canary" in the name of a Service, which has at most 63
// characters.
const maxName = 56

// maxSpec: an App with a hundred variables, ports and arguments has 20 KiB in 800 entries. It is rendered six times, with a
// canary and to check what its strings make of the objects.
var maxSpec = rules.Size{Bytes: 128 << 10, Entries: 4000}

// Default sets what the CRD's schema sets too; a test holds them together. It also
// sets a port's servicePort to its containerPort, which a schema cannot say.
func Default(a *v1alpha1.App) {
	spec := &a.Spec
	setDefault(&spec.Replicas, 1)
	if spec.Ports == nil {
		spec.Ports = []v1alpha1.Port{{Name: "http", ContainerPort: 8080, ServicePort: 80}}
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if port.ServicePort == 0 {
			port.ServicePort = port.ContainerPort
		}
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
	}
	setDefault(&spec.Service.Enabled, true)
	if spec.Service.Type == "" {
		spec.Service.Type = corev1.ServiceTypeClusterIP
	}
	setDefault(&spec.Ingress.Enabled, false)
	if spec.Ingress.Path == "" {
		spec.Ingress.Path = "/"
	}
	if spec.Ingress.PathType == "" {
		spec.Ingress.PathType = "Prefix"
	}
	if scaling := spec.Autoscaling; scaling != nil {
		setDefault(&scaling.MinReplicas, 1)
		setDefault(&scaling.TargetCPUUtilization, 80)
	}
	if spec.Canary != nil {
		setDefault(&spec.Canary.Weight, 0)
	}
}

func setDefault[T any](value **T, to T) {
	if *value == nil {
		*value = ptr.To(to)
	}
}

// Validate says everything that is wrong with an App.
func Validate(a *v1alpha1.App) field.ErrorList {
	spec, at := &a.Spec, field.NewPath("spec")
	if refused := rules.AtMost(at, spec, maxSpec); len(refused) > 0 {
		return refused
	}
	refused := name(a.Name)
	refused = append(refused, rules.Image(at.Child("image"), spec.Image)...)
	refused = append(refused, rules.Range(at.Child("replicas"), spec.Replicas, 0, 1000)...)
	refused = append(refused, rules.Texts(at.Child("command"), spec.Command)...)
	refused = append(refused, rules.Texts(at.Child("args"), spec.Args)...)
	refused = append(refused, rules.Env(at.Child("env"), spec.Env)...)
	refused = append(refused, rules.EnvFrom(at.Child("envFrom"), spec.EnvFrom)...)
	refused = append(refused, resources(at.Child("resources"), spec.Resources)...)
	refused = append(refused, ports(at.Child("ports"), spec.Ports)...)
	refused = append(refused, probes(at.Child("probes"), spec)...)
	refused = append(refused, rules.Annotations(at.Child("service", "annotations"), spec.Service.Annotations)...)
	refused = append(refused, rules.OneOf(at.Child("service", "type"), spec.Service.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)...)
	refused = append(refused, ingress(at.Child("ingress"), spec)...)
	refused = append(refused, autoscaling(at.Child("autoscaling"), spec)...)
	refused = append(refused, canary(at.Child("canary"), spec.Canary)...)
	refused = append(refused, rules.TopologySpread(at.Child("topologySpreadConstraints"), spread(spec.TopologySpreadConstraints))...)
	refused = append(refused, rules.Placement(at, spec.PodPlacement)...)
	refused = append(refused, rules.PodVolumes(at, spec.PodVolumes)...)
	return refused
}

// ValidateUpdate says everything that is wrong with a change. Every field may
// change.
func ValidateUpdate(_, updated *v1alpha1.App) field.ErrorList { return Validate(updated) }

// Warnings says what is allowed and probably not meant.
func Warnings(a *v1alpha1.App) []string {
	spec, at := &a.Spec, field.NewPath("spec")
	warnings := rules.UntaggedImage(at.Child("image"), spec.Image)
	if canary := spec.Canary; canary != nil {
		warnings = append(warnings, rules.UntaggedImage(at.Child("canary", "image"), canary.Image)...)
		if !ptr.Deref(spec.Ingress.Enabled, false) {
			warnings = append(warnings, fmt.Sprintf(
				"spec.canary: without spec.ingress.enabled no traffic shifts to the canary; it answers as Service %s-canary only", a.Name))
		} else if ptr.Deref(canary.Weight, 0) == 0 && canary.Header == "" {
			warnings = append(warnings, "spec.canary: with a weight of 0 and no header no traffic reaches the canary; set weight or header")
		}
	}
	if spec.Ingress.Gateway != nil && !ptr.Deref(spec.Ingress.Enabled, false) {
		warnings = append(warnings, "spec.ingress.gateway: has no effect while spec.ingress.enabled is false")
	}
	if spec.Autoscaling != nil && ptr.Deref(spec.Replicas, 1) != 1 {
		warnings = append(warnings, "spec.replicas: has no effect while spec.autoscaling is set")
	}
	return warnings
}

func name(name string) field.ErrorList {
	at := field.NewPath("metadata", "name")
	if name == "" { // not known yet: metadata.generateName
		return nil
	}
	var refused field.ErrorList
	if len(name) > maxName {
		refused = append(refused, field.Invalid(at, name,
			fmt.Sprintf("must have at most %d characters, because it becomes the name of a Service; choose a shorter name", maxName)))
	}
	for _, problem := range validation.IsDNS1035Label(name) {
		refused = append(refused, field.Invalid(at, name, "becomes the name of a Service: "+problem))
	}
	return refused
}
