// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	chartv1 "middleware.hc.cn/operator/api/chart/v1"
)

// Placement checks where pods are to run, and with whose images.
func Placement(at *field.Path, p chartv1.PodPlacement) field.ErrorList {
	refused := Labels(at.Child("nodeSelector"), p.NodeSelector)
	for i, secret := range p.ImagePullSecrets {
		if len(validation.IsDNS1123Subdomain(secret.Name)) > 0 {
			refused = append(refused, field.Invalid(at.Child("imagePullSecrets").Index(i).Child("name"), secret.Name,
				"cannot be the name of a Secret; name one that exists"))
		}
	}
	switch class := p.PriorityClassName; {
	case strings.HasPrefix(class, "system-"):
		refused = append(refused, field.Forbidden(at.Child("priorityClassName"),
			"the system- classes would evict what keeps the cluster running; use a class of your own"))
	case class != "" && len(validation.IsDNS1123Subdomain(class)) > 0:
		refused = append(refused, field.Invalid(at.Child("priorityClassName"), class,
			"cannot be the name of a PriorityClass; name one that exists"))
	}
	return refused
}
