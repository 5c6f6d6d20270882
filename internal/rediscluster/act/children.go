// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
)

// applyChildren brings the rendered children into being and deletes what is no longer
// rendered. changed reports whether any was not so before: after a restart of the operator
// all are applied once, because nothing is known of them. A StatefulSet that has changed since the decision is not: it may be asked
// for fewer instances than there are by now.
func (a *Actor) applyChildren(ctx context.Context, s Subject) (changed bool, err error) {
	inside, outside := apart(s.Cluster, s.Children)
	applied, err := a.Applier.Apply(ctx, s.Cluster, append(inside, outside...), apply.Seen(s.Seen))
	if err != nil && len(applied) >= len(inside) && len(outside) > 0 {
		return true, asExternalStall(err)
	}
	if err != nil {
		return true, asStall(err)
	}
	pruned, err := a.Applier.Prune(ctx, s.Cluster, s.Obsolete, nil)
	return len(applied.Changed())+len(pruned.Changed()) > 0, err
}

// apart parts what is for clients outside from the rest: a port that is taken, or a quota, holds up no instance.
func apart(cluster *v1alpha1.RedisCluster, children []*unstructured.Unstructured) (inside, outside []*unstructured.Unstructured) {
	for _, child := range children {
		if name := child.GetName(); name == cluster.GatewayName() || name == cluster.ExternalConfigMap() {
			outside = append(outside, child)
		} else {
			inside = append(inside, child)
		}
	}
	return inside, outside
}

// asExternalStall is asStall for what is made for clients outside.
func asExternalStall(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return &StallError{Cause: "ExternalRefused", Message: fmt.Sprintf(
			"spec.external asks for what the API server refuses: %v; change it, or what refuses it, such as a quota", err)}
	}
	return asStall(err)
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
	}
	if reason, final := apply.Reason(err); final && reason == apply.ReasonRejected {
		return &StallError{Cause: "Rejected", Message: fmt.Sprintf(
			"the API server refuses what the spec asks for: %v; change the spec, or what refuses it", err)}
	}
	return err
}
