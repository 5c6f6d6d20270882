// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// What the API server would refuse in a pod is refused in the object that asks for it, by its field.
func TestTolerations(t *testing.T) {
	for name, tt := range map[string]struct {
		toleration corev1.Toleration
		want       []string
	}{
		"all taints":   {toleration: corev1.Toleration{Operator: "Exists"}},
		"Equal unsaid": {toleration: corev1.Toleration{Key: "example.com/k", Value: "v", Effect: "NoSchedule"}},
		"for a time": {toleration: corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute",
			TolerationSeconds: ptr.To[int64](-1)}},
		"behind a gate":       {toleration: corev1.Toleration{Key: "k", Operator: "Gt", Value: "5"}},
		"nothing":             {want: []string{"t[0].key"}},
		"no such operator":    {toleration: corev1.Toleration{Key: "k", Operator: "1Gi"}, want: []string{"t[0].operator"}},
		"no such effect":      {toleration: corev1.Toleration{Key: "k", Effect: "Never"}, want: []string{"t[0].effect"}},
		"no such key":         {toleration: corev1.Toleration{Key: "a b", Operator: "Exists"}, want: []string{"t[0].key"}},
		"no such value":       {toleration: corev1.Toleration{Key: "k", Value: "a b"}, want: []string{"t[0].value"}},
		"Exists with a value": {toleration: corev1.Toleration{Key: "k", Operator: "Exists", Value: "v"}, want: []string{"t[0].value"}},
		"a time without effect": {toleration: corev1.Toleration{Key: "k", TolerationSeconds: ptr.To[int64](5)},
			want: []string{"t[0].tolerationSeconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, refused := range Tolerations(field.NewPath("t"), []corev1.Toleration{tt.toleration}) {
				got = append(got, refused.Field)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
