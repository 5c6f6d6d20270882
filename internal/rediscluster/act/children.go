// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
)

// applyChildren brings the rendered children into being and deletes what is no longer
// rendered. Acted reports whether any was not so before: after a restart of the operator
// all are applied once, because nothing is known of them. A StatefulSet that has changed since the decision is not: it may be asked
// for fewer instances than there are by now. What is for clients outside comes last, and whatever becomes of it is no error.
func (a *Actor) applyChildren(ctx context.Context, s Subject) (Result, error) {
	isOutside := func(name string) bool { return Outside(s.Cluster, name) }
	inside, outside := apart(s.Children, func(o *unstructured.Unstructured) bool { return isOutside(o.GetName()) })
	gone, goneOutside := apart(s.Obsolete, func(ref apply.Ref) bool { return isOutside(ref.Name) })
	applied, err := a.Applier.Apply(ctx, s.Cluster, inside, apply.Seen(s.Seen))
	if err != nil {
		return Result{Acted: true}, asStall(err)
	}
	pruned, err := a.Applier.Prune(ctx, s.Cluster, gone, nil)
	result := Result{Acted: len(applied.Changed())+len(pruned.Changed()) > 0}
	if err != nil || len(outside)+len(goneOutside) == 0 {
		return result, err
	}
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	_, stops := apart(outside, stopped)
	ended, endedErr := a.Applier.Apply(ctx, s.Cluster, stops)
	pruned, prunedErr := a.Applier.Prune(ctx, s.Cluster, goneOutside, nil)
	applied, err = a.Applier.Apply(ctx, s.Cluster, outside)
	if err = errors.Join(err, endedErr, prunedErr); err != nil {
		result.Outside = asRefusedOutside(err)
	}
	result.Acted = result.Acted || len(ended.Changed())+len(applied.Changed())+len(pruned.Changed()) > 0
	return result, nil
}

// stopped reports whether a Deployment is to have no pods: that waits for nothing else.
func stopped(o *unstructured.Unstructured) bool {
	replicas, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	return o.GetKind() == "Deployment" && found && err == nil && replicas == 0
}

// outsideWithin is how long what is made for clients outside may take: a webhook of a balancer's may not answer.
const outsideWithin = 5 * time.Second

// RefusedOutside is why what is made for clients outside is not as it is rendered.
type RefusedOutside struct {
	// Message says why, and what helps.
	Message string
	// Person reports that trying again does not help: somebody has to change something.
	Person bool
}

// Outside reports whether a child of that name is for clients outside: a port that is taken, a quota, or a webhook that is away holds up
// no instance.
func Outside(cluster *v1alpha1.RedisCluster, name string) bool {
	return name == cluster.GatewayName() || name == cluster.ExternalConfigMap()
}

// apart parts those for whom something holds from the rest.
func apart[T any](all []T, holds func(T) bool) (rest, those []T) {
	for _, one := range all {
		if holds(one) {
			those = append(those, one)
		} else {
			rest = append(rest, one)
		}
	}
	return rest, those
}

func asRefusedOutside(err error) *RefusedOutside {
	var stall *StallError
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return &RefusedOutside{Person: true, Message: fmt.Sprintf(
			"spec.external asks for what the API server refuses: %v; change it, or what refuses it, such as a quota", err)}
	case errors.As(asStall(err), &stall):
		return &RefusedOutside{Message: stall.Message, Person: true}
	}
	return &RefusedOutside{Message: fmt.Sprintf("what spec.external asks for cannot be written now, and is tried again: %v", err)}
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
	if reason, _ := apply.Reason(err); reason == apply.ReasonRejected { // which is final
		return &StallError{Cause: "Rejected", Message: fmt.Sprintf(
			"the API server refuses what the spec asks for: %v; change the spec, or what refuses it", err)}
	}
	return err
}
