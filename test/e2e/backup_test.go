// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/test/live"
)

const (
	storeUser, storePassword = "tester", "not a secret"
	storePort                = 9000
	bucketName               = "backups"
)

// runStore runs an object store with a bucket, as Service minio of a namespace, and returns a client of it.
func runStore(t *testing.T, namespace string) *s3.Client {
	t.Helper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: "minio", Labels: map[string]string{"app": "minio"}}
	pod := &corev1.Pod{ObjectMeta: name, Spec: corev1.PodSpec{
		SecurityContext: restricted(),
		Containers: []corev1.Container{{
			Name: "minio", Image: "middleware.hc.cn/minio:2026.2.12", Args: []string{"server", "/data"}, SecurityContext: unprivileged(),
			Env: []corev1.EnvVar{{Name: "MINIO_ROOT_USER", Value: storeUser}, {Name: "MINIO_ROOT_PASSWORD", Value: storePassword},
				{Name: "MINIO_BROWSER", Value: "off"}, {Name: "HOME", Value: "/data"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1,
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(storePort)}}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}
	live.Create(t, pod)
	live.Create(t, &corev1.Service{ObjectMeta: name,
		Spec: corev1.ServiceSpec{Selector: name.Labels, Ports: []corev1.ServicePort{{Port: storePort}}}})
	live.Eventually(t, "the store runs", func() error {
		if err := live.Get(t, pod); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	client := s3.New(s3.Options{Region: "us-east-1", UsePathStyle: true,
		BaseEndpoint: aws.String("http://" + live.Tunnel(t, namespace, pod.Name, storePort)),
		Credentials:  credentials.NewStaticCredentialsProvider(storeUser, storePassword, "")})
	live.Eventually(t, "the store has a bucket", func() error {
		_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucketName)})
		return err
	})
	return client
}

// storeSecret leads to the store of a namespace, for those who write and for those who read.
func storeSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store",
		Labels: map[string]string{v1alpha1.LabelBackup: "true", v1alpha1.LabelRestore: "true"}},
		StringData: map[string]string{"AWS_ACCESS_KEY_ID": storeUser, "AWS_SECRET_ACCESS_KEY": storePassword}}
}

// storeOf is that store as an object's author names it.
func storeOf(namespace string) v1alpha1.BackupStore {
	return v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: bucketName, Prefix: "a/b",
		Endpoint: fmt.Sprintf("http://minio.%s.svc:%d", namespace, storePort), CredentialsSecretName: "store"}}
}

// A RedisBackup is taken while clients write and read and notice nothing, lies in the store as its status says, another cluster begins with
// its data, and it goes from the store. Then an archive of the cluster is written to a claim, and another cluster begins with a moment of
// that.
func TestRedisClusterIsBackedUp(t *testing.T) {
	if !live.Local() {
		t.Skip("the object store is an image of the local cluster")
	}
	parallel(t)
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		namespace := live.NewNamespace(t)
		cluster := newCluster(namespace, "cache")
		live.Create(t, cluster)
		store := runStore(t, namespace)
		live.Create(t, storeSecret(namespace))
		live.Ready(t, cluster)
		load := live.NewLoad(t, cluster)
		const keys = 2000
		load.Fill(keys)
		load.Start()

		backup := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday"},
			Spec: v1alpha1.RedisBackupSpec{Cluster: "cache", Store: storeOf(namespace)}}
		live.Create(t, backup)
		completed(t, backup)
		inStore(t, store, backup)
		run.WantUnnoticed(load, live.NothingMoved)
		load.WantData()
		live.Eventually(t, "slots may move again", func() error {
			if err := live.Get(t, cluster); err != nil || cluster.Status.HeldForBackup != "" {
				return errors.Join(err, fmt.Errorf("they stay for %s", cluster.Status.HeldForBackup))
			}
			return nil
		})
		restoredFrom(t, backup, keys)
		goesFromStore(t, store, backup)
		onClaim := onAClaim(t, cluster, keys)
		if os.Getenv("E2E") == "all" { // without real claims and garbage collection: TestVerifiedBackups
			archivedAndRestored(t, cluster, backup.Spec.Store, "once-more", keys, func() {}) // on bare processes: TestArchiveThroughStoreFaults
			verified(t, namespace, v1alpha1.RedisBackupSpec{Cluster: cluster.Name, Store: onClaim})
			beginsWithFiles(t, store, cluster, backup.Spec.Store, keys)
		}
	})
}

// archivedAndRestored has an archive written of a cluster, and makes another one that begins with a moment of it. Meanwhile is before that.
func archivedAndRestored(t *testing.T, cluster *v1alpha1.RedisCluster, in v1alpha1.BackupStore, as string, keys int,
	meanwhile func()) *v1alpha1.RedisCluster {
	t.Helper()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Backup = &v1alpha1.ClusterBackup{Store: in, Archive: &v1alpha1.Archive{}}
	})
	live.Eventually(t, "the archive is within its objective, and a moment is over that can be restored", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		c, a := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionArchiving), cluster.Status.Archive
		if c == nil || c.Status != metav1.ConditionTrue || a == nil || a.FirstMoment == nil || time.Since(a.FirstMoment.Time) < 2*time.Second {
			return fmt.Errorf("%+v, %+v", c, a)
		}
		return nil
	})
	meanwhile()
	again := newCluster(cluster.Namespace, as)
	again.Spec.Replicas = ptr.To[int32](3)
	again.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Location: &v1alpha1.BackupLocation{Store: in,
		Namespace: cluster.Namespace, Cluster: cluster.Name, Name: cluster.Status.Archive.Name, Moment: &v1alpha1.ArchiveMoment{}}}}
	live.Create(t, again)
	live.Ready(t, again)
	if is := again.Status.Restored; is == nil || !is.Consistent || !strings.HasPrefix(is.Location, cluster.Status.Archive.Location+"@") {
		t.Errorf("it began with %+v, and the archive is %+v", is, cluster.Status.Archive)
	}
	load := live.NewLoad(t, again)
	load.Began(keys)
	load.WantData()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Backup = nil })
	writer := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ArchiveWorkload()}}
	live.Eventually(t, "nobody writes the archive any more", func() error {
		if err := live.Get(t, writer); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("its Deployment is still there"))
		}
		return nil
	})
	return again
}

// verified has a schedule make a backup and restore it, until it says that all keys are there and has deleted what it restored them into.
func verified(t *testing.T, namespace string, of v1alpha1.RedisBackupSpec) {
	t.Helper()
	at := &v1alpha1.RedisBackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "often"},
		Spec: v1alpha1.RedisBackupScheduleSpec{Schedule: "* * * * *", Cluster: of.Cluster, Store: of.Store,
			Verify: &v1alpha1.BackupVerification{Schedule: "* * * * *"}}}
	live.Create(t, at)
	live.Eventually(t, "a backup was restored to see that it can be", func() error {
		if err := live.Get(t, at); err != nil || at.Status.LastVerified != nil {
			return err
		}
		return fmt.Errorf("%+v, %+v", at.Status.Verification, meta.FindStatusCondition(at.Status.Conditions, v1alpha1.ScheduleConditionVerified))
	})
	t.Logf("%+v", *at.Status.LastVerified)
	live.Change(t, at, func(at *v1alpha1.RedisBackupSchedule) { at.Spec.Suspend = true })
	throwaway := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: at.ThrowawayName()}}
	live.Eventually(t, "what it was restored into is gone", func() error {
		if err := live.Get(t, throwaway); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("it is still there"))
		}
		var secrets corev1.SecretList
		if err := live.Kube.List(t.Context(), &secrets, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range secrets.Items {
			if strings.HasPrefix(secrets.Items[i].Name, throwaway.Name) {
				return fmt.Errorf("Secret %s is still there", secrets.Items[i].Name)
			}
		}
		return nil
	})
	wantClaims(t, throwaway, 0)
}

// goesFromStore deletes a backup with all that lies in the store.
func goesFromStore(t *testing.T, client *s3.Client, backup *v1alpha1.RedisBackup) {
	t.Helper()
	live.Change(t, backup, func(b *v1alpha1.RedisBackup) { b.Spec.DeletionPolicy = v1alpha1.BackupDelete })
	live.Eventually(t, "the backup is held until it is gone from the store", func() error {
		if err := live.Get(t, backup); err != nil || len(backup.Finalizers) > 0 {
			return err
		}
		return errors.New("it has no finalizer")
	})
	goes(t, backup)
	list, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucketName)})
	if err != nil || len(list.Contents) > 0 {
		t.Errorf("%d objects are left in the store (%v)", len(list.Contents), err)
	}
}

// restoredFrom makes a cluster that begins with a backup, and asserts that it has the data, serves, and keeps nothing of the restore.
func restoredFrom(t *testing.T, backup *v1alpha1.RedisBackup, keys int) {
	t.Helper()
	cluster := newCluster(backup.Namespace, "copy")
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: backup.Name}}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	is := cluster.Status.Restored
	if is == nil || is.ManifestChecksum != backup.Status.ManifestChecksum || is.Location != backup.Status.Location || len(is.Slots) != 3 {
		t.Errorf("it began with %+v, and the backup is %+v", is, backup.Status)
	}
	if had := backup.Status.Keys; had == nil || is.Keys == nil || is.Keys.Total-is.Keys.WithTTL != had.Total-had.WithTTL {
		t.Errorf("it began with %+v keys, and the backup has %+v", is.Keys, had)
	}
	wantHealthy(t, cluster, 3, 6)
	wantTables(t, cluster, balanced(3))
	wantClaims(t, cluster, 6)
	load := live.NewLoad(t, cluster)
	load.Began(keys)
	load.WantData()
	var jobs batchv1.JobList
	if err := live.Kube.List(t.Context(), &jobs, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil || len(jobs.Items) > 0 {
		t.Errorf("%d Jobs are left (%v)", len(jobs.Items), err)
	}
}

// inStore reads the whole backup and compares it with its manifest, and that with the status.
func inStore(t *testing.T, client *s3.Client, backup *v1alpha1.RedisBackup) {
	t.Helper()
	location, err := url.Parse(backup.Status.Location)
	if err != nil || location.Host != bucketName || location.Path != "/a/b/"+backup.Namespace+"/cache/monday" {
		t.Fatalf("it lies at %s (%v)", backup.Status.Location, err)
	}
	bucket, err := s3blob.OpenBucket(t.Context(), client, bucketName, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	store := archive.NewStore(blob.PrefixedBucket(bucket, "a/b/"+backup.Namespace+"/cache/"), archive.Keys{})
	m, err := store.Manifest(t.Context(), "monday")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context(), m); err != nil {
		t.Error(err)
	}
	if said, err := m.Report(); err != nil || said.Manifest != backup.Status.ManifestChecksum || said.Bytes != backup.Status.Bytes {
		t.Errorf("the manifest has the sum %s and is of %d bytes, the status says %s and %d (%v)", said.Manifest, said.Bytes,
			backup.Status.ManifestChecksum, backup.Status.Bytes, err)
	}
}
