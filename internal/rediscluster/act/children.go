// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"middleware.hc.cn/operator/internal/apply"
)

// applyChildren brings the rendered children into being and deletes what is no longer
// rendered.
func (a *Actor) applyChildren(ctx context.Context, s Subject) error {
	if _, err := a.Applier.Apply(ctx, s.Cluster, s.Children); err != nil {
		return asStall(err)
	}
	_, err := a.Applier.Prune(ctx, s.Cluster, s.Obsolete, nil)
	return err
}

// asStall turns what trying again cannot help into a StallError.
func asStall(err error) error {
	var notOurs *apply.NotOursError
	var immutable *apply.ImmutableError
	switch {
	case errors.As(err, &notOurs):
		return &StallError{Cause: "NameTaken", Message: notOurs.Error()}
	case errors.As(err, &immutable):
		return &StallError{Cause: "CannotChange", Message: immutable.Error()}
	default:
		return err
	}
}
