// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/outcome"
)

// Only what differs is sent, and the API server refuses it when the object is another one, or was changed.
func TestPatchStatus(t *testing.T) {
	const lock = `"metadata":{"resourceVersion":"10","uid":"a"}`
	refused := errors.New("refused")
	for what, tt := range map[string]struct {
		before any
		after  map[string]any
		want   string
		err    error
	}{
		"the first": {after: map[string]any{"phase": "Running"}, want: `{` + lock + `,"status":{"phase":"Running"}}`},
		"a field": {before: map[string]any{"phase": "Forming", "slots": int64(1)},
			after: map[string]any{"phase": "Running", "slots": int64(1)}, want: `{` + lock + `,"status":{"phase":"Running"}}`},
		"a field goes": {before: map[string]any{"phase": "Forming", "slots": int64(1)}, after: map[string]any{"slots": int64(1)},
			want: `{` + lock + `,"status":{"phase":null}}`},
		"it was no map":  {before: "broken", after: map[string]any{"slots": int64(1)}, want: `{` + lock + `,"status":{"slots":1}}`},
		"it was refused": {after: map[string]any{"slots": int64(1)}, want: `{` + lock + `,"status":{"slots":1}}`, err: refused},
	} {
		t.Run(what, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Web", "spec": map[string]any{"a": "b"},
				"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "a", "resourceVersion": "10"}, "status": tt.before}}
			before := object.DeepCopy()
			answer, err := PatchStatus(object, tt.after, func(sent client.Object, patch client.Patch) error {
				body, err := patch.Data(sent)
				if string(body) != tt.want || patch.Type() != types.MergePatchType || err != nil {
					t.Errorf("sent %s as %s (%v), want %s", body, patch.Type(), err, tt.want)
				}
				if sent.GetNamespace() != "shop" || sent.GetName() != "web" || sent.GetObjectKind().GroupVersionKind().Kind != "Web" {
					t.Errorf("sent to %s/%s", sent.GetNamespace(), sent.GetName())
				}
				sent.SetResourceVersion("11")
				return tt.err
			})
			if !errors.Is(err, tt.err) || answer.GetResourceVersion() != "11" {
				t.Errorf("the answer is %v, %v", answer, err)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object itself was changed:\n%s", diff)
			}
		})
	}
}

func TestUnwritten(t *testing.T) {
	webs := schema.GroupResource{Resource: "webs"}
	for _, tt := range []struct {
		err  error
		want outcome.Kind
	}{
		{apierrors.NewConflict(webs, "web", errors.New("changed")), outcome.KindWait},
		{apierrors.NewNotFound(webs, "web"), outcome.KindWait},
		{apierrors.NewForbidden(webs, "web", errors.New("no right")), outcome.KindRetry},
	} {
		if got := Unwritten(tt.err); got.Kind() != tt.want || tt.want == outcome.KindWait && got.After() != conflictAfter {
			t.Errorf("%v: %s after %s, want %s", tt.err, got.Kind(), got.After(), tt.want)
		}
	}
}
