// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
)

// The user is told what happens to the instances in fact, and what takes the restart back.
func TestWhatFollowsFromARestart(t *testing.T) {
	for name, tt := range map[string]struct {
		spec          map[string]any
		said, notSaid string
	}{
		"rolling": {map[string]any{}, "restart, one at a time", "paused"},
		"OnDelete": {map[string]any{"pod": []any{map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}}},
			"when you delete", "one at a time"},
		"paused":  {map[string]any{"pause": true}, "it is paused", "OnDelete"},
		"no form": {map[string]any{"pod": []any{"x"}, "pause": "yes"}, "one at a time", "paused"},
	} {
		text := strings.Join(outcome(&unstructured.Unstructured{Object: map[string]any{"spec": tt.spec}}), "\n")
		if !strings.Contains(text, tt.said) || strings.Contains(text, tt.notSaid) || !strings.Contains(text, "spec.pod was written as a whole") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// contended is an API server on which somebody else writes before each of the first writes.
type contended struct {
	client.Client
	conflicts, reads int
}

func (c *contended) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.reads++
	return nil
}

func (c *contended) Update(context.Context, client.Object, ...client.UpdateOption) error {
	if c.conflicts--; c.conflicts >= 0 {
		return apierrors.NewConflict(schema.GroupResource{Resource: "redisclusters"}, "cache", errors.New("changed"))
	}
	return nil
}

// A RedisCluster that was changed in between is read again, and not for ever.
func TestARestartIsTriedAgain(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("RedisCluster"), meta.RESTScopeNamespace)
	for conflicts, fails := range map[int]bool{0: false, 2: false, 1000: true} {
		server := &contended{conflicts: conflicts}
		c := &cluster{Client: server, read: read.Reader{Reader: server, Mapper: mapper}}
		_, err := c.restart(context.Background(), read.Key("shop", "cache"), time.Now())
		if fails != (err != nil) || fails != apierrors.IsConflict(err) || !fails && server.reads != conflicts+1 {
			t.Errorf("%d conflicts: %d reads, %v", conflicts, server.reads, err)
		}
	}
}
