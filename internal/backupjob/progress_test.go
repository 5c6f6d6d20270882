// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

// No more is read than a message has, and nobody is sent elsewhere.
func TestAsker(t *testing.T) {
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		_, _ = to.Write([]byte(strings.Repeat("x", 1<<20)))
	}))
	defer server.Close()
	away := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusFound))
	defer away.Close()
	ask := Asker(report.Most)
	text, err := ask(t.Context(), strings.TrimPrefix(server.URL, "http://"))
	if err != nil || len(text) != report.Most+1 || path != "/status" {
		t.Errorf("%d bytes of %s, %v", len(text), path, err)
	}
	if text, err := ask(t.Context(), strings.TrimPrefix(away.URL, "http://")); err == nil {
		t.Errorf("sent elsewhere, it brings %d bytes", len(text))
	}
}

var now = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

// A pod is asked every ten seconds at most, and every minute when it does not answer. What it said last counts for a minute, and nothing
// that another pod said.
func TestHearing(t *testing.T) {
	said := func(bytes int64) report.Progress {
		return report.Progress{Request: "uid", Stage: report.StageReading, Bytes: bytes, Of: 100}
	}
	answer, asked := func() ([]byte, error) { return said(1).Encode() }, ""
	ask := func(ctx context.Context, address string) ([]byte, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("it may take for ever")
		}
		asked += address
		return answer()
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Status: corev1.PodStatus{PodIP: "10.0.0.9"}}
	at, l := now, Listener{}
	hears := func(after time.Duration, times int, bytes int64) {
		t.Helper()
		at, asked = at.Add(after), ""
		heard := l.Hear(t.Context(), ask, pod, "uid", at)
		if asked != strings.Repeat("10.0.0.9:8090", times) || (heard != nil) != (bytes > 0) || heard != nil && heard.Bytes != bytes {
			t.Errorf("after %s: asked %q, heard %+v, want %d bytes", at.Sub(now), asked, heard, bytes)
		}
	}
	hears(0, 1, 1)
	answer = func() ([]byte, error) { return said(2).Encode() }
	hears(9*time.Second, 0, 1)
	hears(time.Second, 1, 2)
	for _, bad := range []func() ([]byte, error){
		func() ([]byte, error) { return nil, errors.New("no route") },
		func() ([]byte, error) { return []byte("<html>"), nil },
		func() ([]byte, error) { return []byte(strings.Repeat("x", 1<<20)), nil },
		func() ([]byte, error) {
			return report.Progress{Request: "other", Stage: report.StageReading, Bytes: 7}.Encode()
		},
	} {
		l = Listener{}
		hears(0, 1, 2)
		good := answer
		answer = bad
		hears(10*time.Second, 1, 2)
		hears(40*time.Second, 0, 2)
		hears(15*time.Second, 0, 0)
		hears(5*time.Second, 1, 0)
		answer = good
	}
	l = Listener{}
	hears(0, 1, 2)
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}, Status: pod.Status}
	answer = func() ([]byte, error) { return nil, errors.New("no route") }
	hears(time.Second, 1, 0)
	pod = nil
	hears(time.Hour, 0, 0)
}

// A pod is asked that the Job owns and that runs what it says, at an address of its own, and no other.
func TestWhoIsAsked(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday-backup", UID: "j"}}
	Add(&job.Spec.Template.Spec, "operator:1", v1alpha1.BackupStore{}, corev1.ResourceRequirements{}, Take, Request("uid"), Listen())
	for what, tt := range map[string]struct {
		change func(*corev1.Pod)
		asked  bool
	}{
		"its own":                      {func(*corev1.Pod) {}, true},
		"one that has not begun":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, false},
		"one that has ended":           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"one without an address":       {func(p *corev1.Pod) { p.Status.PodIP = "" }, false},
		"one at a node's address":      {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, false},
		"nobody's":                     {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"one that runs something else": {func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"take"} }, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
			Spec: *job.Spec.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9"}}
		tt.change(pod)
		reader := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(pod).WithStatusSubresource(pod).Build()
		if got, err := Running(t.Context(), reader, job); err != nil || (got != nil) != tt.asked {
			t.Errorf("%s: %v, %v", what, got != nil, err)
		}
	}
}

// What a status says is what was heard; what has not ended is not at 100.
func TestProgress(t *testing.T) {
	if Progress(nil) != nil {
		t.Error("nobody said anything")
	}
	got := Progress(&report.Heard{At: now, Progress: report.Progress{Stage: report.StageRestoring, Elapsed: 60, Bytes: 50, Of: 100,
		Shards: []report.ShardProgress{{Shard: 2, Bytes: 50, Of: 100}}}})
	want := &v1alpha1.TransferProgress{Stage: "Restoring", Percent: ptr.To[int32](50), EstimatedEnd: &metav1.Time{Time: now.Add(time.Minute)},
		Bytes: 50, ExpectedBytes: 100, Shards: []v1alpha1.ShardProgress{{Shard: 2, Bytes: 50, ExpectedBytes: 100}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range []report.Progress{{Stage: report.StageReadingBack, Bytes: 100, Of: 100}, {Stage: report.StageReading, Bytes: 1}} {
		got := Progress(&report.Heard{At: now, Progress: p})
		if known := p.Of > 0; (got.Percent != nil) != known || known && *got.Percent != 99 || got.EstimatedEnd != nil && !known {
			t.Errorf("%+v: %+v", p, got)
		}
	}
}
