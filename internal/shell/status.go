// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/outcome"
)

// conflictAfter is when to look again after someone else changed an object meanwhile: the change is an event too.
const conflictAfter = time.Second

// PatchStatus makes the status of an object what is given and returns the API server's answer. Only what differs is sent, on
// condition that nobody has changed the object since it was read. The status alone is encoded and compared: it is written more often
// than anything else.
func PatchStatus(
	object *unstructured.Unstructured, status map[string]any, send func(client.Object, client.Patch) error,
) (*unstructured.Unstructured, error) {
	former, _ := object.Object["status"].(map[string]any)
	if former == nil {
		former = map[string]any{}
	}
	before, errBefore := json.Marshal(former)
	after, errAfter := json.Marshal(status)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	change, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("compare the status: %w", err)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": object.GetResourceVersion(), "uid": object.GetUID()},
		"status":   json.RawMessage(change),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	answer := &unstructured.Unstructured{}
	answer.SetGroupVersionKind(object.GroupVersionKind())
	answer.SetNamespace(object.GetNamespace())
	answer.SetName(object.GetName())
	return answer, send(answer, client.RawPatch(types.MergePatchType, body))
}

// PatchTyped is PatchStatus of an object of a kind and a status that are not encoded yet.
func PatchTyped(kind schema.GroupVersionKind, object, status any, send func(client.Object, client.Patch) error) (
	*unstructured.Unstructured, error,
) {
	before, errBefore := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	after, errAfter := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	is := &unstructured.Unstructured{Object: before}
	is.SetGroupVersionKind(kind)
	return PatchStatus(is, after, send)
}

// Unwritten is how a reconciliation ends whose status could not be written. When the object was changed meanwhile, it is repeated on
// what it is by then, so that nothing is counted twice or never.
func Unwritten(err error) outcome.Outcome {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return outcome.Wait("the object changed meanwhile", conflictAfter)
	}
	return outcome.Retry(fmt.Errorf("write the status: %w", err))
}
