// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// verifications is a schedule whose newest backup is verified every hour, with the operator that restores it and instances that do.
type verifications struct {
	*scheduled
	kubelet   *kubelet
	throwaway *v1alpha1.RedisCluster
}

func startVerifications(t *testing.T) *verifications {
	t.Helper()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	source := newCluster(namespace, "cache")
	source.Spec.Pause = true // nothing runs of it
	create(t, source)
	v := &verifications{kubelet: k, scheduled: startSchedule(t, namespace, nil, &v1alpha1.BackupVerification{Schedule: "@hourly"}),
		throwaway: &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hourly-verify"}}}
	v.await(v1alpha1.ScheduleConditionVerified, "Unknown NotVerified")
	return v
}

// completed is a backup with so many keys, each of whose shards has one key once it is restored.
func (v *verifications) completed(backup *v1alpha1.RedisBackup, keys v1alpha1.KeyCount) {
	v.t.Helper()
	eventually(v.t, "the backup is said to be complete", func() string {
		get(v.t, backup)
		is := &backup.Status
		is.Phase, is.ShardCount, is.ManifestChecksum, is.Keys = v1alpha1.BackupCompleted, 3, strings.Repeat("a", 64), &keys
		if err := api.Status().Update(context.Background(), backup); err != nil {
			return err.Error()
		}
		return ""
	})
}

// awaitVerified waits for what the next verification comes to, with part of the message.
func (v *verifications) awaitVerified(want, message string) {
	v.t.Helper()
	v.await(v1alpha1.ScheduleConditionVerified, want)
	c := meta.FindStatusCondition(v.at.Status.Conditions, v1alpha1.ScheduleConditionVerified)
	if !strings.Contains(c.Message, message) {
		v.t.Errorf("%s: %s; want %s", want, c.Message, message)
	}
}

// awaitNothingLeft waits until nothing is left of a throw-away cluster.
func (v *verifications) awaitNothingLeft() {
	v.t.Helper()
	awaitGone(v.t, v.throwaway)
	eventually(v.t, "nothing is left of the throw-away cluster", func() string {
		left, err := etcd(v.at.Namespace).Collect(context.Background())
		check(v.t, err)
		for _, object := range left {
			if strings.Contains(object.GetName(), v.throwaway.Name) && object.GetDeletionTimestamp() == nil {
				return fmt.Sprintf("%s %s is left", object.GetKind(), object.GetName())
			}
		}
		return ""
	})
	v.kubelet.mu.Lock()
	defer v.kubelet.mu.Unlock()
	for shard := range 3 {
		name := fmt.Sprintf("%s-%d-0", v.throwaway.Name, shard)
		delete(v.kubelet.nodes, name) // its claim is another one the next time
		delete(v.kubelet.restored, name)
		check(v.t, deleteClaims(v.at.Namespace, name))
	}
}

// The newest backup is restored into a cluster that is made for that, its keys are compared, and nothing is left of it. What is not the
// schedule's own is left alone.
func TestVerifiedBackups(t *testing.T) {
	t.Parallel()
	v := startVerifications(t)
	v.pass(1)
	first := v.awaitBackups(1)
	v.awaitVerified("Unknown NoBackup", "there was no complete backup")
	v.completed(first, v1alpha1.KeyCount{Total: 5, WithTTL: 2})

	// It is not restored without the label of who may read it.
	v.pass(1)
	second := v.awaitBackups(2)
	v.awaitVerified("False CannotRestore", "there is no Secret store")
	v.awaitNothingLeft()
	create(t, storeSecret(v.at.Namespace))

	// The restored masters have three keys.
	v.completed(second, v1alpha1.KeyCount{Total: 5, WithTTL: 2})
	v.pass(1)
	third := v.awaitBackups(3)
	eventually(t, "the throw-away cluster is made", func() string {
		if !get(t, v.throwaway) {
			return "there is none"
		}
		return ""
	})
	owner := metav1.GetControllerOf(v.throwaway)
	if spec := v.throwaway.Spec; owner == nil || owner.UID != v.at.UID || *spec.Replicas != 3 || spec.Version != "7.0.15" || spec.Pause ||
		spec.Bootstrap.Restore.RedisBackup != second.Name {
		t.Errorf("it is made as %+v, for %+v", v.throwaway.Spec, owner)
	}
	v.awaitVerified("True BackupVerified", second.Name+": it was restored with 3 keys, 0 of them with a time to live")
	v.awaitNothingLeft()
	if is := v.at.Status.LastVerified; is == nil || is.Backup != second.Name || is.Keys != 3 {
		t.Errorf("what was verified last is %+v", is)
	}

	// One key less than there must be.
	v.completed(third, v1alpha1.KeyCount{Total: 5, WithTTL: 1})
	v.pass(1)
	fourth := v.awaitBackups(4)
	v.awaitVerified("False KeysDiffer", third.Name)
	v.awaitNothingLeft()
	if is := v.at.Status.LastVerified; is == nil || is.Backup != second.Name {
		t.Errorf("what was verified last is %+v", is)
	}

	// Somebody else's cluster has the name.
	v.completed(fourth, v1alpha1.KeyCount{})
	taken := newCluster(v.at.Namespace, v.throwaway.Name)
	taken.Spec.Pause = true
	taken.Labels = map[string]string{v1alpha1.LabelScheduleUID: string(v.at.UID)}
	create(t, taken)
	v.pass(1)
	v.awaitVerified("Unknown NameTaken", v.throwaway.Name)
	if uid := taken.UID; !get(t, taken) || taken.UID != uid || taken.DeletionTimestamp != nil {
		t.Errorf("somebody else's cluster is %+v", taken.ObjectMeta)
	}
	remove(t, taken)
	awaitGone(t, taken)

	// It is not asked for any more.
	v.pass(1)
	eventually(t, "a verification is under way", func() string {
		if !get(t, v.throwaway) {
			return "there is no cluster"
		}
		return ""
	})
	change(t, v.at, func(at *v1alpha1.RedisBackupSchedule) { at.Spec.Verify = nil })
	v.awaitNothingLeft()
	eventually(t, "nothing is said of it", func() string {
		get(t, v.at)
		if is := v.at.Status; is.Verification != nil || is.LastVerified != nil || len(is.Conditions) != 2 {
			return fmt.Sprintf("%+v", is)
		}
		return ""
	})
}

// deleteClaims deletes the claim of an instance, as the collector of garbage does once its StatefulSet is gone.
func deleteClaims(namespace, instance string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-" + instance}}
	return deleteClaim(context.Background(), claim)
}
