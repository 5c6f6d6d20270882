// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/shell"
)

var kind = v1alpha1.GroupVersion.WithKind("RedisBackupSchedule")

// When to look again: after a step, and at the latest, for clocks are set.
const soon, latest = time.Second, time.Hour

type reconciler struct {
	cache    client.Reader
	live     client.Client // the API server
	selector labels.Selector
	recorder events.EventRecorder
	now      func() time.Time
	// memory is of when the API server was last asked what a schedule has made, and had nothing that the cache does not hold.
	memory shell.Memory[time.Time]
}

// errBehind: the cache does not show the schedule as it is. It may be another operator's by now.
var errBehind = errors.New("the cache does not show the schedule as it is")

// Reconcile runs one reconciliation.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	schedule := &v1alpha1.RedisBackupSchedule{}
	if why, ok := r.memory.Begin(ctx, r.cache, request.NamespacedName, schedule, r.now()); !ok {
		return why.Result()
	}
	s, err := r.observe(ctx, schedule, r.cache)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := Plan(s)
	if _, rests := step.(Rest); !rests || r.mayMiss(s) { // what is made or deleted is decided on by what there is
		if s, err = r.ask(ctx, schedule); errors.Is(err, errBehind) {
			return outcome.Wait(err.Error(), soon).Result()
		} else if err != nil {
			return ctrl.Result{}, err
		}
		step = Plan(s)
		if _, relabels := step.(Relabel); !relabels && !lent(s) {
			r.memory.Update(schedule.UID, func(asked *time.Time) { *asked = s.Now })
		}
	}
	failed := r.act(ctx, s, step)
	var unlabelled error
	if _, relabels := step.(Relabel); relabels && failed != nil { // somebody refuses it: what else is due is done all the same
		unlabelled, s.Unlabelled = failed, failed.Error()
		step = Plan(s)
		failed = r.act(ctx, s, step)
	}
	status := ComputeStatus(s, step, failed)
	log.FromContext(ctx).V(1).Info("Reconciled", "step", fmt.Sprintf("%T", step))
	if err := r.write(ctx, schedule, &status); err != nil {
		return shell.Unwritten(err).Result()
	}
	if failed != nil {
		return outcome.Retry(errors.Join(failed, unlabelled)).Result()
	}
	r.tell(s, step)
	if unlabelled != nil {
		return outcome.Retry(unlabelled).Result()
	}
	if _, rests := step.(Rest); !rests {
		return outcome.Wait("a step was taken", soon).Result()
	}
	at := wake(s, &status)
	if at.IsZero() {
		return outcome.Done().Result()
	}
	return outcome.Wait("the next one is due later", min(latest, max(soon, at.Sub(s.Now)))).Result()
}

// mayMiss reports whether the cache may lack what a schedule has made: with a selector, what was made under another label.
func (r *reconciler) mayMiss(s *Snapshot) bool {
	since := s.Now.Sub(r.memory.Get(s.Schedule.UID))
	return len(s.Keys) > 0 && (since < 0 || since >= latest)
}

// observe does all the reading of a reconciliation. What it cannot read is an error, never an absence. Whose the schedule is goes by the
// selector, and so does the RedisCluster that is backed up; what the schedule has made, and what is in its way, does not.
func (r *reconciler) observe(ctx context.Context, schedule *v1alpha1.RedisBackupSchedule, from client.Reader) (*Snapshot, error) {
	s := &Snapshot{Schedule: schedule, Now: r.now(), Keys: keysOf(r.selector)}
	var list v1alpha1.RedisBackupList
	if err := from.List(ctx, &list, client.InNamespace(schedule.Namespace)); err != nil {
		return nil, fmt.Errorf("list the RedisBackups: %w", err)
	}
	s.Backups = list.Items
	var clusters v1alpha1.RedisClusterList // the operator may list them, and not get one
	if err := from.List(ctx, &clusters, client.InNamespace(schedule.Namespace)); err != nil {
		return nil, fmt.Errorf("list the RedisClusters: %w", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if c.Name == schedule.ThrowawayName() {
			s.Throwaway = c
		}
		if c.Name != schedule.Spec.Cluster || c.DeletionTimestamp != nil {
			continue
		}
		if r.selector.Matches(labels.Set(c.Labels)) {
			s.Cluster = c
		} else {
			s.Elsewhere = true
		}
	}
	return s, nil
}

// ask observes what the API server has. With a selector it returns errBehind unless it has the schedule as it was given. That is read after
// what the schedule has made: so an operator that lost the schedule to another one sees that one's labels only where it sees the loss, too.
func (r *reconciler) ask(ctx context.Context, schedule *v1alpha1.RedisBackupSchedule) (*Snapshot, error) {
	s, err := r.observe(ctx, schedule, r.live)
	if err != nil || len(s.Keys) == 0 {
		return s, err
	}
	var list v1alpha1.RedisBackupScheduleList
	if err := r.live.List(ctx, &list, client.InNamespace(schedule.Namespace)); err != nil {
		return nil, fmt.Errorf("list the RedisBackupSchedules: %w", err)
	}
	for i := range list.Items {
		if is := &list.Items[i]; is.UID == schedule.UID && is.ResourceVersion == schedule.ResourceVersion {
			return s, nil
		}
	}
	return nil, errBehind
}

// act does all the writing of a step, the status apart.
func (r *reconciler) act(ctx context.Context, s *Snapshot, step Step) error {
	switch step := step.(type) {
	case Make: // one that exists by now is looked at in the next reconciliation
		backup := backupOf(s.Schedule, step.At)
		inherit(s.Keys, s.Schedule, backup)
		if err := r.live.Create(ctx, backup); err != nil {
			return fmt.Errorf("make RedisBackup %s: %w", backup.Name, err)
		}
	case Prune: // on condition that nobody has changed it since, such as by taking its label off
		b := step.Backup
		err := r.live.Delete(ctx, b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisBackup %s: %w", b.Name, err)
		}
	case MakeThrowaway:
		throwaway := throwawayOf(s.Schedule, s.Cluster, step.Backup)
		inherit(s.Keys, s.Schedule, throwaway)
		if err := r.live.Create(ctx, throwaway); err != nil {
			return fmt.Errorf("make RedisCluster %s: %w", throwaway.Name, err)
		}
	case DeleteThrowaway: // on condition that it is still the schedule's, which somebody may have changed to keep it
		c := step.Cluster
		err := r.live.Delete(ctx, c, client.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisCluster %s: %w", c.Name, err)
		}
	case Relabel:
		return r.relabel(ctx, s, step)
	case Rest, Note, Pass, Skip, BeginVerification, SkipVerification, EndVerification: // the status holds it
	}
	return nil
}

// relabel changes labels, each on condition that nobody has changed the object since it was seen.
func (r *reconciler) relabel(ctx context.Context, s *Snapshot, step Relabel) error {
	change := func(object client.Object) error {
		changed, is := object.DeepCopyObject().(client.Object)
		if !is {
			return fmt.Errorf("%T is no object", object)
		}
		inherit(s.Keys, s.Schedule, changed)
		err := r.live.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("give %s the labels of the schedule: %w", object.GetName(), err)
		}
		return nil
	}
	var failed []error
	for _, b := range step.Backups {
		failed = append(failed, change(b))
	}
	if err := errors.Join(failed...); err != nil || step.Throwaway == nil {
		return err
	}
	return change(step.Throwaway)
}

// backupOf is the RedisBackup of a time. It has no owner: it stays when the schedule is deleted.
func backupOf(s *v1alpha1.RedisBackupSchedule, at time.Time) *v1alpha1.RedisBackup {
	spec := s.Spec.DeepCopy()
	backup := &v1alpha1.RedisBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.BackupName(at),
			Labels: map[string]string{v1alpha1.LabelSchedule: s.Name, v1alpha1.LabelScheduleUID: string(s.UID)}},
		Spec: v1alpha1.RedisBackupSpec{Cluster: spec.Cluster, Store: spec.Store, Recipients: spec.Recipients, Timeout: spec.Timeout,
			MaxBytesPerSecond: spec.MaxBytesPerSecond, DeletionPolicy: v1alpha1.BackupRetain},
	}
	if spec.Retention != nil {
		backup.Spec.DeletionPolicy = v1alpha1.BackupDelete
	}
	return backup
}

// write patches the status when it differs.
func (r *reconciler) write(ctx context.Context, schedule *v1alpha1.RedisBackupSchedule, status *v1alpha1.RedisBackupScheduleStatus) error {
	if equality.Semantic.DeepEqual(&schedule.Status, status) {
		return nil
	}
	answer, err := shell.PatchTyped(kind, schedule, status, func(object client.Object, patch client.Patch) error {
		return r.live.Status().Patch(ctx, object, patch)
	})
	if err == nil {
		r.memory.Wrote(answer, r.now())
	}
	return err
}

// tell writes an Event when a backup was made, left out or deleted, and when a verification began, was left out or came to its end.
func (r *reconciler) tell(s *Snapshot, step Step) {
	say := func(eventType, reason, format string, arguments ...any) {
		r.recorder.Eventf(s.Schedule, nil, eventType, reason, "Schedule", "%s", shell.Note(fmt.Sprintf(format, arguments...)))
	}
	switch step := step.(type) {
	case Make:
		say(corev1.EventTypeNormal, "BackupMade", "RedisBackup %s was made", s.Schedule.BackupName(step.At))
	case Skip:
		say(corev1.EventTypeWarning, step.Reason, "%s", step.Message)
	case Prune:
		say(corev1.EventTypeNormal, "BackupDeleted", "RedisBackup %s is deleted: %s", step.Backup.Name, step.Why)
	case BeginVerification:
		say(corev1.EventTypeNormal, "VerificationBegun", "RedisBackup %s is restored into RedisCluster %s, to verify it", step.Backup,
			s.Schedule.ThrowawayName())
	case SkipVerification:
		say(corev1.EventTypeWarning, step.Reason, "no backup was verified: %s", step.Message)
	case EndVerification:
		eventType := corev1.EventTypeWarning
		if step.Status == metav1.ConditionTrue {
			eventType = corev1.EventTypeNormal
		}
		say(eventType, step.Reason, "%s", step.Message)
	case Rest, Note, Pass, MakeThrowaway, DeleteThrowaway, Relabel:
	}
}
