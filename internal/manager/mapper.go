// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rememberedMapper remembers what it was asked before. Every read of a cache and every apply asks for the scope of a kind, and
// the mapper behind it searches all groups each time. What is not served is asked again: its CRD may come.
type rememberedMapper struct {
	meta.RESTMapper
	known sync.Map // of schema.GroupVersionKind to *meta.RESTMapping
}

// RESTMapping returns the resource of a kind.
func (m *rememberedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if mapping, ok := m.known.Load(key); ok {
		return mapping.(*meta.RESTMapping), nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.known.Store(key, mapping)
	}
	return mapping, err
}
