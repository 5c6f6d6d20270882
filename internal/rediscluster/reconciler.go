// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rediscluster reconciles RedisClusters: it observes, plans one step, acts, and
// reports.
package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/status"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// Reconciler reconciles RedisClusters.
type Reconciler struct {
	client     client.Client // reads RedisClusters from the cache
	observer   *observe.Observer
	actor      *act.Actor
	children   *children
	events     reporter
	patience   patience
	identities identities
	shares     *shares
	options    Options
	now        func() time.Time
}

// Reconcile is one pass, as soon as the cluster's namespace may have a worker.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	turn := r.shares.enter(req.Namespace, r.now())
	if turn == nil {
		return outcome.Wait("other clusters of the namespace are worked on", turnedAway).Result()
	}
	defer func() { r.shares.leave(turn, r.now()) }()
	return r.reconcile(ctx, req, turn)
}

// reconcile is one pass: observe, plan, act, report.
func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request, turn *turn) (ctrl.Result, error) {
	var cluster v1alpha1.RedisCluster
	if err := r.client.Get(ctx, req.NamespacedName, &cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			metrics.RedisCluster(req.Namespace, req.Name).Delete()
			r.forget(r.identities.replace(req.NamespacedName, ""))
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if before := r.identities.replace(req.NamespacedName, cluster.UID); before != cluster.UID {
		r.forget(before) // a former object of the same name
	}
	if again, behind := r.identities.behind(req.NamespacedName, cluster.ResourceVersion, r.now()); behind {
		return outcome.Wait("the cache does not show yet what was written last", again).Result()
	}
	defer func() { r.identities.wrote(req.NamespacedName, cluster.ResourceVersion, r.now()) }()
	admission.Default(&cluster)

	snap, held, err := r.observer.ObserveWithin(ctx, &cluster, turn.patience())
	turn.held += held
	if err != nil {
		return outcome.Retry(fmt.Errorf("observe: %w", err)).Result()
	}
	desired := r.desired(&cluster)
	rendered, err := r.children.observe(ctx, &cluster, desired, snap, r.now())
	desired.NodeTimeout, desired.Settings = rendered.nodeTimeout, rendered.settings
	pass := status.Pass{Snapshot: snap, ClusterDomain: r.options.ClusterDomain}
	switch {
	case err == nil:
		pass.Decision = plan.Decide(desired, snap, r.now())
	case stallCause(err) != "":
		desired.Problems = append(desired.Problems, err.Error())
		pass.Decision, pass.Err, pass.StallCause = plan.Decide(desired, snap, r.now()), err, stallCause(err)
	default:
		return outcome.Retry(fmt.Errorf("render: %w", err)).Result()
	}
	subject := act.Subject{Cluster: &cluster, Credentials: r.observer.Credentials(&cluster), Children: rendered.objects, Obsolete: rendered.obsolete, Pipeline: pipeline(&cluster)}
	result, err := r.carryOut(ctx, subject, desired, &pass, turn)
	pass.KeysMoved, pass.Refusals = result.KeysMoved, result.Refusals
	if handover, is := pass.Decision.Step.(plan.Handover); is && err == nil {
		r.observer.NoteHandover(cluster.UID, handover.Replica.NodeID)
	}
	for _, echo := range result.Echoes {
		r.observer.NoteEcho(cluster.UID, echo.Name, echo.Value, echo.Shown)
	}
	if err != nil {
		pass.Err, pass.StallCause = err, stallCause(err)
	}
	acted := result.Acted && stallCause(err) == ""
	if err := r.report(ctx, &cluster, pass, acted); err != nil {
		return outcome.Retry(err).Result()
	}
	return r.outcome(&cluster, pass, acted, turn).Result()
}

// carryOut does what the pass has decided. It decides again when there was nothing to apply after
// all, and when what was decided cannot be done while the cluster needs something as it is.
func (r *Reconciler) carryOut(ctx context.Context, subject act.Subject, desired plan.Desired, pass *status.Pass, turn *turn) (act.Result, error) {
	result, err := r.do(ctx, subject, pass.Decision.Step, turn)
	if _, applied := pass.Decision.Step.(plan.ApplyChildren); applied && !result.Acted && err == nil {
		pass.Snapshot.Pending = nil // they were as rendered after all, so this pass is about what comes next
		pass.Decision = plan.Decide(desired, pass.Snapshot, r.now())
		result, err = r.do(ctx, subject, pass.Decision.Step, turn)
	}
	if cause := stallCause(err); cause != "" && len(desired.Problems) == 0 {
		// What cannot be done holds back nothing that the cluster needs as it is.
		pass.Err, pass.StallCause = err, cause
		desired.Problems = append(desired.Problems, err.Error())
		if heal := plan.Decide(desired, pass.Snapshot, r.now()); heal.Heals() {
			pass.Decision = heal
			result, err = r.do(ctx, subject, heal.Step, turn)
		}
	}
	return result, err
}

// do carries out a step, within a time.
func (r *Reconciler) do(ctx context.Context, subject act.Subject, step plan.Step, turn *turn) (act.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	began := r.now()
	result, err := r.actor.Do(ctx, subject, step)
	if took := r.now().Sub(began); err != nil || took > longStep {
		turn.held += took
	}
	return result, err
}

func (r *Reconciler) desired(cluster *v1alpha1.RedisCluster) plan.Desired {
	d := plan.Desired{
		Topology: cluster.Spec.Topology(), Policy: cluster.DeletionPolicy(),
		Paused: cluster.Spec.Pause, Deleting: cluster.DeletionTimestamp != nil,
		HasFinalizer:  controllerutil.ContainsFinalizer(cluster, v1alpha1.Finalizer),
		CreateTimeout: r.options.CreateTimeout, UpgradeTimeout: r.options.UpgradeTimeout,
	}
	strategy := &cluster.Spec.UpdateStrategy
	d.AssignReceive, d.KeysPerSecond = strategy.Type == v1alpha1.AssignReceive, int(strategy.KeysPerSecond)
	for _, entry := range strategy.AssignStrategies {
		d.Gifts = append(d.Gifts, plan.Gift{Slots: int(entry.Slots), From: entry.From(), To: entry.To()})
	}
	volumes := cluster.Spec.Template().Volumes
	d.Ephemeral = volumes != nil && volumes.Type == v1alpha1.VolumeEmptyDir
	d.OnNode = volumes != nil && volumes.Type == v1alpha1.VolumeHostPath
	d.GiveUpNode = cluster.Annotations[v1alpha1.AnnotationGiveUpNode]
	d.Apart = cluster.Spec.AntiAffinity == v1alpha1.AntiAffinityRequired
	d.SpreadMasters = ptr.Deref(cluster.Spec.SpreadMasters, true)
	d.OnDelete = cluster.Spec.Template().UpdateStrategy.Type == v1alpha1.OnDelete
	d.OverCapacity = cluster.Annotations[v1alpha1.AnnotationOverCapacity] == "true"
	d.Modules = values.ModulesDigest(&cluster.Spec)
	d.GiveUp = cluster.Annotations[v1alpha1.AnnotationGiveUpData]
	d.PreviousPasswordFor = cluster.PreviousPasswordFor()
	if claim := cluster.Spec.Claim(); claim != nil {
		d.ClaimBytes = claim.Size.Value()
	}
	for _, problem := range admission.Validate(cluster, admission.Options{AllowHostPath: r.options.AllowHostPath}) {
		d.Problems = append(d.Problems, problem.Error())
	}
	return d
}

// pipeline is spec.updateStrategy.pipeline, which admission has checked; 0 when it is wrong.
func pipeline(cluster *v1alpha1.RedisCluster) int {
	n, _ := strconv.Atoi(cluster.Spec.UpdateStrategy.Pipeline)
	return n
}

// report writes the status when it differs, and only then says what happened.
func (r *Reconciler) report(ctx context.Context, cluster *v1alpha1.RedisCluster, pass status.Pass, acted bool) error {
	if _, removed := pass.Decision.Step.(plan.RemoveFinalizer); removed && pass.Err == nil {
		return nil // there is nothing to report on
	}
	before := cluster.DeepCopy()
	cluster.Status = status.Compute(cluster, pass, r.now())
	metrics.RedisCluster(cluster.Namespace, cluster.Name).Set(metrics.RedisClusterValues{
		Phase: string(cluster.Status.Phase), SlotsCovered: int(cluster.Status.Slots),
		SlotsToMove:    slotsToMove(cluster),
		InstancesReady: status.ReadyInstances(pass.Snapshot), Instances: int(pass.Decision.Topology.Instances()),
		CertificateNotAfter: pass.Snapshot.TLS.NotAfter,
	})
	if !equality.Semantic.DeepEqual(before.Status, cluster.Status) {
		if err := r.client.Status().Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("write the status: %w", err))
		}
	}
	r.events.report(before, cluster, pass, acted)
	return nil
}

func slotsToMove(cluster *v1alpha1.RedisCluster) int {
	if cluster.Status.Migration == nil {
		return 0
	}
	return int(cluster.Status.Migration.SlotsLeft)
}

// forget drops what is remembered of an object that is gone.
func (r *Reconciler) forget(uid types.UID) {
	r.observer.Forget(uid)
	r.children.forget(uid)
	r.patience.forget(uid)
}

// outcome says when to look again. A cluster that is as it should be is looked at every
// poll interval, because Redis sends no events; that costs the API server nothing.
func (r *Reconciler) outcome(cluster *v1alpha1.RedisCluster, pass status.Pass, acted bool, turn *turn) outcome.Outcome {
	step := pass.Decision.Step
	if _, held := step.(plan.Hold); held && len(pass.Snapshot.Instances) == 0 {
		return outcome.Done() // nothing runs, and nothing is to be done until the spec changes
	}
	if pass.StallCause != "" && !acted {
		return outcome.Wait(pass.Err.Error(), r.options.PollInterval)
	}
	if pass.Err != nil && pass.StallCause == "" {
		return outcome.Retry(pass.Err)
	}
	switch step := step.(type) {
	case plan.RemoveFinalizer:
		return outcome.Done()
	case plan.MoveSlots:
		return outcome.Wait(step.Why(), goOn)
	case plan.Wait:
		return r.again(cluster, step, step.After, turn)
	case plan.Stall:
		return r.again(cluster, step, step.After, turn)
	default:
		if acted {
			return outcome.Wait(step.Why(), afterStep)
		}
		return outcome.Wait(step.Why(), r.options.PollInterval)
	}
}

// stepWithin bounds how long a step may take. The longest is a MIGRATE of a large key; both of its
// ends would be taken for failed long before.
const stepWithin = time.Minute

// longStep is how long a step may take that is not counted as waiting for instances.
const longStep = 5 * time.Second

// again looks again after a while, and more and more rarely as long as the reason stays.
func (r *Reconciler) again(cluster *v1alpha1.RedisCluster, step plan.Step, after time.Duration, turn *turn) outcome.Outcome {
	if after > 0 {
		return outcome.Wait(step.Why(), r.patience.next(cluster.UID, step.Why(), max(after, turn.soonest()), r.options.PollInterval, r.now()))
	}
	return outcome.Wait(step.Why(), r.options.PollInterval)
}

// goOn is how soon to go on with a step that was only begun.
const goOn = time.Millisecond

// afterStep is how soon to observe what a step did.
const afterStep = 50 * time.Millisecond

func stallCause(err error) string {
	var stall *act.StallError
	if errors.As(err, &stall) {
		return stall.Cause
	}
	return ""
}
