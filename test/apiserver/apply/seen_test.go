// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
)

// What was decided on an older version of an object is not written, whatever the cache shows; on that of now it is.
func TestOnlyWhatWasSeenIsChanged(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	const other = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {ours: "1"}}, data: {text: other}}`
	op.mustApply(t, owner, config)
	was := read(t, namespace, config)
	edit(t, namespace, config, `data: {more: theirs}`)
	_, err := op.Apply(t.Context(), owner, manifests(t, other), apply.Seen(map[types.UID]string{was.GetUID(): was.GetResourceVersion()}))
	if text := field(t, read(t, namespace, config), "data", "text"); !apierrors.IsConflict(err) || text != "hello" {
		t.Errorf("an older version was seen: text %q, error %v, want hello and a conflict", text, err)
	}
	now := read(t, namespace, config)
	op.mustApply(t, owner, other, apply.Seen(map[types.UID]string{now.GetUID(): now.GetResourceVersion(), "another": "1"}))
	if text := field(t, read(t, namespace, config), "data", "text"); text != "other" {
		t.Errorf("the present version was seen: text %q", text)
	}
}
