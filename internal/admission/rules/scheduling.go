// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Affinity checks that of pods by the API server's rules (k8s.io/kubernetes, validateAffinity).
func Affinity(at *field.Path, affinity *corev1.Affinity) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var refused field.ErrorList
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if nodes, at := affinity.NodeAffinity, at.Child("nodeAffinity"); nodes != nil {
		if must := nodes.RequiredDuringSchedulingIgnoredDuringExecution; must != nil {
			terms := at.Child(required, "nodeSelectorTerms")
			if len(must.NodeSelectorTerms) == 0 {
				refused = append(refused, field.Required(terms, "say which nodes, or remove the selector"))
			}
			for i, term := range must.NodeSelectorTerms {
				refused = append(refused, nodeTerm(terms.Index(i), term)...)
			}
		}
		for i, term := range nodes.PreferredDuringSchedulingIgnoredDuringExecution {
			at := at.Child(preferred).Index(i)
			refused = append(refused, Range(at.Child("weight"), &term.Weight, 1, 100)...)
			refused = append(refused, nodeTerm(at.Child("preference"), term.Preference)...)
		}
	}
	pods := func(at *field.Path, must []corev1.PodAffinityTerm, should []corev1.WeightedPodAffinityTerm) {
		for i, term := range must {
			refused = append(refused, podTerm(at.Child(required).Index(i), term)...)
		}
		for i, term := range should {
			at := at.Child(preferred).Index(i)
			refused = append(refused, Range(at.Child("weight"), &term.Weight, 1, 100)...)
			refused = append(refused, podTerm(at.Child("podAffinityTerm"), term.PodAffinityTerm)...)
		}
	}
	if to := affinity.PodAffinity; to != nil {
		pods(at.Child("podAffinity"), to.RequiredDuringSchedulingIgnoredDuringExecution, to.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if from := affinity.PodAntiAffinity; from != nil {
		pods(at.Child("podAntiAffinity"), from.RequiredDuringSchedulingIgnoredDuringExecution,
			from.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return refused
}

var nodeOperators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan,
	corev1.NodeSelectorOpLt: selection.LessThan,
}

// nodeTerm is about the nodes that one term selects.
func nodeTerm(at *field.Path, term corev1.NodeSelectorTerm) field.ErrorList {
	var refused field.ErrorList
	for i, e := range term.MatchExpressions {
		at := at.Child("matchExpressions").Index(i)
		operator, known := nodeOperators[e.Operator]
		if !known {
			refused = append(refused, field.NotSupported(at.Child("operator"), e.Operator, []corev1.NodeSelectorOperator{
				corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
				corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt}))
			continue
		}
		if _, err := labels.NewRequirement(e.Key, operator, e.Values, field.WithPath(at)); err != nil {
			refused = append(refused, field.Invalid(at, e.Key, err.Error()))
		}
	}
	for i, f := range term.MatchFields {
		at := at.Child("matchFields").Index(i)
		if f.Key != metav1.ObjectNameField {
			refused = append(refused, field.NotSupported(at.Child("key"), f.Key, []string{metav1.ObjectNameField}))
		}
		refused = append(refused, OneOf(at.Child("operator"), f.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)...)
		if f.Operator == "" || len(f.Values) != 1 || len(validation.IsDNS1123Subdomain(f.Values[0])) > 0 {
			refused = append(refused, field.Invalid(at.Child("values"), f.Values, "must be the name of one node, with the operator In or NotIn"))
		}
	}
	return refused
}

// podTerm is about the pods that one term selects, and how near they are to be.
func podTerm(at *field.Path, term corev1.PodAffinityTerm) field.ErrorList {
	refused := topologyKey(at.Child("topologyKey"), term.TopologyKey)
	refused = append(refused, selector(at.Child("labelSelector"), term.LabelSelector)...)
	refused = append(refused, selector(at.Child("namespaceSelector"), term.NamespaceSelector)...)
	for i, namespace := range term.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			refused = append(refused, field.Invalid(at.Child("namespaces").Index(i), namespace, "cannot be the name of a namespace"))
		}
	}
	refused = append(refused, labelKeys(at.Child("matchLabelKeys"), term.MatchLabelKeys, term.LabelSelector, term.MismatchLabelKeys)...)
	return append(refused, labelKeys(at.Child("mismatchLabelKeys"), term.MismatchLabelKeys, term.LabelSelector, nil)...)
}

// labelKeys are keys whose values are those of the pod itself, besides what a selector asks for. others are keys of which that cannot be
// asked as well.
func labelKeys(at *field.Path, keys []string, with *metav1.LabelSelector, others []string) field.ErrorList {
	if len(keys) > 0 && with == nil {
		return field.ErrorList{field.Forbidden(at, "goes with a labelSelector; write one, or remove it")}
	}
	var refused field.ErrorList
	for i, key := range keys {
		_, asked := with.MatchLabels[key]
		asked = asked || slices.Contains(others, key) || slices.ContainsFunc(with.MatchExpressions,
			func(e metav1.LabelSelectorRequirement) bool { return e.Key == key })
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			refused = append(refused, field.Invalid(at.Index(i), key, "cannot be the key of a label"))
		case asked:
			refused = append(refused, field.Invalid(at.Index(i), key, "is asked for elsewhere, too; remove it in one of the places"))
		}
	}
	return refused
}

// selector checks one that may be missing.
func selector(at *field.Path, s *metav1.LabelSelector) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

func topologyKey(at *field.Path, key string) field.ErrorList {
	if len(validation.IsQualifiedName(key)) > 0 {
		return field.ErrorList{field.Invalid(at, key,
			"cannot be the key of a label; name one that nodes have, such as topology.kubernetes.io/zone")}
	}
	return nil
}

// TopologySpread checks how pods are spread by the API server's rules (k8s.io/kubernetes, validateTopologySpreadConstraints).
func TopologySpread(at *field.Path, constraints []corev1.TopologySpreadConstraint) field.ErrorList {
	var refused field.ErrorList
	seen := map[string]bool{}
	for i, c := range constraints {
		at := at.Index(i)
		if c.MaxSkew < 1 {
			refused = append(refused, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be at least 1"))
		}
		refused = append(refused, topologyKey(at.Child("topologyKey"), c.TopologyKey)...)
		if c.WhenUnsatisfiable == "" {
			refused = append(refused, field.Required(at.Child("whenUnsatisfiable"), "write DoNotSchedule or ScheduleAnyway"))
		}
		refused = append(refused, OneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		if c.MinDomains != nil && (*c.MinDomains < 1 || c.WhenUnsatisfiable != corev1.DoNotSchedule) {
			refused = append(refused, field.Invalid(at.Child("minDomains"), *c.MinDomains,
				"must be at least 1, with whenUnsatisfiable: DoNotSchedule"))
		}
		refused = append(refused, inclusion(at.Child("nodeAffinityPolicy"), c.NodeAffinityPolicy)...)
		refused = append(refused, inclusion(at.Child("nodeTaintsPolicy"), c.NodeTaintsPolicy)...)
		refused = append(refused, selector(at.Child("labelSelector"), c.LabelSelector)...)
		refused = append(refused, labelKeys(at.Child("matchLabelKeys"), c.MatchLabelKeys, c.LabelSelector, nil)...)
		pair := fmt.Sprintf("%q, %q", c.TopologyKey, c.WhenUnsatisfiable)
		if seen[pair] {
			refused = append(refused, field.Duplicate(at, pair))
		}
		seen[pair] = true
	}
	return refused
}

func inclusion(at *field.Path, policy *corev1.NodeInclusionPolicy) field.ErrorList {
	allowed := []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
	if policy == nil || slices.Contains(allowed, *policy) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, *policy, allowed)}
}
