// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A source that is not what the cluster began with can be removed, and what it began with set again; nothing else can.
func TestSourceIsPutBack(t *testing.T) {
	at := func(address string) *v1alpha1.Bootstrap {
		return &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: address}}
	}
	over := &v1alpha1.ImportStatus{Address: "a:1", CutOverAt: ptr.To(metav1.Now())}
	for name, tt := range map[string]struct {
		was, is *v1alpha1.Bootstrap
		began   *v1alpha1.ImportStatus
		allowed bool
	}{
		"another one is removed":      {at("b:1"), nil, &v1alpha1.ImportStatus{Address: "a:1"}, true},
		"what it began with is set":   {nil, at("a:1"), &v1alpha1.ImportStatus{Address: "a:1"}, true},
		"another one is set":          {nil, at("b:1"), &v1alpha1.ImportStatus{Address: "a:1"}, false},
		"it is removed":               {at("a:1"), nil, &v1alpha1.ImportStatus{Address: "a:1"}, false},
		"it is changed":               {at("a:1"), at("b:1"), &v1alpha1.ImportStatus{Address: "a:1"}, false},
		"a restore is removed":        {&v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{}}, nil, &v1alpha1.ImportStatus{Address: "a:1"}, false},
		"nobody knows what it began":  {at("b:1"), nil, nil, false},
		"it has taken over":           {nil, at("a:1"), over, false},
		"another one, and it is over": {at("b:1"), nil, over, false},
	} {
		was, is := &v1alpha1.RedisCluster{}, &v1alpha1.RedisCluster{}
		was.Spec.Bootstrap, is.Spec.Bootstrap, was.Status.Import = tt.was, tt.is, tt.began
		if refused := keepBootstrap(was, is); (len(refused) == 0) != tt.allowed {
			t.Errorf("%s: %v", name, refused)
		}
	}
}
