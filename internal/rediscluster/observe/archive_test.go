// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
)

func archivedCluster() *v1alpha1.RedisCluster {
	c := cluster()
	c.UID = "uid"
	c.Spec.Auth.Enabled = ptr.To(false)
	c.Spec.Backup = &v1alpha1.ClusterBackup{Archive: &v1alpha1.Archive{},
		Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "b", CredentialsSecretName: "s3", CASecretName: "ca"}}}
	return c
}

// writer is a pod that writes the archive of archivedCluster, changed.
func writer(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{v1alpha1.LabelArchive: "c"},
			CreationTimestamp: metav1.NewTime(now), OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "c-archive-5d4", UID: "rs", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "backup", Command: []string{"/backup"},
			Args: []string{"archive", "archive-1", "--request=uid", backupjob.Store(archivedCluster().ArchiveLocation())}}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.9", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

// Wherever the archive lies, its pod is known.
func TestArchivesInOtherStores(t *testing.T) {
	for name, store := range map[string]v1alpha1.BackupStore{
		"gcs":   {GCS: &v1alpha1.GCSStore{Bucket: "backups"}},
		"azure": {Azure: &v1alpha1.AzureStore{Container: "backups"}},
		"claim": {Claim: &v1alpha1.ClaimStore{ClaimName: "tape"}},
	} {
		cluster := archivedCluster()
		cluster.Spec.Backup.Store = store
		pod := writer("a", func(p *corev1.Pod) { p.Spec.Containers[0].Args[3] = backupjob.Store(cluster.ArchiveLocation()) })
		if !writesArchive(cluster, pod) {
			t.Errorf("%s: its pod is not known", name)
		}
		if writesArchive(archivedCluster(), pod) {
			t.Errorf("%s: it is taken for one that writes into S3", name)
		}
	}
}

// A pod counts by its owner and by what it runs; nothing else is asked anything.
func TestWhoWritesTheArchive(t *testing.T) {
	crashed := func(p *corev1.Pod) {
		p.Status.Conditions = nil
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "backup",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
				Message: "all shards: slots move\nError: another process writes this archive by now\n"}}}}
	}
	older := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) }
	for name, tt := range map[string]struct {
		pods    []client.Object
		want    string // the pod
		ready   bool
		waiting string
		ended   string
	}{
		"nobody":  {},
		"its pod": {pods: []client.Object{writer("a", nil)}, want: "a", ready: true},
		"crashing": {pods: []client.Object{writer("a", crashed)}, want: "a", waiting: "container backup: CrashLoopBackOff",
			ended: "Error: another process writes this archive by now"},
		"waits for its claim": {pods: []client.Object{writer("a", func(p *corev1.Pod) {
			p.Status.Conditions, p.Spec.NodeName = nil, "node1"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "backup",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
			p.Spec.Volumes = []corev1.Volume{{Name: "backups", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "tape"}}}}
		})}, want: "a", waiting: "starts on node node1, where claim tape is mounted for it; one that is ReadWriteOnce waits until no pod " +
			"of another node uses it"},
		"the newest of two":   {pods: []client.Object{writer("a", older), writer("b", nil)}, want: "b", ready: true},
		"another cluster's":   {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.Spec.Containers[0].Args[2] = "--request=other" })}},
		"into another store":  {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.Spec.Containers[0].Args[3] = "--store=s3://other" })}},
		"no owner":            {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.OwnerReferences = nil })}},
		"another owner":       {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.OwnerReferences[0].Name = "c-other-1" })}},
		"a stranger's owner":  {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })}},
		"another command":     {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh"} })}},
		"at a node's address": {pods: []client.Object{writer("a", func(p *corev1.Pod) { p.Spec.HostNetwork = true })}},
	} {
		var asked []string
		kube := fake.NewClientBuilder().WithObjects(append(deploymentOf("c-archive"), tt.pods...)...).Build()
		o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return now },
			Ask: func(_ context.Context, address string) ([]byte, error) {
				asked = append(asked, address)
				return report.Archive{Request: "uid", Behind: 1, Objective: 60, Waits: report.WaitStore}.Encode()
			}}
		m := &Memory{}
		got, _, err := o.archive(t.Context(), archivedCluster(), m)
		if err != nil || got.Pod != tt.want || got.Ready != tt.ready || got.Waiting != tt.waiting || got.Ended != tt.ended {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		want := map[bool]string{true: "[10.0.0.9:8090]", false: "[]"}[tt.want != ""]
		if fmt.Sprint(asked) != want || (got.Said != nil) != (tt.want != "") {
			t.Errorf("%s: asked %v, heard %+v", name, asked, got.Said)
		}
	}
}

// It is asked twice a minute at most, what it said last is remembered, and what nobody can believe is not.
func TestTheArchiveIsAskedNowAndThen(t *testing.T) {
	at, asked := now, 0
	answer := func() ([]byte, error) { return report.Archive{Request: "uid", Behind: 1, Objective: 60}.Encode() }
	kube := fake.NewClientBuilder().WithObjects(append(deploymentOf("c-archive"), writer("a", nil))...).Build()
	o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return at },
		Ask: func(ctx context.Context, _ string) ([]byte, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("it may take for ever")
			}
			asked++
			return answer()
		}}
	c, m := archivedCluster(), &Memory{}
	look := func(after time.Duration) *report.Archive {
		at = at.Add(after)
		got, _, err := o.archive(t.Context(), c, m)
		if err != nil {
			t.Fatal(err)
		}
		return got.Said
	}
	if said := look(0); said == nil || asked != 1 || look(20*time.Second) != said || asked != 1 {
		t.Errorf("asked %d times, heard %+v", asked, said)
	}
	for _, bad := range []func() ([]byte, error){
		func() ([]byte, error) { return nil, errors.New("no route") },
		func() ([]byte, error) { return []byte("<html>"), nil },
		func() ([]byte, error) { return report.Archive{Request: "other", Behind: 7, Objective: 60}.Encode() },
	} {
		answer = bad
		if said := look(time.Minute); said == nil || said.Behind != 1 {
			t.Errorf("it says nothing, and is heard as %+v", said)
		}
	}
	c.Spec.Backup.Store.S3.Bucket = "elsewhere"
	if said := look(0); said != nil {
		t.Errorf("what was said of another store counts: %+v", said)
	}
	c.Spec.Backup.Store.S3 = nil // past the schema
	if said := look(0); said != nil {
		t.Errorf("without a store it is heard as %+v", said)
	}
	if c.Spec.Backup = nil; asked != 4 {
		t.Errorf("asked %d times", asked)
	}
	if got, _, err := o.archive(t.Context(), c, m); got != nil || err != nil || m.archive.said != nil {
		t.Errorf("no archive is asked for: %+v, %v", got, err)
	}
}

// Which Secrets the pod may be given is decided before it is made, and is looked at again within a minute.
func TestArchiveWithheld(t *testing.T) {
	secret := func(name string, labels ...string) client.Object {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{}}}
		for _, label := range labels {
			s.Labels[label] = "true"
		}
		return s
	}
	const label = v1alpha1.LabelBackup
	for name, tt := range map[string]struct {
		secrets []client.Object
		image   string
		change  func(*v1alpha1.RedisCluster)
		want    string
	}{
		"all is there":   {secrets: []client.Object{secret("s3", label), secret("ca", label)}, image: "i"},
		"no image":       {secrets: []client.Object{secret("s3", label), secret("ca", label)}, want: "--backup-image"},
		"no credentials": {image: "i", want: "spec.backup.store.s3.credentialsSecretName: there is no Secret s3"},
		"not labelled":   {secrets: []client.Object{secret("s3"), secret("ca", label)}, image: "i", want: "Secret s3 lacks the label " + label},
		"for restoring": {secrets: []client.Object{secret("s3", v1alpha1.LabelRestore)}, image: "i",
			want: "Secret s3 lacks the label " + label},
		"nor certificates": {secrets: []client.Object{secret("s3", label), secret("ca")}, image: "i", want: "spec.backup.store.s3.caSecretName"},
		"no password": {secrets: []client.Object{secret("s3", label), secret("ca", label)}, image: "i", want: "Secret c-auth is gone",
			change: func(c *v1alpha1.RedisCluster) { c.Spec.Auth.Enabled = nil }},
		"no certificates of the cluster": {image: "i", want: "spec.tls",
			secrets: []client.Object{secret("s3", label), secret("ca", label), secret("own")},
			change:  func(c *v1alpha1.RedisCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretName: "own"} }},
	} {
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		reads := 0
		live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.secrets...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, to client.Object, o ...client.GetOption) error {
				reads++
				return c.Get(ctx, key, to, o...)
			}}).Build()
		at := now
		o := &Observer{Secrets: live, BackupImage: tt.image, Now: func() time.Time { return at }}
		c, m := archivedCluster(), &Memory{}
		if tt.change != nil {
			tt.change(c)
		}
		got := o.ArchiveWithheld(t.Context(), c, m)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		once := reads
		if again := o.ArchiveWithheld(t.Context(), c, m); again != got || reads != once {
			t.Errorf("%s: asked again at once, %q", name, again)
		}
		at = at.Add(time.Minute)
		if o.ArchiveWithheld(t.Context(), c, m); tt.image != "" && reads == once {
			t.Errorf("%s: never asked again", name)
		}
	}
}
