// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
)

// recorder keeps what the applies of the engine's field manager answered. It is for one goroutine.
type recorder struct {
	client.Client
	applied map[apply.Ref]*unstructured.Unstructured
	// replicas are the numbers that are handed over to another manager before an apply: a dry run does not remember them.
	replicas map[apply.Ref]any
}

func newRecorder(c client.Client) *recorder {
	return &recorder{Client: c, applied: map[apply.Ref]*unstructured.Unstructured{}, replicas: map[apply.Ref]any{}}
}

// Apply passes the configuration on; its answer is written into the configuration, as always.
func (r *recorder) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	content, ok := configuration.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return errors.New("an apply of something that is not unstructured")
	}
	if err := r.Client.Apply(ctx, configuration, options...); err != nil {
		return err
	}
	answer := (&unstructured.Unstructured{Object: content.UnstructuredContent()}).DeepCopy()
	ref := nameOf(answer)
	switch (&client.ApplyOptions{}).ApplyOptions(options).FieldManager {
	case apply.ReplicasManager:
		r.replicas[ref], _, _ = unstructured.NestedFieldCopy(answer.Object, "spec", "replicas")
	case apply.FieldManager:
		if kept := r.replicas[ref]; kept != nil {
			if err := unstructured.SetNestedField(answer.Object, kept, "spec", "replicas"); err != nil {
				return err
			}
		}
		r.applied[ref] = answer
	}
	return nil
}

func nameOf(object *unstructured.Unstructured) apply.Ref {
	ref := apply.RefOf(object)
	ref.UID = ""
	return ref
}
