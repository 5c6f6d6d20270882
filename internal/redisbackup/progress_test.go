// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

// How far a backup is, is asked of its pod now and then, stands in the status while it is taken, and does not afterwards.
func TestProgress(t *testing.T) {
	s := snapshotOf(func(s *Snapshot) { s.Backup.Status.Phase = v1alpha1.BackupRunning })
	made := job(s, "operator:1")
	made.UID = "j"
	pod := podOf(made, "", func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9"}
	})
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.Backup, s.Cluster, made, pod).WithStatusSubresource(pod).Build()
	asked, at := 0, now
	r := &reconciler{cache: kube, children: kube, live: kube, image: "operator:1", now: func() time.Time { return at },
		ask: func(context.Context, string) ([]byte, error) {
			asked++
			return report.Progress{Request: "b", Stage: report.StageReading, Elapsed: 10, Bytes: 50, Of: 100}.Encode()
		}}
	if _, ok := r.memory.Begin(t.Context(), kube, client.ObjectKeyFromObject(s.Backup), &v1alpha1.RedisBackup{}, at); !ok {
		t.Fatal("the backup is not read")
	}
	for _, after := range []time.Duration{0, time.Second} {
		at = at.Add(after)
		seen, err := r.observe(t.Context(), s.Backup)
		if err != nil {
			t.Fatal(err)
		}
		step := Plan(seen)
		status := ComputeStatus(seen, step, nil)
		if p := status.Progress; p == nil || p.Percent == nil || *p.Percent != 25 || asked != 1 {
			t.Fatalf("%T: %+v, asked %d times", step, p, asked)
		}
		seen.Backup.Status = status
		for _, last := range []Step{Complete{done}, Fail{Reason: "no"}, Repeat{Reason: "no"}} {
			if after := ComputeStatus(seen, last, nil); after.Progress != nil {
				t.Errorf("%T: it is still at %+v", last, after.Progress)
			}
		}
	}
}
