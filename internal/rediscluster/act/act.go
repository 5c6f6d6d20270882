// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package act carries out the steps that package plan decides: it does all the writing
// of a RedisCluster, one file a step, and never decides what comes first. A step that was
// interrupted anywhere is decided again from what is observed then.
package act

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/access"
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
	// ServiceAccount is the operator's own, namespace:name, for messages about missing
	// rights.
	ServiceAccount string
	// BackupImage has the program that restores backups; empty: not known.
	BackupImage string
	// Now is the clock.
	Now func() time.Time
	// SwitchoverWithin is how long a switchover is watched; 0 leaves that to the next reconciliation.
	SwitchoverWithin time.Duration
}

// Subject is what a step is carried out on.
type Subject struct {
	Cluster     *v1alpha1.RedisCluster
	Credentials redis.Credentials
	// Access is what instances are to accept, as last read; nil when it is not known.
	Access *access.State
	// Children are the rendered objects for the topology of the decision.
	Children []*unstructured.Unstructured
	// Certificate is the rendered Certificate, NoCertificate one that is to go; nil: there is none.
	Certificate   *unstructured.Unstructured
	NoCertificate *apply.Ref
	// Seen are the versions of the StatefulSets that the decision was made on, by UID.
	Seen map[types.UID]string
	// Obsolete are children of an earlier rendering that are to go.
	Obsolete []apply.Ref
	// Pipeline is how many keys one MIGRATE carries at most.
	Pipeline int
}

// StallError says that a step cannot be done until someone changes something.
type StallError struct {
	// Cause is the reason in one CamelCase word.
	Cause string
	// Message says what is wrong and what helps.
	Message string
}

func (e *StallError) Error() string { return e.Message }

// Result is what a step came to.
type Result struct {
	// Acted reports whether something was changed, so that there is something new to observe.
	Acted bool
	// KeysMoved is how many keys went from one master to another.
	KeysMoved int64
	// Refusals are settings that instances refused, Normalized those that they took and show
	// in other words.
	Refusals   []snapshot.Refusal
	Normalized []Normalized
	// AccessChanged reports whether the Secrets of the password and the users are to be read again.
	AccessChanged bool
	// UsersRefused are users whose rules an instance refused; nil when none did.
	UsersRefused *UsersRefused
	// Outside is why what is made for clients outside was not written, which holds up nothing else; nil when it was.
	Outside *RefusedOutside
}

// NeedsChildren reports whether a step is carried out by what is rendered: Subject.Children or Certificate.
func NeedsChildren(step plan.Step) bool {
	return plan.Is[plan.ApplyChildren](step) || plan.Is[plan.Hibernate](step) || plan.Is[plan.Wake](step) ||
		plan.Is[plan.ApplyCertificate](step) || plan.Is[plan.RestoreShards](step) || plan.Is[plan.PrepareImport](step)
}

// Do carries out a step. The result counts also when there is an error.
func (a *Actor) Do(ctx context.Context, s Subject, step plan.Step) (Result, error) {
	switch step := step.(type) {
	case plan.None, plan.Wait, plan.Hold, plan.Stall, plan.RolloutWait, plan.Sleep:
		return Result{}, nil
	case plan.RecordGoal, plan.SetShards, plan.RecordNodes, plan.RecordKeys, plan.RecordCutOver, plan.RecordHibernation, plan.GiveUp,
		plan.RecordCertificate: // the status holds it
		return Result{Acted: true}, nil
	case plan.TakeTurn:
		return Result{Acted: step.Wave > 0}, nil // the status holds it
	case plan.ApplyChildren, plan.Hibernate, plan.Wake:
		return a.applyChildren(ctx, s)
	case plan.SetConfig:
		return a.setConfig(ctx, s, step)
	case plan.ChangePassword:
		refused, err := a.changePassword(ctx, s, step)
		return Result{Acted: true, AccessChanged: true, UsersRefused: refused}, err
	case plan.MoveSlots:
		progress, err := a.moveSlots(ctx, s, step)
		return Result{Acted: true, KeysMoved: progress.Keys}, err
	case plan.AddFinalizer, plan.CreateAuth, plan.ApplyCertificate, plan.AssignSlots, plan.Meet, plan.SetNodeTimeout, plan.Replicate,
		plan.Promote, plan.Forget, plan.DeleteChildren, plan.OrphanChildren, plan.RemoveFinalizer, plan.AddToEndpoints,
		plan.BumpEpoch, plan.CancelJobs, plan.StabilizeSlots, plan.CopyFunctions, plan.ForceDelete, plan.RemoveFromEndpoints,
		plan.ExpandPVCs, plan.Switchover, plan.Place, plan.ReloadCertificates, plan.RemoveShards, plan.Recreate,
		plan.RepairSlots, plan.Restart, plan.SetAccess, plan.RestoreShards, plan.KeepRestored, plan.DeleteRestoreJobs,
		plan.PrepareImport, plan.KeepFollower, plan.CutOver, plan.EndImport, plan.EndSwitchover, plan.SetTLS, plan.ReclaimSlots,
		plan.RewriteAOF:
	}
	return Result{Acted: true}, a.do(ctx, s, step)
}

// do carries out a step of which there is nothing to tell but that it was done.
func (a *Actor) do(ctx context.Context, s Subject, step plan.Step) error {
	switch step := step.(type) {
	case plan.AddFinalizer:
		return a.addFinalizer(ctx, s.Cluster)
	case plan.CreateAuth:
		return a.createAuth(ctx, s)
	case plan.ApplyCertificate:
		return a.applyCertificate(ctx, s)
	case plan.SetAccess:
		return a.setAccess(ctx, s, step)
	case plan.ReloadCertificates:
		return a.reloadCertificates(ctx, s, step)
	case plan.SetTLS:
		return a.setTLS(ctx, s, step)
	case plan.ExpandPVCs:
		return a.expandPVCs(ctx, s, step)
	case plan.AssignSlots:
		return a.assignSlots(ctx, s, step)
	case plan.Meet:
		return a.meet(ctx, s, step)
	case plan.SetNodeTimeout:
		return a.setNodeTimeout(ctx, s, step)
	case plan.Replicate:
		return a.replicate(ctx, s, step)
	case plan.Promote:
		return a.promote(ctx, s, step)
	case plan.Forget:
		return a.forget(ctx, s, step)
	case plan.BumpEpoch:
		return a.bumpEpoch(ctx, s, step)
	case plan.Place:
		return a.place(ctx, s, step)
	case plan.AddToEndpoints:
		return a.setServing(ctx, s, step.Pods, corev1.ConditionTrue, "KnowsTheCluster")
	case plan.RemoveFromEndpoints:
		return a.setServing(ctx, s, step.Pods, corev1.ConditionFalse, "Leaving")
	case plan.CopyFunctions:
		return a.copyFunctions(ctx, s, step)
	case plan.StabilizeSlots:
		return a.stabilizeSlots(ctx, s, step)
	case plan.RewriteAOF:
		return a.rewriteAOF(ctx, s, step)
	case plan.ReclaimSlots:
		return a.reclaimSlots(ctx, s, step)
	case plan.RepairSlots:
		return a.repairSlots(ctx, s, step)
	case plan.CancelJobs:
		return a.cancelJobs(ctx, s, step)
	case plan.Switchover:
		return a.switchover(ctx, s, step)
	case plan.Restart:
		return a.restart(ctx, s, step)
	case plan.ForceDelete:
		return a.forceDelete(ctx, s, step)
	case plan.Recreate:
		return a.recreate(ctx, s, step)
	case plan.RemoveShards:
		return a.removeShards(ctx, s.Cluster, step)
	case plan.RestoreShards:
		return a.restoreShards(ctx, s, step)
	case plan.KeepRestored:
		return a.keepRestored(ctx, s.Cluster, step.Claims)
	case plan.PrepareImport:
		return a.prepareImport(ctx, s, step)
	case plan.KeepFollower:
		return a.keepRestored(ctx, s.Cluster, step.Claims)
	case plan.CutOver:
		return a.cutOver(ctx, s, step)
	case plan.EndImport:
		return a.endImport(ctx, s.Cluster, step)
	case plan.EndSwitchover:
		return a.endSwitchover(ctx, s.Cluster, step)
	case plan.DeleteRestoreJobs:
		return a.deleteRestoreJobs(ctx, s.Cluster, step)
	case plan.DeleteChildren:
		return a.deleteChildren(ctx, s.Cluster)
	case plan.OrphanChildren:
		return a.orphanChildren(ctx, s.Cluster)
	case plan.RemoveFinalizer:
		return a.removeFinalizer(ctx, s.Cluster)
	case plan.None, plan.Wait, plan.Hold, plan.Stall, plan.ApplyChildren, plan.GiveUp, plan.MoveSlots, plan.RecordGoal,
		plan.SetShards, plan.TakeTurn,
		plan.RecordNodes, plan.RecordKeys, plan.RecordCutOver, plan.RecordHibernation, plan.Hibernate, plan.Wake, plan.Sleep,
		plan.RecordCertificate, plan.RolloutWait, plan.SetConfig, plan.ChangePassword:
		// Do carries these out itself.
	}
	return fmt.Errorf("step %s has no executor", step.Name())
}

// node connects to an instance.
func (a *Actor) node(s Subject, t plan.Target) *redis.Node {
	return a.Redis.Node(t.Way.Address(t.IP), s.Credentials.Plainly(t.Way.Plain))
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

// each runs a function on every item, several at a time, and returns the error of the first item that has one. An item that
// fails, or panics, does not stop the others.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	return cmp.Or(outcomes(ctx, items, do)...)
}

// outcomes is each with the error of every item.
func outcomes[T any](ctx context.Context, items []T, do func(context.Context, T) error) []error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(commandsAtOnce)
	for i, item := range items {
		group.Go(func() error {
			errs[i] = contain.Call(ctx, "carry out the step", func() error { return do(ctx, item) })
			return nil
		})
	}
	_ = group.Wait() // the errors are in the list
	return errs
}

// identify makes sure that nodes are still the ones that were observed, and returns why one is not by its target.
func (a *Actor) identify(ctx context.Context, s Subject, targets []plan.Target) map[plan.Target]error {
	errs := outcomes(ctx, targets, func(ctx context.Context, t plan.Target) error {
		_, err := a.identified(ctx, s, t)
		return err
	})
	failed := map[plan.Target]error{}
	for i, err := range errs {
		if err != nil {
			failed[targets[i]] = err
		}
	}
	return failed
}
