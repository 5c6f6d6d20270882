// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"middleware.hc.cn/operator/internal/apply"
)

// applyChildren brings the rendered children into being and deletes what is no longer
// rendered. changed reports whether any was not so before: after a restart of the operator
// all are applied once, because nothing is known of them. A StatefulSet that has changed since the decision is not: it may be asked
// for fewer instances than there are by now.
func (a *Actor) applyChildren(ctx context.Context, s Subject) (changed bool, err error) {
	applied, err := a.Applier.Apply(ctx, s.Cluster, s.Children, apply.Seen(s.Seen))
	if err != nil {
		return true, asStall(err)
	}
	pruned, err := a.Applier.Prune(ctx, s.Cluster, s.Obsolete, nil)
	return len(applied.Changed())+len(pruned.Changed()) > 0, err
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
