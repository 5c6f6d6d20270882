// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redisbackup/schedule"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// followed means with one complete backup.
const followed = "Scheduled=True"

// scheduleFlows: a backup is due, and of two complete ones one is to go.
var scheduleFlows = []flow{
	{name: "RedisBackupSchedule", add: addSchedule, object: newSchedule, before: twoBackups, last: followed,
		others: []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RedisBackup")}},
}

// addSchedule has a clock that is more than a year ahead of that of the API server, so that a schedule of every year is due, and is not
// again while the test runs.
func addSchedule(mgr ctrl.Manager, _ cache.Cache, _ []string, now func() time.Time) error {
	return schedule.Add(mgr, func() time.Time { return now().AddDate(1, 0, 1) })
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
	for _, name := range []string{"yearly-1", "yearly-2"} {
		backup := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: name,
			Labels: map[string]string{v1alpha1.LabelSchedule: "yearly", v1alpha1.LabelScheduleUID: string(of.GetUID())}},
			Spec: v1alpha1.RedisBackupSpec{Cluster: "cache",
				Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}}}}
		check(t, api.Create(t.Context(), backup))
		backup.Status.Phase = v1alpha1.BackupCompleted
		check(t, api.Status().Update(t.Context(), backup))
	}
}
