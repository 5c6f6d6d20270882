// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/shell"
)

var kind = v1alpha1.GroupVersion.WithKind("RedisBackup")

// When to look again for what no event tells, such as a Secret; soon after the RedisCluster's reconciler was told.
const soon, later = time.Second, 10 * time.Second

type reconciler struct {
	cache          client.Reader // custom resources
	children       client.Reader // what the operator made
	live           client.Client // the API server
	image          string
	serviceAccount string
	// platformUserIDs: pods get their user IDs from the platform.
	platformUserIDs bool
	recorder        events.EventRecorder
	now             func() time.Time
	// ask asks a pod how far it is; nil: nobody does.
	ask    backupjob.Ask
	memory shell.Memory[remembered]
}

// remembered is when a Job was made last that deletes a backup from its store, and how far the one is that takes it.
type remembered struct {
	erased time.Time
	taking backupjob.Listener
}

// Reconcile runs one reconciliation.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	backup := &v1alpha1.RedisBackup{}
	if why, ok := r.memory.Begin(ctx, r.cache, request.NamespacedName, backup, r.now()); !ok {
		return why.Result()
	}
	s, err := r.observe(ctx, backup)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := Plan(s)
	if guard, marks := marking(step); marks {
		return r.mark(ctx, backup, guard)
	}
	failed := r.act(ctx, s, step)
	if _, erases := step.(Erase); erases && outcome.NamespaceGoing(failed) {
		s.NamespaceGoes, failed = true, nil
		if step = Plan(s); step == Step(Release{}) {
			return r.mark(ctx, backup, false)
		}
	}
	status := ComputeStatus(s, step, failed)
	log.FromContext(ctx).V(1).Info("Reconciled", "step", fmt.Sprintf("%T", step), "reason", status.Reason)
	if err := r.write(ctx, backup, &status); err != nil {
		return shell.Unwritten(err).Result()
	}
	r.tell(backup, &status)
	if failed != nil {
		return outcome.Retry(failed).Result()
	}
	switch step := step.(type) {
	case Rest:
		return outcome.Done().Result()
	case Complete, Fail: // the finalizer is left to take off
		return outcome.Wait(status.Reason, soon).Result()
	case AwaitErased:
		return outcome.Wait(status.Reason, step.After).Result()
	case Guard, Release, Wait, Stop, Start, Follow, Repeat, Erase, EraseAgain:
	}
	if status.Phase == v1alpha1.BackupPreparing && backup.Status.Phase != status.Phase {
		return outcome.Wait(status.Reason, soon).Result()
	}
	return outcome.Wait(status.Reason, later).Result()
}

// act does all the writing of a step, the status apart.
func (r *reconciler) act(ctx context.Context, s *Snapshot, step Step) error {
	switch step := step.(type) {
	case Start:
		err := r.live.Create(ctx, r.fit(job(s, r.image)))
		if apierrors.IsAlreadyExists(err) {
			return nil // it is looked at in the next reconciliation, past the cache
		}
		if err != nil {
			return fmt.Errorf("make Job %s: %w", s.Backup.JobName(), err)
		}
	case Erase:
		return r.erase(ctx, s)
	case EraseAgain:
		return r.deleteJob(ctx, s.Deletion)
	case Repeat:
		return r.deleteJob(ctx, s.Job)
	case Stop:
		if s.Job != nil && s.Job.DeletionTimestamp == nil {
			return r.deleteJob(ctx, s.Job)
		}
	case Fail:
		if step.Stop {
			return r.deleteJob(ctx, s.Job)
		}
	case Rest, Guard, Release, Wait, Follow, AwaitErased, Complete:
	}
	return nil
}

// erase makes the Job that deletes the backup from the store.
func (r *reconciler) erase(ctx context.Context, s *Snapshot) error {
	err := r.live.Create(ctx, r.fit(deletionJob(s.Backup, r.image)))
	if err != nil && !apierrors.IsAlreadyExists(err) { // one that exists is looked at in the next reconciliation
		return fmt.Errorf("make Job %s, which deletes it from the store (set spec.deletionPolicy to Retain to leave it there): %w",
			s.Backup.DeletionJobName(), err)
	}
	r.memory.Update(s.Backup.UID, func(m *remembered) { m.erased = s.Now })
	return nil
}

// marking reports whether a step is to put the finalizer on, or to take it off.
func marking(step Step) (guard, marks bool) {
	_, guard = step.(Guard)
	_, release := step.(Release)
	return guard, guard || release
}

// mark puts the finalizer on, or takes it off, on condition that nobody changed the object since it was read.
func (r *reconciler) mark(ctx context.Context, backup *v1alpha1.RedisBackup, on bool) (ctrl.Result, error) {
	changed := backup.DeepCopy()
	if on {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerBackup)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerBackup)
	}
	patch := client.MergeFromWithOptions(backup, client.MergeFromWithOptimisticLock{})
	if err := r.live.Patch(ctx, changed, patch); err != nil {
		return shell.Unwritten(err).Result()
	}
	r.memory.Wrote(changed, r.now())
	return outcome.Wait("the finalizer was written", soon).Result()
}

func (r *reconciler) deleteJob(ctx context.Context, job *batchv1.Job) error {
	uid := job.UID
	err := r.live.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Job %s: %w", job.Name, err)
	}
	return nil
}

// write patches the status when it differs.
func (r *reconciler) write(ctx context.Context, backup *v1alpha1.RedisBackup, status *v1alpha1.RedisBackupStatus) error {
	if equality.Semantic.DeepEqual(&backup.Status, status) {
		return nil
	}
	answer, err := shell.PatchTyped(kind, backup, status, func(object client.Object, patch client.Patch) error {
		return r.live.Status().Patch(ctx, object, patch)
	})
	if err == nil {
		r.memory.Wrote(answer, r.now())
	}
	return err
}

// tell writes an Event when the backup has begun or ended.
func (r *reconciler) tell(backup *v1alpha1.RedisBackup, status *v1alpha1.RedisBackupStatus) {
	if backup.Status.Phase == status.Phase {
		return
	}
	eventType := corev1.EventTypeNormal
	switch status.Phase {
	case v1alpha1.BackupPending, v1alpha1.BackupPreparing:
		return
	case v1alpha1.BackupFailed:
		eventType = corev1.EventTypeWarning
	case v1alpha1.BackupRunning, v1alpha1.BackupCompleted:
	}
	r.recorder.Eventf(backup, nil, eventType, string(status.Phase), "Backup", "%s", shell.Note(status.Reason))
}
