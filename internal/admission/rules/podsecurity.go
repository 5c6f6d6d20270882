// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// PodSecurity refuses pods that do not keep to the newest version of a Pod Security Standard, whatever their namespace allows: the
// operator makes them with its own rights. whose says whose pods they are.
func PodSecurity(at *field.Path, level api.Level, whose string, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) field.ErrorList {
	evaluator, err := evaluator()
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	var refused field.ErrorList
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, metadata, spec) {
		if !result.Allowed {
			refused = append(refused, field.Forbidden(at, fmt.Sprintf(
				"%s (%s): the pods of %s keep to the %q Pod Security Standard; remove it", result.ForbiddenReason, result.ForbiddenDetail, whose,
				level)))
		}
	}
	return refused
}
