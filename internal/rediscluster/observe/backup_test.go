// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Slots stay for one backup at a time: the one that they stay for until it has ended, then the oldest of those that wait.
func TestBackupThatSlotsStayFor(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(namespace, cluster, uid string, age time.Duration, phase v1alpha1.BackupPhase) client.Object {
		return &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: uid, UID: types.UID(uid),
			CreationTimestamp: metav1.NewTime(now.Add(-age))}, Spec: v1alpha1.RedisBackupSpec{Cluster: cluster},
			Status: v1alpha1.RedisBackupStatus{Phase: phase}}
	}
	const preparing, running = v1alpha1.BackupPreparing, v1alpha1.BackupRunning
	for what, tt := range map[string]struct {
		objects []client.Object
		held    types.UID
		want    string
	}{
		"none":                 {},
		"of another cluster":   {objects: []client.Object{of("n", "d", "a", time.Hour, running)}},
		"of another namespace": {objects: []client.Object{of("m", "c", "a", time.Hour, running)}},
		"something is missing": {objects: []client.Object{of("n", "c", "a", time.Hour, v1alpha1.BackupPending)}},
		"not begun":            {objects: []client.Object{of("n", "c", "a", time.Hour, "")}},
		"complete":             {objects: []client.Object{of("n", "c", "a", time.Hour, v1alpha1.BackupCompleted)}, held: "a"},
		"failed":               {objects: []client.Object{of("n", "c", "a", time.Hour, v1alpha1.BackupFailed)}, held: "a"},
		"one waits":            {objects: []client.Object{of("n", "c", "a", time.Hour, preparing)}, want: "a"},
		"the oldest of two": {objects: []client.Object{of("n", "c", "a", time.Minute, preparing),
			of("n", "c", "b", time.Hour, preparing)}, want: "b"},
		"the one that is taken": {objects: []client.Object{of("n", "c", "a", time.Minute, running),
			of("n", "c", "b", time.Hour, preparing)}, held: "a", want: "a"},
		"the next one after it": {objects: []client.Object{of("n", "c", "a", time.Minute, preparing),
			of("n", "c", "b", time.Hour, preparing)}, held: "x", want: "b"},
		"the one that runs": {objects: []client.Object{of("n", "c", "a", time.Minute, running),
			of("n", "c", "b", time.Hour, preparing)}, want: "a"},
		"of one age, always a same": {objects: []client.Object{of("n", "c", "b", time.Hour, preparing),
			of("n", "c", "a", time.Hour, preparing)}, want: "a"},
	} {
		live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).Build()
		o := &Observer{Backups: live, Secrets: live}
		c := cluster()
		c.Status.HeldForBackup = tt.held
		if got, err := o.backup(t.Context(), c); err != nil || got.UID != tt.want {
			t.Errorf("%s: %q (%v), want %q", what, got.UID, err, tt.want)
		}
	}
}

// Slots stay for a backup that is being deleted until its pod has ended, which its finalizer says.
func TestBackupThatIsBeingDeleted(t *testing.T) {
	deleted := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now},
		Finalizers: []string{v1alpha1.FinalizerBackup, "of.others/hold"}}, Status: v1alpha1.RedisBackupStatus{Phase: v1alpha1.BackupRunning}}
	if !deleted.Active() {
		t.Error("slots may move while its pod ends")
	}
	deleted.Finalizers = deleted.Finalizers[1:]
	if deleted.Active() {
		t.Error("slots stay for a backup that nothing takes any more")
	}
}

// A cache that does not show yet the backup that slots stay for makes nobody think that it is gone.
func TestBackupThatTheCacheDoesNotShow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	taken := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "monday", UID: "a"},
		Spec: v1alpha1.RedisBackupSpec{Cluster: "c"}, Status: v1alpha1.RedisBackupStatus{Phase: v1alpha1.BackupRunning}}
	o := &Observer{Backups: fake.NewClientBuilder().WithScheme(scheme).Build(),
		Secrets: fake.NewClientBuilder().WithScheme(scheme).WithObjects(taken).Build()}
	c := cluster()
	c.Status.HeldForBackup = "a"
	if got, err := o.backup(t.Context(), c); err != nil || got.UID != "a" {
		t.Errorf("slots stay for %q (%v)", got.UID, err)
	}
}
