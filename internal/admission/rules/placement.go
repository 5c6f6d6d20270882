// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	chartv1 "middleware.hc.cn/operator/api/chart/v1"
)

// maxPart: what a person writes about affinity or volumes has 2 KiB in 100 entries.
var maxPart = Size{Bytes: 32 << 10, Entries: 1000}

// Placement checks where pods are to run, and with whose images.
func Placement(at *field.Path, p chartv1.PodPlacement) field.ErrorList {
	refused := Labels(at.Child("nodeSelector"), p.NodeSelector)
	refused = append(refused, Tolerations(at.Child("tolerations"), p.Tolerations)...)
	for i, secret := range p.ImagePullSecrets {
		if len(validation.IsDNS1123Subdomain(secret.Name)) > 0 {
			refused = append(refused, field.Invalid(at.Child("imagePullSecrets").Index(i).Child("name"), secret.Name,
				"cannot be the name of a Secret; name one that exists"))
		}
	}
	if large := AtMost(at.Child("affinity"), p.Affinity, maxPart); len(large) > 0 {
		refused = append(refused, large...)
	} else {
		refused = append(refused, Affinity(at.Child("affinity"), p.Affinity)...)
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

// PodVolumes checks what is mounted into the container of a chart kind, of which the chart has /tmp.
func PodVolumes(at *field.Path, p chartv1.PodVolumes) field.ErrorList {
	if large := AtMost(at.Child("volumes"), p, maxPart); len(large) > 0 {
		return large
	}
	const most = 20
	volumes := make([]corev1.Volume, len(p.Volumes))
	for i := range p.Volumes {
		volumes[i] = p.Volumes[i].InPod()
	}
	types, refused := Volumes(at.Child("volumes"), volumes, most, func(name string) string {
		if name == "tmp" {
			return "is the volume of /tmp, which every pod has; choose another name"
		}
		return ""
	})
	mounts := make([]corev1.VolumeMount, len(p.VolumeMounts))
	for i, m := range p.VolumeMounts {
		mounts[i] = corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath, SubPath: m.SubPath, ReadOnly: m.ReadOnly}
	}
	at = at.Child("volumeMounts")
	refused = append(refused, Mounts(at, mounts, types, most, func(string) string { return "" })...)
	for i, m := range p.VolumeMounts {
		if m.MountPath == "/tmp" {
			refused = append(refused, field.Invalid(at.Index(i).Child("mountPath"), m.MountPath, "is there already; mount below it, or elsewhere"))
		}
	}
	return refused
}

// Tolerations checks those of pods by the API server's rules (k8s.io/kubernetes, ValidateTolerations). It takes the operators that need a
// feature gate: whether the gate is open is for the API server to say.
func Tolerations(at *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	var refused field.ErrorList
	for i, t := range tolerations {
		at := at.Index(i)
		refused = append(refused, OneOf(at.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists,
			corev1.TolerationOpLt, corev1.TolerationOpGt)...)
		refused = append(refused, OneOf(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
			corev1.TaintEffectNoExecute)...)
		switch {
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			refused = append(refused, field.Required(at.Child("key"),
				"name the taint's key; only operator Exists goes without: it tolerates every taint"))
		case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
			refused = append(refused, field.Invalid(at.Child("key"), t.Key, "cannot be the key of a taint; name one that nodes have"))
		}
		switch {
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			refused = append(refused, field.Invalid(at.Child("value"), t.Value,
				"operator Exists looks at no value; remove it, or write operator: Equal"))
		case len(validation.IsValidLabelValue(t.Value)) > 0:
			refused = append(refused, field.Invalid(at.Child("value"), t.Value, "cannot be the value of a taint; write the one that nodes have"))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			refused = append(refused, field.Invalid(at.Child("tolerationSeconds"), *t.TolerationSeconds,
				"only effect NoExecute has a time after which pods must leave; remove it, or write effect: NoExecute"))
		}
	}
	return refused
}
