// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pending returns the desired objects that Apply would write, by what the memory and the cache know. It makes no request.
//
// Errors: NotOursError when the cache shows that an object belongs to someone else.
func (a *Applier) Pending(ctx context.Context, owner client.Object, desired []*unstructured.Unstructured) ([]Ref, error) {
	plan, err := a.decideAll(ctx, owner, desired)
	if err != nil {
		return nil, err
	}
	var pending []Ref
	for _, child := range plan {
		if child.verdict == outdated {
			pending = append(pending, child.ref)
		}
	}
	return pending, nil
}
