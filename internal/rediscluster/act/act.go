// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package act carries out the steps that package plan decides: it does all the writing
// of a RedisCluster, one file a step, and never decides what comes first. A step that was
// interrupted anywhere is decided again from what is observed then.
package act

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// commandsAtOnce bounds how many instances are sent a command at the same time.
const commandsAtOnce = 16

// Actor writes.
type Actor struct {
	// Client writes to Kubernetes, and reads past every cache.
	Client  client.Client
	Applier *apply.Applier
	Redis   *redis.Pool
}

// Subject is what a step is carried out on.
type Subject struct {
	Cluster     *v1alpha1.RedisCluster
	Credentials redis.Credentials
	// Children are the rendered objects for the topology of the decision.
	Children []*unstructured.Unstructured
	// Obsolete are children of an earlier rendering that are to go.
	Obsolete []apply.Ref
}

// StallError says that a step cannot be done until someone changes something.
type StallError struct {
	// Cause is the reason in one CamelCase word.
	Cause string
	// Message says what is wrong and what helps.
	Message string
}

func (e *StallError) Error() string { return e.Message }

// Do carries out a step. acted says that something was changed, so that there is
// something new to observe.
func (a *Actor) Do(ctx context.Context, s Subject, step plan.Step) (acted bool, err error) {
	switch step := step.(type) {
	case plan.None, plan.Wait, plan.Hold, plan.Stall, plan.ScaleWait, plan.RolloutWait:
		return false, nil
	case plan.AddFinalizer:
		return true, a.addFinalizer(ctx, s.Cluster)
	case plan.CreateAuth:
		return true, a.createAuth(ctx, s.Cluster)
	case plan.ApplyChildren:
		return a.applyChildren(ctx, s)
	case plan.GrowClaims:
		return true, a.growClaims(ctx, s, step)
	case plan.AssignSlots:
		return true, a.assignSlots(ctx, s, step)
	case plan.Meet:
		return true, a.meet(ctx, s, step)
	case plan.SetNodeTimeout:
		return true, a.setNodeTimeout(ctx, s, step)
	case plan.Replicate:
		return true, a.replicate(ctx, s, step)
	case plan.Promote:
		return true, a.promote(ctx, s, step)
	case plan.Forget:
		return true, a.forget(ctx, s, step)
	case plan.DeleteChildren:
		return true, a.deleteChildren(ctx, s.Cluster)
	case plan.OrphanChildren:
		return true, a.orphanChildren(ctx, s.Cluster)
	case plan.RemoveFinalizer:
		return true, a.removeFinalizer(ctx, s.Cluster)
	default:
		return false, fmt.Errorf("step %s has no executor", step.Name())
	}
}

// node connects to an instance.
func (a *Actor) node(s Subject, t plan.Target) *redis.Node {
	return a.Redis.Node(snapshot.Address(t.IP), s.Credentials)
}

// identified connects to an instance and makes sure that it is the node that was
// observed there: pod addresses are used again, and the node that answers today may be
// another cluster's.
func (a *Actor) identified(ctx context.Context, s Subject, t plan.Target) (*redis.Node, error) {
	node := a.node(s, t)
	id, err := node.Identify(ctx)
	if err != nil {
		return nil, fmt.Errorf("identify %s: %w", t.Pod, err)
	}
	if id != t.NodeID {
		return nil, fmt.Errorf("%s at %s is node %s now, and was node %s when observed", t.Pod, t.IP, id, t.NodeID)
	}
	return node, nil
}

// each runs a function on every item, several at a time, and returns the first error.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(commandsAtOnce)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
