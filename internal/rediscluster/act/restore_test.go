// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// What the author wrote is one argument each, the pod runs as and where the instance would, and it is none that Services select.
func TestRestoreJob(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}, Spec: v1alpha1.RedisClusterSpec{
		Shards: ptr.To[int32](4), Replicas: ptr.To[int32](8), Repository: "valkey/valkey", Version: "9.1.2-alpine",
		Bootstrap: &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{IdentitySecretName: "key", MaxBytesPerSecond: "40M",
			Location: &v1alpha1.BackupLocation{
				Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", Prefix: "a&b=c", Region: "eu&endpoint=http://evil",
					Endpoint: "https://minio.store.svc:9000", CredentialsSecretName: "store", CASecretName: "authority"}},
				Namespace: "shop", Cluster: "cache", Name: "monday", ManifestChecksum: "abc"}}}}}
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](999)}, NodeSelector: map[string]string{"disk": "ssd"},
		Tolerations: []corev1.Toleration{{Key: "a"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		PriorityClassName: "high"}}}}
	made := restoreJob(cluster, set, *cluster.Restore().Location, 2, "registry/operator:1")
	pod := made.Spec.Template.Spec
	c := backupjob.Of(pod)
	want := []string{"restore", "monday",
		"--store=s3://backups?endpoint=https%3A%2F%2Fminio.store.svc%3A9000&prefix=a%26b%3Dc%2Fshop%2Fcache%2F&region=eu%26endpoint%3Dhttp%3A%2F%2Fevil&use_path_style=true",
		"--request=uid", "--listen=:8090", "--directory=/data", "--shard=2", "--shards=4", "--engine=valkey:9.1", "--manifest-checksum=abc",
		"--max-bytes-per-second=10000000", "--identity-file=/etc/backup/identity/identity", "--report-file=/dev/termination-log"}
	if diff := cmp.Diff(want, c.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	at := metav1.NewTime(time.Date(2026, 11, 24, 4, 0, 0, 0, time.FixedZone("", 3600)))
	for want, moment := range map[string]v1alpha1.ArchiveMoment{
		"--to=2026-11-24T03:00:00Z --consistent=true": {NotAfter: &at},
		"--to=latest --consistent=false":              {Consistent: ptr.To(false)},
	} {
		from := *cluster.Restore().Location
		from.Moment = &moment
		job := restoreJob(cluster, set, from, 2, "registry/operator:1")
		if args := strings.Join(backupjob.Of(job.Spec.Template.Spec).Args, " "); !strings.Contains(args, want) {
			t.Errorf("arguments of an archive: %s, want %s", args, want)
		}
		if place := job.Annotations[v1alpha1.AnnotationRestoredFrom]; !strings.Contains(place, "shop/cache/monday@"+moment.To()) {
			t.Errorf("it is restored from %s", place)
		}
	}
	var volumes []string
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			if len(v.Secret.Items) != 1 {
				t.Errorf("volume %s shows %d keys", v.Name, len(v.Secret.Items))
			}
			volumes = append(volumes, v.Secret.SecretName+"/"+v.Secret.Items[0].Key)
			continue
		}
		volumes = append(volumes, v.PersistentVolumeClaim.ClaimName)
	}
	if diff := cmp.Diff([]string{"data-c-2-0", "authority/ca.crt", "key/identity"}, volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if *pod.SecurityContext.RunAsUser != 999 || pod.NodeSelector["disk"] != "ssd" || len(pod.Tolerations) != 1 ||
		len(pod.ImagePullSecrets) != 1 || pod.PriorityClassName != "high" {
		t.Errorf("it does not run as and where the instance would: %+v", pod)
	}
	if made.Spec.Template.Labels[v1alpha1.LabelCluster] != "" || made.Labels[v1alpha1.LabelCluster] != "c" {
		t.Errorf("the labels are %v, those of its pods %v", made.Labels, made.Spec.Template.Labels)
	}
	if pod.ServiceAccountName != "" || *pod.AutomountServiceAccountToken {
		t.Error("the pod has an identity in Kubernetes")
	}
	for _, e := range c.Env {
		if strings.Contains(e.Value, "evil") {
			t.Errorf("variables %v", c.Env)
		}
	}
}

// Files of servers are named as one argument each, below the store's prefix, and each shard has its share of the rate.
func TestRestoreJobOfFiles(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}, Spec: v1alpha1.RedisClusterSpec{
		Shards: ptr.To[int32](4), Replicas: ptr.To[int32](8), Repository: "valkey/valkey", Version: "9.1.2-alpine",
		Bootstrap: &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{MaxBytesPerSecond: "40M", Files: &v1alpha1.RestoreFiles{
			Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "exports", Prefix: "old", Region: "r"}},
			Shards: []v1alpha1.RestoreFileShard{{Objects: []string{"a/base", "a/incr"}, Slots: "0-99,16383"},
				{Objects: []string{"b.rdb"}, Slots: "100-16382"}}}}}}}
	made := restoreJob(cluster, &appsv1.StatefulSet{}, cluster.BeginsFromFiles().Location(), 1, "registry/operator:1")
	want := []string{"restore", "files", "--store=s3://exports?prefix=old%2F&region=r", "--request=uid", "--listen=:8090", "--directory=/data",
		"--shard=1", "--shards=2", "--engine=valkey:9.1", "--file=0-99,16383:a/base,a/incr", "--file=100-16382:b.rdb",
		"--max-bytes-per-second=20000000", "--report-file=/dev/termination-log"}
	if diff := cmp.Diff(want, backupjob.Of(made.Spec.Template.Spec).Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if place := made.Annotations[v1alpha1.AnnotationRestoredFrom]; !strings.HasSuffix(place, "exports/old/a/base") {
		t.Errorf("it is restored from %s", place)
	}
	cluster.Spec.Bootstrap.Restore.Files.Shards = []v1alpha1.RestoreFileShard{{Objects: []string{"dump.rdb"}}}
	made = restoreJob(cluster, &appsv1.StatefulSet{}, cluster.BeginsFromFiles().Location(), 0, "registry/operator:1")
	args := strings.Join(backupjob.Of(made.Spec.Template.Spec).Args, " ")
	if !strings.Contains(args, "--shards=1 --engine=valkey:9.1 --file=0-16383:dump.rdb ") {
		t.Errorf("arguments of one file: %s", args)
	}
}

// Who restores from a claim that one node at a time can mount, and that has an archive written to it, has to be on that node. Otherwise the
// data of masters comes to different nodes.
func TestRestoreWhereTheClaimIs(t *testing.T) {
	store := v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "tape"}}
	for what, tt := range map[string]struct {
		modes  []corev1.PersistentVolumeAccessMode
		change func(archive *corev1.Pod)
		want   bool
	}{
		"an archive is written": {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, func(*corev1.Pod) {}, true},
		"to one pod at a time":  {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, func(*corev1.Pod) {}, true},
		"many nodes can mount it": {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany},
			func(*corev1.Pod) {}, false},
		"many nodes could read it, when none writes": {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
			func(*corev1.Pod) {}, true},
		"it is about to be written":         {nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, true},
		"it ended":                          {nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"it is written to another claim":    {nil, func(p *corev1.Pod) { p.Labels[v1alpha1.LabelStoreClaim] = "disk" }, false},
		"a backup is taken":                 {nil, func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelArchive) }, false},
		"an archive of another namespace's": {nil, func(p *corev1.Pod) { p.Namespace = "m" }, false},
	} {
		archive := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Labels: map[string]string{
			v1alpha1.LabelArchive: "cache", v1alpha1.LabelStoreClaim: "tape"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		tt.change(archive)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tape"},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: tt.modes}}
		b := newBench(t, interceptor.Funcs{}, claim, archive)
		if got, err := b.actor.onOneNode(t.Context(), "n", store); err != nil || got != tt.want {
			t.Errorf("%s: on one node: %t, %v", what, got, err)
		}
		restores := beginning(t, unhurt, "")
		restores.actor.Client = b.actor.Client
		restores.must(plan.RestoreShards{From: v1alpha1.BackupLocation{Name: "monday", Namespace: "n", Cluster: "c", Store: store},
			Shards: []int{0}})
		var job batchv1.Job
		if err := b.actor.Client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "c-0-restore"}, &job); err != nil {
			t.Fatal(err)
		}
		pod := job.Spec.Template
		if (pod.Spec.Affinity != nil) != tt.want || pod.Labels[v1alpha1.LabelStoreClaim] != "tape" {
			t.Errorf("%s: it runs with %v, and others find it by %v", what, pod.Spec.Affinity, pod.Labels)
		}
	}
	b := newBench(t, interceptor.Funcs{})
	if got, err := b.actor.onOneNode(t.Context(), "n", v1alpha1.BackupStore{S3: &v1alpha1.S3Store{}}); got || err != nil {
		t.Errorf("S3: %t, %v", got, err)
	}
	restores := beginning(t, unhurt, "")
	restores.actor.Client = b.actor.Client
	err := restores.do(plan.RestoreShards{From: v1alpha1.BackupLocation{Name: "monday", Store: store}, Shards: []int{0}})
	var jobs batchv1.JobList
	if listed := b.actor.Client.List(t.Context(), &jobs); listed != nil || !apierrors.IsNotFound(err) || len(jobs.Items) > 0 {
		t.Errorf("a claim that is gone: %v, and %d Jobs", err, len(jobs.Items))
	}
	unread := errors.New("timeout")
	b = newBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return unread
	}}, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tape"}})
	if _, err := b.actor.onOneNode(t.Context(), "n", store); !errors.Is(err, unread) {
		t.Errorf("who has the claim is not known: %v", err)
	}
}

// A cluster whose claims go with it takes those along that were restored and that no StatefulSet has taken over; no others go.
func TestRestoredClaimsGoWithTheirCluster(t *testing.T) {
	claim := func(name, restoredFor string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, OwnerReferences: owners,
			Labels: map[string]string{v1alpha1.LabelCluster: "c"}}}
		if restoredFor != "" {
			c.Annotations = map[string]string{v1alpha1.AnnotationRestoredFor: restoredFor}
		}
		return c
	}
	for what, tt := range map[string]struct {
		change func(*v1alpha1.RedisCluster)
		goes   bool
	}{
		"its claims go":        {func(*v1alpha1.RedisCluster) {}, true},
		"its claims stay":      {func(c *v1alpha1.RedisCluster) { c.Spec.Storage.Retain = v1alpha1.Retain }, false},
		"all of it stays":      {func(c *v1alpha1.RedisCluster) { c.Spec.Finalizers = v1alpha1.DeletionOrphan }, false},
		"nobody noted it yet":  {func(c *v1alpha1.RedisCluster) { c.Status.Restored = nil }, true},
		"there is no storage":  {func(c *v1alpha1.RedisCluster) { c.Spec.Storage = nil }, false},
		"nothing was restored": {func(c *v1alpha1.RedisCluster) { c.Spec.Bootstrap = nil }, false},
	} {
		b := newBench(t, interceptor.Funcs{}, claim("data-c-0-0", "uid"), claim("data-c-1-0", "former"), claim("data-c-2-0", ""),
			claim("data-c-3-1", "uid"), claim("somebodys", "uid"), claim("data-other-0-0", "uid"), claim("c-1-0", "uid"),
			claim("data-c-3-0", "uid", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "c-0", UID: "set"}))
		b.must(plan.AddFinalizer{})
		b.subject.Cluster.Spec.Storage = &v1alpha1.Storage{Retain: v1alpha1.RetainDelete}
		b.subject.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "b"}}
		b.subject.Cluster.Status.Restored = &v1alpha1.RestoredData{}
		tt.change(b.subject.Cluster)
		b.must(plan.RemoveFinalizer{})
		var left corev1.PersistentVolumeClaimList
		if err := b.actor.Client.List(t.Context(), &left); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, c := range left.Items {
			names[c.Name] = true
		}
		if gone := !names["data-c-0-0"]; gone != tt.goes || len(names) != map[bool]int{true: 7, false: 8}[gone] {
			t.Errorf("%s: %v are left", what, names)
		}
	}
}
