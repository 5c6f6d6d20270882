// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redisbackup/schedule"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// followed means with one complete backup, verified without the RedisCluster that it was restored into.
const followed, verified = "Scheduled=True", "Verified=True"

// scheduleFlows: a backup is due, and of two complete ones one is to go; a backup is due, and another one is to be verified; that one was
// made while the schedule was another operator's.
var scheduleFlows = []flow{
	{name: "RedisBackupSchedule", add: addSchedule, object: newSchedule, before: twoBackups, last: followed,
		others: []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RedisBackup")}},
	{name: "RedisBackupSchedule, verify", add: addSchedule, object: newVerification, before: oneBackup, last: verified,
		others: []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RedisBackup"), v1alpha1.GroupVersion.WithKind("RedisCluster")}},
	{name: "RedisBackupSchedule, of another operator", add: addSelected, object: newSelected, before: oneBackupOfAnother, last: verified,
		others: []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RedisBackup"), v1alpha1.GroupVersion.WithKind("RedisCluster")}},
}

// restoredFrom is the checksum of a backup, and of what is restored of it.
const restoredFrom = "aaaa"

func newVerification([]string) *unstructured.Unstructured {
	object := newSchedule(nil)
	spec := object.Object["spec"].(map[string]any) //nolint:forcetypeassert // it is made so
	delete(spec, "retention")
	spec["verify"] = map[string]any{"schedule": "0 0 1 1 *"}
	return object
}

// oneBackup is complete, and its verification is due.
func oneBackup(t *testing.T, of *unstructured.Unstructured) {
	t.Helper()
	check(t, api.Create(t.Context(), &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: "cache"}}))
	complete(t, of, "yearly-1")
	at := &v1alpha1.RedisBackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: of.GetName()}}
	environment.Get(t, api, at)
	at.Status.LastVerificationTime = &at.CreationTimestamp
	check(t, api.Status().Update(t.Context(), at))
}

func newSelected([]string) *unstructured.Unstructured {
	object := newVerification(nil)
	object.SetLabels(map[string]string{"tier": "gold"})
	return object
}

// oneBackupOfAnother has the label of another operator, while its RedisCluster came along with the schedule.
func oneBackupOfAnother(t *testing.T, of *unstructured.Unstructured) {
	t.Helper()
	oneBackup(t, of)
	for object, tier := range map[client.Object]string{
		&v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}:   "gold",
		&v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Name: "yearly-1"}}: "silver",
	} {
		object.SetNamespace(of.GetNamespace())
		check(t, api.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"tier":"`+tier+`"}}}`))))
	}
}

func addSelected(mgr ctrl.Manager, _ cache.Cache, _ []string, now func() time.Time) error {
	return schedule.Add(mgr, schedule.Options{Now: func() time.Time { return now().AddDate(1, 0, 1) },
		Selector: labels.SelectorFromSet(labels.Set{"tier": "gold"})})
}

// beRestored stands in for the reconciler of RedisClusters, as far as they begin with a backup.
var beRestored controller[*v1alpha1.RedisCluster] = func(ctx context.Context, c *v1alpha1.RedisCluster) (reconcile.Result, error) {
	if c.Spec.Bootstrap == nil || c.Status.Restored != nil || c.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := metav1.NewTime(time.Now())
	c.Status.Restored = &v1alpha1.RestoredData{ManifestChecksum: restoredFrom, MarkedAt: now, Slots: []string{"0-16383"},
		Keys: &v1alpha1.KeyCount{Total: 7}}
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Serving",
		LastTransitionTime: now}}
	return reconcile.Result{}, client.IgnoreNotFound(api.Status().Update(ctx, c, client.FieldOwner("redisclusters")))
}

// addSchedule has a clock that is more than a year ahead of that of the API server, so that a schedule of every year is due, and is not
// again while the test runs.
func addSchedule(mgr ctrl.Manager, _ cache.Cache, _ []string, now func() time.Time) error {
	return schedule.Add(mgr, schedule.Options{Now: func() time.Time { return now().AddDate(1, 0, 1) }})
}

func newSchedule([]string) *unstructured.Unstructured {
	object := environment.Object(v1alpha1.GroupVersion.WithKind("RedisBackupSchedule"), "", "yearly")
	object.Object["spec"] = map[string]any{"schedule": "0 0 1 1 *", "cluster": "cache", "retention": map[string]any{"keepLast": int64(1)},
		"store": map[string]any{"s3": map[string]any{"bucket": "backups", "credentialsSecretName": "store"}}}
	return object
}

func twoBackups(t *testing.T, of *unstructured.Unstructured) {
	t.Helper()
	check(t, api.Create(t.Context(), &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: "cache"}}))
	complete(t, of, "yearly-1")
	complete(t, of, "yearly-2")
}

// complete makes a backup of the schedule that is complete.
func complete(t *testing.T, of *unstructured.Unstructured, name string) {
	t.Helper()
	backup := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: name,
		Labels: map[string]string{v1alpha1.LabelSchedule: "yearly", v1alpha1.LabelScheduleUID: string(of.GetUID())}},
		Spec: v1alpha1.RedisBackupSpec{Cluster: "cache",
			Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}}}}
	check(t, api.Create(t.Context(), backup))
	backup.Status.Phase, backup.Status.ShardCount, backup.Status.ManifestChecksum = v1alpha1.BackupCompleted, 3, restoredFrom
	backup.Status.Keys = &v1alpha1.KeyCount{Total: 8, WithTTL: 1}
	check(t, api.Status().Update(t.Context(), backup))
}
