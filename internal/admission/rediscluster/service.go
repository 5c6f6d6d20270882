// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
)

var (
	servicePath  = specPath.Child("service")
	familiesPath = servicePath.Child("ipFamilies")
)

// checkService is about the Service of clients.
func checkService(cr *v1alpha1.RedisCluster, o Options) field.ErrorList {
	s := cr.Spec.Service
	if s == nil {
		return nil
	}
	refused := serviceLabels(servicePath.Child("labels"), s.Labels)
	refused = append(refused, serviceAnnotations(servicePath.Child("annotations"), s.Annotations, o)...)
	refused = append(refused, shared.OneOf(servicePath.Child("ipFamilyPolicy"), s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack,
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
	for i, family := range s.IPFamilies {
		refused = append(refused, shared.OneOf(familiesPath.Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
	}
	const both = 2
	switch dual := s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack || s.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack; {
	case len(s.IPFamilies) > both:
		refused = append(refused, field.TooMany(familiesPath, len(s.IPFamilies), both))
	case len(s.IPFamilies) == both && s.IPFamilies[0] == s.IPFamilies[1]:
		refused = append(refused, field.Duplicate(familiesPath.Index(1), s.IPFamilies[1]))
	case len(s.IPFamilies) == both && !dual:
		refused = append(refused, field.Invalid(familiesPath, s.IPFamilies,
			"two families need ipFamilyPolicy PreferDualStack or RequireDualStack; set it, or name one family"))
	}
	return refused
}

// serviceLabels are about labels of a Service: by some of Kubernetes' own, others would take it for theirs.
func serviceLabels(at *field.Path, labels map[string]string) field.ErrorList {
	refused := addedLabels(at, labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if domain, _, _ := strings.Cut(key, "/"); domain == "service.kubernetes.io" || domain == "service.beta.kubernetes.io" {
			refused = append(refused, field.Forbidden(at.Key(key), "Kubernetes decides by it who serves the Service; remove it"))
		}
	}
	return refused
}

// serviceAnnotations are about annotations of a Service. By some of them, controllers change DNS, publish the Service elsewhere or route it
// past policies with rights of their own, and nobody knows them all.
func serviceAnnotations(at *field.Path, annotations map[string]string, o Options) field.ErrorList {
	refused := shared.Annotations(at, annotations)
	allowed := o.ServiceAnnotationDomains
	if allowed == nil {
		allowed = DefaultServiceAnnotationDomains
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain, _, has := strings.Cut(key, "/")
		is := func(d string) bool { return d == "*" || domain == d || strings.HasSuffix(domain, "."+d) }
		if has && !shared.IsReserved(domain) && !slices.ContainsFunc(allowed, is) {
			refused = append(refused, field.Forbidden(at.Key(key), fmt.Sprintf("controllers may act by it with rights of their own; remove it, or "+
				"ask whoever runs the operator to start it with --service-annotation-domains=…,%s", domain)))
		}
	}
	return refused
}

// keepFamily: Kubernetes never changes the first family of a Service.
func keepFamily(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := before.Spec.Service, after.Spec.Service
	if was == nil || is == nil || len(was.IPFamilies) == 0 || len(is.IPFamilies) == 0 || was.IPFamilies[0] == is.IPFamilies[0] {
		return nil
	}
	return field.ErrorList{field.Invalid(familiesPath.Index(0), is.IPFamilies[0],
		"the first family of a Service never changes; put "+string(was.IPFamilies[0])+" first, or make a new RedisCluster and copy the data")}
}
