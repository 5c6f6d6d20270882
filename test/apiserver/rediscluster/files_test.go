// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// restoredShard is what the claim of a master holds.
type restoredShard struct {
	shard int
	slots slots.Set
}

// fromFiles begins with a file of each of the servers that owned these slots.
func fromFiles(owned ...string) *v1alpha1.Bootstrap {
	files := &v1alpha1.RestoreFiles{Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "exports", CredentialsSecretName: "store"}}}
	for i, part := range owned {
		files.Shards = append(files.Shards, v1alpha1.RestoreFileShard{Objects: []string{fmt.Sprintf("server-%d.rdb", i)}, Slots: part})
	}
	return &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Files: files}}
}

// filesOf are the slots that the arguments of a Job give to each shard; none: it restores a backup.
func filesOf(args []string) (parts []slots.Set) {
	for _, arg := range args {
		if file, is := strings.CutPrefix(arg, "--file="); is {
			owned, _, _ := strings.Cut(file, ":")
			part, err := slots.Parse(owned)
			if err != nil {
				return nil
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// A new cluster begins with the files of two servers, each of which becomes a shard with the slots that it owned, and is scaled to what it
// asks for afterwards. What it begins with stays what it was meanwhile.
func TestFiles(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	unreadable := true
	k := runKubelet(t, namespace, func(k *kubelet) {
		k.restores = func(shard int, said *report.Report) {
			if shard == 1 && unreadable {
				*said = report.Report{Error: "server-1.rdb: the checksum is another one"}
			}
		}
	})
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Bootstrap = fromFiles("0-99,8192-16383", "100-8191")
	create(t, cluster)
	awaitStalled(t, cluster, "CannotRestore", "spec.bootstrap.restore.files.store.s3.credentialsSecretName: there is no Secret store")
	create(t, storeSecret(namespace))
	awaitPhase(t, cluster, v1alpha1.PhaseCreating, "1 of 2 shards are restored; shard 1: server-1.rdb: the checksum is another one")
	if sets := statefulSets(t, cluster); len(sets) > 0 {
		t.Errorf("before all files are restored there are StatefulSets %v", sets)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.RestoreJobName(1)}}
	get(t, job)
	restricted(t, job)
	if args := job.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--file=0-99,8192-16383:server-0.rdb") ||
		!slices.Contains(args, "--file=100-8191:server-1.rdb") || !slices.Contains(args, "--shards=2") {
		t.Errorf("the Job is told %v", args)
	}
	for what, patch := range map[string]string{
		"other slots":   `{"files":{"shards":[{"objects":["server-0.rdb"]}]}}`,
		"another store": `{"files":{"store":{"s3":{"bucket":"other"}}}}`,
		"no files":      `{"files":null,"redisBackup":"monday"}`,
	} {
		patch = `{"spec":{"bootstrap":{"restore":` + patch + `}}}`
		err := api.Patch(t.Context(), cluster.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec") || !strings.Contains(err.Error(), "bootstrap") {
			t.Errorf("the files that a cluster begins with become %s: %v", what, err)
		}
	}
	t.Log("removed past admission, they are asked for again, and nothing begins without them")
	bootstrap := cluster.Spec.Bootstrap
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Bootstrap = nil })
	awaitStalled(t, cluster, "CannotRestore", "spec.bootstrap was removed while the cluster was being restored: put it back")
	if sets := statefulSets(t, cluster); len(sets) > 0 {
		t.Errorf("without its files the cluster begins with %v", sets)
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Bootstrap = bootstrap })
	awaitPhase(t, cluster, v1alpha1.PhaseCreating, "1 of 2 shards are restored")
	k.mu.Lock()
	unreadable = false
	k.mu.Unlock()
	check(t, api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	awaitWhole(t, cluster)
	is := cluster.Status.Restored
	if is == nil || is.Location != "s3://exports/server-0.rdb" || !slices.Equal(is.Slots, []string{"0-99,8192-16383", "100-8191"}) {
		t.Errorf("it began with %+v", is)
	}
	var keys []string
	for shard := range 3 {
		for key := range k.node(fmt.Sprintf("cache-%d-0", shard)).Keys() {
			keys = append(keys, key)
		}
	}
	for _, part := range filesOf(job.Spec.Template.Spec.Containers[0].Args) {
		if !slices.Contains(keys, keyOf(part)) {
			t.Errorf("%s is lost, and there are %v", keyOf(part), keys)
		}
	}
}

// Files that came past admission are refused with the path of what is wrong, and nothing is made of them.
func TestFilesAreRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	op := startOperator(t, namespace, k.world)
	create(t, storeSecret(namespace))
	const at = "spec.bootstrap.restore."
	for name, tt := range map[string]struct {
		bootstrap *v1alpha1.Bootstrap
		change    func(*v1alpha1.RedisCluster)
		refusal   string
	}{
		"twice":  {bootstrap: fromFiles("0-8191", "8191-16383"), refusal: at + "files.shards[1].slots"},
		"gap":    {bootstrap: fromFiles("0-8190", "8192-16383"), refusal: at + "files.shards: Invalid value: 2: slots 8191 are in no entry"},
		"unsaid": {bootstrap: fromFiles("0-16383", ""), refusal: at + "files.shards[1].slots: Required value"},
		"many":   {bootstrap: fromFiles("0-99999"), refusal: at + "files.shards[0].slots"},
		"outside": {bootstrap: fromFiles(""), change: func(c *v1alpha1.RedisCluster) {
			c.Spec.Bootstrap.Restore.Files.Shards[0].Objects = []string{"a/../../b"}
		}, refusal: at + "files.shards[0].objects[0]"},
		"decrypted": {bootstrap: fromFiles(""), change: func(c *v1alpha1.RedisCluster) {
			c.Spec.Bootstrap.Restore.IdentitySecretName = "store"
		}, refusal: at + "identitySecretName"},
		"no-claims": {bootstrap: fromFiles(""), change: func(c *v1alpha1.RedisCluster) {
			c.Spec.Storage, c.Spec.Pod = nil, []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}}}
		}, refusal: "spec.bootstrap.restore: Forbidden"},
	} {
		cluster := newCluster(namespace, name)
		cluster.Spec.Bootstrap = tt.bootstrap
		if tt.change != nil {
			tt.change(cluster)
		}
		create(t, cluster)
		awaitStalled(t, cluster, "InvalidSpec", tt.refusal)
	}
	if written := op.written(0); len(written) > 0 {
		t.Errorf("these were written: %v", written)
	}
}
