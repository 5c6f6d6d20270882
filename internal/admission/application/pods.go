// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// podSpec checks what the operator is responsible for. That the pod is otherwise
// well formed is checked by the API server when the Deployment is applied.
func podSpec(at *field.Path, template *applicationv1.PodTemplate) field.ErrorList {
	spec := &template.Spec
	var refused field.ErrorList
	if len(spec.Containers) == 0 {
		refused = append(refused, field.Required(at.Child("containers"), "name at least one container"))
	}
	names := map[string]bool{}
	refused = append(refused, containers(at.Child("initContainers"), spec.InitContainers, names)...)
	refused = append(refused, containers(at.Child("containers"), spec.Containers, names)...)
	if len(spec.EphemeralContainers) > 0 {
		refused = append(refused, field.Forbidden(at.Child("ephemeralContainers"), "a template cannot hold them; remove them"))
	}
	refused = append(refused, noServiceAccount(at, spec)...)
	return append(refused, keepsToBaseline(at, template)...)
}

func containers(at *field.Path, containers []corev1.Container, names map[string]bool) field.ErrorList {
	var refused field.ErrorList
	for i, container := range containers {
		at := at.Index(i)
		for _, problem := range validation.IsDNS1123Label(container.Name) {
			refused = append(refused, field.Invalid(at.Child("name"), container.Name, problem))
		}
		if names[container.Name] {
			refused = append(refused, field.Duplicate(at.Child("name"), container.Name))
		}
		names[container.Name] = true
		refused = append(refused, rules.Image(at.Child("image"), container.Image)...)
	}
	return refused
}

func noServiceAccount(at *field.Path, spec *corev1.PodSpec) field.ErrorList {
	const why = "the pods of an Application carry no service account's rights; remove it"
	var refused field.ErrorList
	if spec.ServiceAccountName != "" && spec.ServiceAccountName != "default" {
		refused = append(refused, field.Forbidden(at.Child("serviceAccountName"), why))
	}
	if spec.DeprecatedServiceAccount != "" && spec.DeprecatedServiceAccount != "default" {
		refused = append(refused, field.Forbidden(at.Child("serviceAccount"), why))
	}
	if mount := spec.AutomountServiceAccountToken; mount != nil && *mount {
		refused = append(refused, field.Forbidden(at.Child("automountServiceAccountToken"), why))
	}
	for i, volume := range spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for j, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				refused = append(refused, field.Forbidden(
					at.Child("volumes").Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken"), why))
			}
		}
	}
	return refused
}

// keepsToBaseline: whoever may create Applications may not be allowed to create pods, and what the operator makes on their behalf must not
// reach the node.
func keepsToBaseline(at *field.Path, template *applicationv1.PodTemplate) field.ErrorList {
	metadata := metav1.ObjectMeta{Labels: template.Metadata.Labels, Annotations: template.Metadata.Annotations}
	return rules.PodSecurity(at, api.LevelBaseline, "an Application", &metadata, &template.Spec)
}
