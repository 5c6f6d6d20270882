// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/test/live"
)

// A large cluster (KEYS, a million by default) is archived and backed up while 3,600 commands a second go on, which notice nothing. It
// comes back as it was in the middle of that, with as many shards and with more, and from those with fewer again: all that was acknowledged
// before that moment is there, nothing that was written after it, and every key expires when it is to.
func TestRedisClusterComesBack(t *testing.T) {
	if !live.Local() || os.Getenv("E2E") != "all" {
		t.Skip("takes ten minutes an engine: with E2E=all, on the local cluster; TestRedisClusterIsBackedUp has fewer keys")
	}
	keys, err := strconv.Atoi(cmp.Or(os.Getenv("KEYS"), "1000000"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			live.Scenario(t, func(t *testing.T, run *live.Run) { comesBack(t, run, e, keys) })
		})
	}
}

func comesBack(t *testing.T, run *live.Run, e engine, keys int) {
	namespace := live.NewNamespace(t)
	bucket, err := s3blob.OpenBucket(t.Context(), runStore(t, namespace), bucketName, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	store := archive.NewStore(blob.PrefixedBucket(bucket, "a/b/"+namespace+"/cache/"), archive.Keys{})
	live.Create(t, storeSecret(namespace))
	in := storeOf(namespace)
	cluster := large(namespace, "cache", e)
	live.Create(t, cluster)
	live.Ready(t, cluster)
	load := live.NewLoad(t, cluster)
	began := time.Now()
	load.Fill(keys)
	load.Began(keys) // the journal has keys besides
	t.Logf("filled in after %.0f s", time.Since(began).Seconds())
	for shard := range int32(3) {
		if out, err := cli(t.Context(), cluster, master(t, cluster, shard).Name, "function", "load",
			"#!lua name=lib\nredis.register_function('f', function() return 7 end)"); err != nil {
			t.Fatal(out, err)
		}
	}

	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Backup = &v1alpha1.ClusterBackup{Store: in, Archive: &v1alpha1.Archive{MarkInterval: &metav1.Duration{Duration: 10 * time.Second}}}
	})
	load.StartAt(1800)
	ownProcessors(t)
	book := openJournal(t, load)
	backup := backedUp(t, cluster, in, "monday")
	consistent := e.name != "valkey-8.1"
	wantMomentAfter(t, cluster, store, consistent, time.Now())
	time.Sleep(5 * time.Second) // between two marks
	middle := time.Now()
	wantMomentAfter(t, cluster, store, consistent, middle.Add(10*time.Second))
	book.close(t)
	run.WantUnnoticed(load, live.NothingMoved)
	if s := backup.Status; s.Phase != v1alpha1.BackupCompleted || *s.Consistent != consistent {
		t.Errorf("the backup is %+v", s)
	}

	moment := &v1alpha1.Restore{Location: &v1alpha1.BackupLocation{Store: in, Namespace: namespace, Cluster: cluster.Name,
		Name: cluster.Status.Archive.Name, Moment: &v1alpha1.ArchiveMoment{NotAfter: &metav1.Time{Time: middle}, Consistent: &consistent}}}
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Backup = nil })
	makesRoom(t, cluster)
	more := comeBack(t, large(namespace, "more", e), moment, 3, keys)
	book.wantMoment(t, more, middle)
	scaled(t, more, 5, keys)
	book.wantMoment(t, more, middle)
	again := backedUp(t, more, in, "tuesday")
	makesRoom(t, more)
	fewer := comeBack(t, large(namespace, "fewer", e), &v1alpha1.Restore{RedisBackup: again.Name}, 5, keys)
	scaled(t, fewer, 3, keys)
	book.wantKeys(t, fewer, more.Status.Restored, middle)
}

// large is a cluster with room for a million keys, whose instances have a larger share of the processors than the store and the archive.
func large(namespace, name string, e engine) *v1alpha1.RedisCluster {
	cluster := newCluster(namespace, name)
	cluster.Spec.Repository, cluster.Spec.Version = e.repository, e.version
	cluster.Spec.Storage.Size = resource.MustParse("4Gi")
	cluster.Spec.Pod[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("300m")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
	}
	return cluster
}

// backedUp takes a backup of a cluster.
func backedUp(t *testing.T, cluster *v1alpha1.RedisCluster, in v1alpha1.BackupStore, name string) *v1alpha1.RedisBackup {
	t.Helper()
	backup := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name},
		Spec: v1alpha1.RedisBackupSpec{Cluster: cluster.Name, Store: in}}
	live.Create(t, backup)
	began := time.Now()
	live.Eventually(t, "the backup has ended", func() error {
		if err := live.Get(t, backup); err != nil || backup.Ended() {
			return err
		}
		return fmt.Errorf("%s: %s", backup.Status.Phase, backup.Status.Reason)
	})
	s := backup.Status
	t.Logf("%s: %d MiB, %d MiB stored, %.0f s, writes delayed for %d ms", s.Phase, s.Bytes>>20, s.StoredBytes>>20, time.Since(began).Seconds(),
		s.PausedMilliseconds)
	return backup
}

// wantMomentAfter waits until the archive of a cluster has a moment that is later.
func wantMomentAfter(t *testing.T, cluster *v1alpha1.RedisCluster, store *archive.Store, consistent bool, when time.Time) {
	t.Helper()
	live.Eventually(t, "the archive has a moment after "+when.Format(time.TimeOnly), func() error {
		if err := live.Get(t, cluster); err != nil || cluster.Status.Archive == nil {
			return errors.Join(err, errors.New("there is no archive"))
		}
		m, err := store.At(t.Context(), cluster.Status.Archive.Name, time.Time{}, consistent)
		if err != nil || !m.Marked.After(when) {
			return errors.Join(err, errors.New("it has not"))
		}
		return nil
	})
}

// comeBack makes a cluster that begins with data of as many shards, and asserts that it has that.
func comeBack(t *testing.T, cluster *v1alpha1.RedisCluster, from *v1alpha1.Restore, shards int32, keys int) *v1alpha1.RedisCluster {
	t.Helper()
	cluster.Spec.Shards, cluster.Spec.Replicas = &shards, ptr.To(2*shards)
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: from}
	live.Create(t, cluster)
	began := time.Now()
	live.Ready(t, cluster)
	t.Logf("%s: Ready after %.0f s: %+v", cluster.Name, time.Since(began).Seconds(), *cluster.Status.Restored)
	wantAll(t, cluster, shards, keys)
	return cluster
}

// scaled changes how many shards a cluster has.
func scaled(t *testing.T, cluster *v1alpha1.RedisCluster, shards int32, keys int) {
	t.Helper()
	began := time.Now()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = &shards, ptr.To(2*shards) })
	live.Eventually(t, "it has as many shards", func() error { return atRest(t, cluster) })
	t.Logf("%s: %d shards after %.0f s", cluster.Name, shards, time.Since(began).Seconds())
	wantAll(t, cluster, shards, keys)
}

// wantAll asserts that a cluster is healthy, has every key that was filled in, and the function.
func wantAll(t *testing.T, cluster *v1alpha1.RedisCluster, shards int32, keys int) {
	t.Helper()
	wantHealthy(t, cluster, shards, 2*shards)
	wantTables(t, cluster, balanced(int(shards)))
	load := live.NewLoad(t, cluster)
	load.Began(keys)
	load.WantData("--expiry-slack", "1s")
	for shard := range shards {
		if out, err := cli(t.Context(), cluster, master(t, cluster, shard).Name, "fcall", "f", "0"); err != nil || out != "7" {
			t.Errorf("the function of shard %d says %q, %v", shard, out, err)
		}
	}
}

// makesRoom deletes a cluster and waits until its claims are gone, so that the next has the memory and the disk.
func makesRoom(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if err := live.Kube.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, cluster.Name+" is gone", func() error { return errors.Join(gone(t, cluster), noPods(t, cluster)) })
	wantClaims(t, cluster, 0)
}
