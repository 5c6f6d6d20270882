// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules holds the checks that several kinds share. Every refusal names the
// field and says what to do instead.
package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxAnnotations is the total size of annotations that the API server takes, in
// bytes (k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB).
const maxAnnotations = 256 * 1024

// Image checks a container image against the grammar of image references
// (github.com/distribution/reference).
func Image(at *field.Path, image string) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(at, "name the container image, such as docker.io/library/busybox:1.36")}
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return field.ErrorList{field.Invalid(at, image, fmt.Sprintf(
			"is not an image reference (%v); write registry/repository:tag, such as docker.io/library/busybox:1.36", err))}
	}
	return nil
}

// UntaggedImage returns an admission warning when an image names no version.
func UntaggedImage(at *field.Path, image string) []string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil || !reference.IsNameOnly(named) {
		return nil
	}
	return []string{
		fmt.Sprintf("%s: %q names no version, so each node runs the \"latest\" that it pulled first; add a tag or a digest", at, image)}
}

// Text refuses the NUL character, which neither an argument nor an environment
// variable of a process can hold.
func Text(at *field.Path, text string) field.ErrorList {
	if strings.ContainsRune(text, 0) {
		return field.ErrorList{field.Invalid(at, text, "must not hold a NUL character; remove it")}
	}
	return nil
}

// Texts is Text for each element.
func Texts(at *field.Path, texts []string) field.ErrorList {
	var refused field.ErrorList
	for i, text := range texts {
		refused = append(refused, Text(at.Index(i), text)...)
	}
	return refused
}

// Range checks min <= value <= max. A nil value is one that the defaults will set.
func Range(at *field.Path, value *int32, least, most int32) field.ErrorList {
	if value == nil || (*value >= least && *value <= most) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, fmt.Sprintf("must be from %d to %d", least, most))}
}

// OneOf checks that a value is one of a few. An empty value is one that the
// defaults will set.
func OneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

// reserved are the annotation domains by which this operator, Helm or Kubernetes
// decides what happens to an object. A CR author who could set them on a child
// could, for example, make it a hook or let it outlive its owner.
var reserved = []string{
	"helm.sh", "helm.sdk.operatorframework.io", "operator-sdk", "middleware.hc.cn",
	"kubernetes.io", "k8s.io",
}

// allowedReserved are exceptions below kubernetes.io and k8s.io: they tell load
// balancers, ingress controllers and DNS what to do.
var allowedReserved = []string{
	"service.beta.kubernetes.io", "service.kubernetes.io", "nginx.ingress.kubernetes.io", "traefik.ingress.kubernetes.io",
	"haproxy-ingress.github.io", "alb.ingress.kubernetes.io", "external-dns.alpha.kubernetes.io", "networking.gke.io",
}

// Annotations checks annotations that are passed on to a child.
func Annotations(at *field.Path, annotations map[string]string) field.ErrorList {
	var refused field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		size += len(key) + len(annotations[key])
		for _, problem := range validation.IsQualifiedName(strings.ToLower(key)) {
			refused = append(refused, field.Invalid(at, key, problem))
		}
		if domain, _, _ := strings.Cut(key, "/"); IsReserved(domain) {
			refused = append(refused, field.Forbidden(at.Key(key), "annotations of "+domain+" are set by Kubernetes and this operator; remove it"))
		}
	}
	if size > maxAnnotations {
		refused = append(refused, field.TooLong(at, "", maxAnnotations))
	}
	return refused
}

// IsReserved reports whether the domain of an annotation or label is one of those
// that decide what happens to an object.
func IsReserved(domain string) bool {
	if slices.Contains(allowedReserved, domain) {
		return false
	}
	return slices.ContainsFunc(reserved, func(r string) bool { return domain == r || strings.HasSuffix(domain, "."+r) })
}

// Labels checks labels that are passed on to a child. A line break or any other
// character that a label cannot hold is refused.
func Labels(at *field.Path, labels map[string]string) field.ErrorList {
	var refused field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		for _, problem := range validation.IsQualifiedName(key) {
			refused = append(refused, field.Invalid(at, key, problem))
		}
		for _, problem := range validation.IsValidLabelValue(labels[key]) {
			refused = append(refused, field.Invalid(at.Key(key), labels[key], problem))
		}
	}
	return refused
}
