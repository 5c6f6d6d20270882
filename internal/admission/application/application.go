// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application sets the defaults of an Application and says what is wrong
// with one. The webhook and the operator call the same functions.
package application

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// managedBy is the label that the operator sets on what it makes.
const managedBy = "app.kubernetes.io/managed-by"

// maxSpec: a pod of ten containers with a hundred variables each has 100 KiB in 4000 entries. Every reconciliation compares all of it.
var maxSpec = rules.Size{Bytes: 256 << 10, Entries: 10_000}

var templatePath = field.NewPath("spec", "template")

// Default sets nothing: what a template leaves out belongs to others. It is there
// because every kind has one.
func Default(*applicationv1.Application) {}

// Validate says everything that is wrong with an Application.
func Validate(a *applicationv1.Application) field.ErrorList {
	if refused := rules.AtMost(field.NewPath("spec"), a.Spec, maxSpec); len(refused) > 0 {
		return refused
	}
	refused := selector(field.NewPath("spec", "selector"), a.Spec.Selector)
	refused = append(refused, deploymentMetadata(a)...)
	if a.Spec.Template.Spec.Selector != nil {
		refused = append(refused, selector(templatePath.Child("spec", "selector"), a.Spec.Template.Spec.Selector)...)
	}
	refused = append(refused, podMetadata(&a.Spec.Template.Spec.Template.Metadata)...)
	if len(refused) == 0 {
		refused = append(refused, matches(a)...)
	}
	refused = append(refused, numbers(&a.Spec.Template.Spec)...)
	refused = append(refused, podSpec(templatePath.Child("spec", "template", "spec"), &a.Spec.Template.Spec.Template)...)
	return refused
}

// ValidateUpdate says everything that is wrong with a change: what identifies the
// Deployment is immutable.
func ValidateUpdate(old, updated *applicationv1.Application) field.ErrorList {
	refused := Validate(updated)
	immutable := func(at *field.Path, was, is any) {
		if !equality.Semantic.DeepEqual(was, is) {
			refused = append(refused, field.Invalid(at, field.OmitValueType{}, "is immutable; delete the Application and create it again"))
		}
	}
	immutable(field.NewPath("spec", "selector"), old.Spec.Selector, updated.Spec.Selector)
	immutable(templatePath.Child("metadata", "name"), old.Spec.Template.Metadata.Name, updated.Spec.Template.Metadata.Name)
	immutable(templatePath.Child("spec", "selector"), old.Spec.Template.Spec.Selector, updated.Spec.Template.Spec.Selector)
	return refused
}

// Warnings says what is allowed and probably not meant.
func Warnings(a *applicationv1.Application) []string {
	var warnings []string
	for i, container := range a.Spec.Template.Spec.Template.Spec.Containers {
		at := templatePath.Child("spec", "template", "spec", "containers").Index(i).Child("image")
		warnings = append(warnings, rules.UntaggedImage(at, container.Image)...)
	}
	return warnings
}

func selector(at *field.Path, s *metav1.LabelSelector) field.ErrorList {
	if s == nil || (len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0) {
		return field.ErrorList{
			field.Required(at, "name the labels of the Deployment; an empty selector would match every Deployment of the namespace")}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

func deploymentMetadata(a *applicationv1.Application) field.ErrorList {
	metadata, at := &a.Spec.Template.Metadata, templatePath.Child("metadata")
	var refused field.ErrorList
	if metadata.Namespace != "" {
		refused = append(refused, field.Forbidden(at.Child("namespace"), "the Deployment is made in the namespace of the Application; remove it"))
	}
	if metadata.Name != "" {
		for _, problem := range validation.IsDNS1123Subdomain(metadata.Name) {
			refused = append(refused, field.Invalid(at.Child("name"), metadata.Name, problem))
		}
	}
	refused = append(refused, rules.Labels(at.Child("labels"), metadata.Labels)...)
	if _, set := metadata.Labels[managedBy]; set {
		refused = append(refused, field.Forbidden(at.Child("labels").Key(managedBy), "the operator sets it; remove it"))
	}
	return append(refused, rules.Annotations(at.Child("annotations"), metadata.Annotations)...)
}

func podMetadata(metadata *applicationv1.PodMetadata) field.ErrorList {
	at := templatePath.Child("spec", "template", "metadata")
	refused := rules.Labels(at.Child("labels"), metadata.Labels)
	for _, key := range slices.Sorted(maps.Keys(metadata.Annotations)) {
		for _, problem := range validation.IsQualifiedName(key) {
			refused = append(refused, field.Invalid(at.Child("annotations"), key, problem))
		}
	}
	return refused
}

// matches checks that the Application finds its Deployment, and the Deployment its
// pods. All parts are known to be well formed.
func matches(a *applicationv1.Application) field.ErrorList {
	template := &a.Spec.Template
	var refused field.ErrorList
	own, _ := metav1.LabelSelectorAsSelector(a.Spec.Selector)
	deployment, at := template.Metadata.Labels, templatePath.Child("metadata", "labels")
	if len(deployment) == 0 {
		deployment, at = template.Spec.Template.Metadata.Labels, templatePath.Child("spec", "template", "metadata", "labels")
	}
	if !own.Matches(labels.Set(deployment)) {
		refused = append(refused, field.Invalid(at, deployment, fmt.Sprintf("must match spec.selector (%s); add these labels", own)))
	}
	pods, selectorName := own, "spec.selector"
	if template.Spec.Selector != nil {
		pods, _ = metav1.LabelSelectorAsSelector(template.Spec.Selector)
		selectorName = "spec.template.spec.selector"
	}
	if !pods.Matches(labels.Set(template.Spec.Template.Metadata.Labels)) {
		refused = append(refused, field.Invalid(templatePath.Child("spec", "template", "metadata", "labels"),
			template.Spec.Template.Metadata.Labels, fmt.Sprintf("must match %s (%s); add these labels", selectorName, pods)))
	}
	return refused
}

func numbers(spec *applicationv1.DeploymentSpec) field.ErrorList {
	at := templatePath.Child("spec")
	const most = 1<<31 - 1
	refused := rules.Range(at.Child("replicas"), spec.Replicas, 0, most)
	refused = append(refused, rules.Range(at.Child("minReadySeconds"), &spec.MinReadySeconds, 0, most)...)
	refused = append(refused, rules.Range(at.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit, 0, most)...)
	refused = append(refused, rules.Range(at.Child("progressDeadlineSeconds"), spec.ProgressDeadlineSeconds, 1, most)...)
	return append(refused, rules.OneOf(at.Child("strategy", "type"), spec.Strategy.Type, "Recreate", "RollingUpdate")...)
}
