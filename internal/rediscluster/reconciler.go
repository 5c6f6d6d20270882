// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
	"middleware.hc.cn/operator/internal/shell"
)

// Reconciler reconciles RedisClusters.
type Reconciler struct {
	client client.Client // reads RedisClusters from the cache
	loop   *Loop
	events reporter
	memory shell.Memory[*Memory]
	shares *shares
	// failures and changes are which clusters go first.
	failures, changes budget
	granted           granted
	woken             woken
	options           Options
	now               func() time.Time
}

// Reconcile runs the loop once, as soon as the cluster's namespace may have a worker. A cluster that is looked at again without a report
// goes with those that were changed, whatever it came with; one that had no turn keeps its priority.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	turn := r.shares.enter(req.Namespace, r.now())
	if turn == nil {
		return outcome.Wait("other clusters of the namespace are worked on", turnedAway).Result()
	}
	defer func() { r.shares.leave(turn, r.now()) }()
	result, err := r.reconcile(ctx, req, turn)
	if result.Priority == nil && (err != nil || result.RequeueAfter > 0) {
		return in(r.changed(req.NamespacedName), result, err)
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request, turn *turn) (ctrl.Result, error) {
	r.granted.use(req.NamespacedName)
	woken := r.woken.take(req.NamespacedName) // events from here on are for the next reconciliation
	var cluster v1alpha1.RedisCluster
	if why, ok := r.memory.Begin(ctx, r.client, req.NamespacedName, &cluster, r.now()); !ok {
		if woken && why.Kind() != outcome.KindDone { // the cache is behind, or could not be read: what woke the operator still counts
			r.woken.note(req.NamespacedName)
		}
		return why.Result()
	}
	defer func() { r.memory.Wrote(&cluster, r.now()) }()
	var memory *Memory
	r.memory.Update(cluster.UID, func(m **Memory) {
		if *m == nil {
			*m = &Memory{}
		}
		memory = *m
	})
	if !woken && r.rests(ctx, &cluster, memory, turn) {
		result, err := outcome.Wait("at rest", memory.rest.sooner(r.options.PollInterval, r.now())).Result()
		return in(routine, result, err)
	}
	before := memory.rest
	memory.rest = rest{turn: before.turn}
	was := cluster.DeepCopy()
	report, err := r.loop.Once(ctx, &cluster, memory, turn.timeout())
	turn.held += report.Held
	if err != nil {
		return outcome.Retry(err).Result()
	}
	report.log(log.FromContext(ctx))
	if report.Again {
		return outcome.Wait(report.Decision.Step.Why(), goOn).Result()
	}
	if err := r.report(ctx, was, &cluster, report); err != nil {
		return shell.Unwritten(err).Result()
	}
	memory.rest = before.after(&cluster, report, r.now().Add(longest(&cluster, r.options.PollInterval)))
	if memory.rest.seen != nil {
		memory.rendered.reduce()
	}
	result, err := r.outcome(report, memory, turn).Result()
	result.RequeueAfter = memory.rest.sooner(result.RequeueAfter, r.now())
	return in(r.next(req.NamespacedName, report, memory.rest.seen != nil), result, err)
}

// report writes the status when it differs, and only then says what happened.
func (r *Reconciler) report(ctx context.Context, was, cluster *v1alpha1.RedisCluster, report Report) error {
	if plan.Is[plan.RemoveFinalizer](report.Decision.Step) && report.Err == nil {
		return nil // there is nothing to report on
	}
	before := cluster.DeepCopy() // defaults are not written
	before.Status = was.Status
	archiving, behind := archiveValues(cluster, report, r.now())
	values := metrics.RedisClusterValues{
		Phase: string(cluster.Status.Phase), SlotsCovered: int(cluster.Status.Slots),
		SlotsToMove:    slotsToMove(cluster),
		InstancesReady: status.ReadyInstances(report.Snapshot), Instances: int(report.Decision.Topology.Instances()),
		CertificateNotAfter: report.Snapshot.TLS.NotAfter,
		Archiving:           archiving, ArchiveBehind: behind,
	}
	if a := cluster.Status.Autoscale; a != nil {
		values.AutoscaleShards, values.AutoscaleWanted = int(a.Shards), int(ptr.Deref(a.Wanted, 0))
	}
	if p := cluster.Status.Plan; p != nil {
		values.BlockedBy = p.BlockedBy
	}
	if status.Asleep(report.Reconciliation) {
		values.Instances = 0 // none is to run
	}
	if r.options.InstanceMetrics {
		values.Each = instanceValues(report.Snapshot)
	}
	metrics.RedisCluster(cluster.Namespace, cluster.Name).Set(values)
	if !equality.Semantic.DeepEqual(before.Status, cluster.Status) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.client.Status().Patch(ctx, cluster, patch); err != nil {
			return err
		}
	}
	r.loop.Report(cluster)
	r.events.report(before, cluster, report)
	return nil
}

// archiveValues are what is told of the archive of a cluster that has formed; nil without one, and a negative time if that is not known.
func archiveValues(cluster *v1alpha1.RedisCluster, report Report, now time.Time) (archiving *bool, behind time.Duration) {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionArchiving)
	if condition == nil || !report.Snapshot.Formed || status.Asleep(report.Reconciliation) {
		return nil, -1
	}
	behind, known := status.ArchiveBehind(report.Snapshot.Archive, now)
	if !known {
		behind = -1
	}
	return ptr.To(condition.Status == metav1.ConditionTrue), behind
}

// instanceValues are what is told of each instance.
func instanceValues(s *snapshot.Snapshot) []metrics.Instance {
	list := make([]metrics.Instance, len(s.Instances))
	for i := range s.Instances {
		in := &s.Instances[i]
		list[i] = metrics.Instance{Pod: in.Name, Shard: in.Shard, Behind: -1}
		r := in.Redis
		if r == nil {
			continue
		}
		list[i].Answers, list[i].Master, list[i].Slots, list[i].Keys, list[i].Stats = true, r.Master, r.Slots.Len(), r.Keys, r.Stats
		list[i].Linked = r.MasterLinkUp
		if master := s.ByNodeID(r.MasterID); master != nil && r.MasterLinkUp {
			list[i].Behind = max(0, master.Redis.Offset-r.Offset)
		}
	}
	return list
}

func slotsToMove(cluster *v1alpha1.RedisCluster) int {
	if cluster.Status.Migration == nil {
		return 0
	}
	return int(cluster.Status.Migration.SlotsLeft)
}

// outcome says when to look again. A cluster that is healthy is looked at every
// poll interval, because Redis sends no events; that costs the API server nothing.
func (r *Reconciler) outcome(report Report, m *Memory, turn *turn) outcome.Outcome {
	step := report.Decision.Step
	if plan.Is[plan.Hold](step) && len(report.Snapshot.Instances) == 0 {
		return outcome.Done() // nothing runs, and nothing is to be done until the spec changes
	}
	if report.Err != nil {
		return outcome.Retry(report.Err)
	}
	// again looks more and more rarely as long as the reason stays.
	again := func(after time.Duration) outcome.Outcome {
		if after > 0 {
			after = m.wait.next(step.Why(), max(after, turn.soonest()), r.options.PollInterval, r.now())
		} else {
			after = r.options.PollInterval
		}
		return outcome.Wait(step.Why(), after)
	}
	wait, waits := step.(plan.Wait)
	stall, stalls := step.(plan.Stall)
	switch {
	case plan.Is[plan.RemoveFinalizer](step):
		return outcome.Done()
	case plan.Is[plan.MoveSlots](step):
		return outcome.Wait(step.Why(), goOn)
	case waits:
		return again(wait.After)
	case stalls:
		return again(stall.After)
	case report.Acted:
		return outcome.Wait(step.Why(), afterStep)
	}
	return outcome.Wait(step.Why(), r.options.PollInterval)
}

// log says what a step did in one line: once for a step that goes on, such as moving slots. At
// verbosity 1 every reconciliation says which rule won.
func (r Report) log(logger logr.Logger) {
	step := r.Decision.Step
	line := []any{"rule", r.Decision.Rule, "step", step.Name(), "reason", excerpt.Of(step.Why(), longestReason), "situation",
		r.Decision.Situation}
	switch {
	case !r.Acted || r.Err != nil: // errors are logged by the controller
		logger.V(1).Info("Reconciled", line...)
	case plan.Is[plan.MoveSlots](step) && r.movedBefore:
		logger.V(1).Info("Moved slots", append(line, "keys", r.KeysMoved)...)
	default:
		logger.Info("Acted", append(line, "pods", plan.Pods(step))...)
	}
}

// longestReason is how much of a reason is logged, in bytes.
const longestReason = 1000

// goOn is how soon to go on with a step that was only begun.
const goOn = time.Millisecond

// afterStep is how soon to observe what a step did.
const afterStep = 50 * time.Millisecond
