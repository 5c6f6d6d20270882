// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Every pod that restores a shard is asked how far it is, one that says nothing keeps nobody waiting, and what a Job's pod said is
// forgotten with the Job.
func TestHowFarARestoreIs(t *testing.T) {
	c := cluster()
	c.UID = "uid"
	c.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "monday"}}
	var objects []client.Object
	for shard, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: c.RestoreJobName(shard), UID: types.UID(fmt.Sprint("j", shard)),
			Labels:          map[string]string{v1alpha1.LabelCluster: "c"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind("RedisCluster"))}}}
		backupjob.Add(&job.Spec.Template.Spec, "operator:1", v1alpha1.BackupStore{}, corev1.ResourceRequirements{}, backupjob.Restore,
			backupjob.Request("uid"))
		objects = append(objects, job, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: job.Name + "-pod", UID: job.UID + "-pod",
			Labels:          map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
			Spec: *job.Spec.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip}})
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	var mu sync.Mutex
	var asked []string
	at := now
	o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return at }}
	o.Ask = func(_ context.Context, address string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, address)
		if address == "10.0.0.2:8090" {
			return nil, errors.New("no route")
		}
		return report.Progress{Request: "uid", Stage: report.StageRestoring, Bytes: int64(len(asked)), Of: 10}.Encode()
	}
	m := &Memory{}
	look := func(after time.Duration) *snapshot.Restore {
		t.Helper()
		at, asked = at.Add(after), nil
		r, _, err := o.restore(t.Context(), c, &snapshot.Snapshot{}, m)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(asked)
		return r
	}
	r := look(0)
	if !slices.Equal(asked, []string{"10.0.0.1:8090", "10.0.0.2:8090", "10.0.0.3:8090"}) {
		t.Errorf("asked %q", asked)
	}
	for shard, job := range r.Jobs {
		if known := shard != 1; (job.Heard != nil) != known {
			t.Errorf("of shard %d it heard %+v", shard, job.Heard)
		}
	}
	if r = look(time.Second); len(asked) > 0 || r.Jobs[0].Heard == nil {
		t.Errorf("asked %q, heard %+v", asked, r.Jobs[0].Heard)
	}
	if look(9 * time.Second); !slices.Equal(asked, []string{"10.0.0.1:8090", "10.0.0.3:8090"}) {
		t.Errorf("asked %q", asked)
	}
	if err := kube.Delete(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	if look(0); len(m.restoring) != 2 {
		t.Errorf("%d Jobs are remembered", len(m.restoring))
	}
	if r, _, err := o.restore(t.Context(), c, &snapshot.Snapshot{Formed: true}, m); r != nil || err != nil || len(m.restoring) > 0 {
		t.Errorf("of a cluster that has formed %+v is remembered (%v)", r, err)
	}
}
