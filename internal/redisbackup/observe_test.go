// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
)

func said(t *testing.T, r report.Report) string {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// podOf is a pod as the Job's controller makes it, which said something at its end, changed.
func podOf(job *batchv1.Job, message string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "pod", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: backupjob.Container,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}},
	}
	change(pod)
	return pod
}

// What became of a backup is what the pod says that the Job owns and that runs what the Job says.
func TestReportOf(t *testing.T) {
	made := job(snapshotOf(func(*Snapshot) {}), "operator:1")
	made.UID = "j"
	whole := said(t, done)
	for what, tt := range map[string]struct {
		message string
		change  func(*corev1.Pod)
		heard   bool
	}{
		"its own pod": {whole, func(*corev1.Pod) {}, true},
		"admission added a container before it, and gave the image another name": {whole, func(p *corev1.Pod) {
			p.Spec.Containers[0].Image = "mirror/operator@sha256:1"
			p.Spec.Containers = append([]corev1.Container{{Name: "proxy"}}, p.Spec.Containers...)
		}, true},
		"nobody's":      {whole, func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"another Job's": {whole, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "k" }, false},
		"one that runs something else": {whole, func(p *corev1.Pod) {
			p.Spec.Containers[0].Args = []string{"take", "another"}
		}, false},
		"one that runs another program": {whole, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh"} }, false},
		"one that says what a file holds": {whole, func(p *corev1.Pod) {
			p.Spec.Containers[0].TerminationMessagePath = "/etc/mine"
		}, false},
		"another container speaks": {whole, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Name = "proxy" }, false},
		"it goes on":               {whole, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated = nil }, false},
		"it says nothing":          {"", func(*corev1.Pod) {}, false},
		"it says anything":         {`{"manifest":"yes"}`, func(*corev1.Pod) {}, false},
	} {
		pod := podOf(made, tt.message, tt.change)
		reader := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(pod).WithStatusSubresource(pod).Build()
		if got, err := backupjob.ReportOf(t.Context(), reader, reader, made); err != nil || (got != nil) != tt.heard {
			t.Errorf("%s: heard %+v (%v)", what, got, err)
		}
	}
}

// A Job of the backup's name counts if the backup owns it and it takes the backup; pods are waited for that do so and have not ended.
func TestWhoTakesTheBackup(t *testing.T) {
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := snapshotOf(func(*Snapshot) {})
	s.Backup.Status.Phase = v1alpha1.BackupRunning
	for what, tt := range map[string]struct {
		change func(*batchv1.Job)
		ours   bool
	}{
		"its Job":                      {func(*batchv1.Job) {}, true},
		"nobody's":                     {func(j *batchv1.Job) { j.OwnerReferences = nil }, false},
		"one that takes another":       {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Args[4] = "--request=c" }, false},
		"one that runs something else": {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Command = []string{"sh"} }, false},
	} {
		made := job(s, "operator:1")
		made.UID = "j"
		tt.change(made)
		kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.Cluster, made).Build()
		r := &reconciler{cache: kube, children: kube, live: kube, image: "operator:1", now: func() time.Time { return now }}
		seen, err := r.observe(t.Context(), s.Backup)
		if err != nil || (seen.Job != nil) != tt.ours || (seen.Taken == "") != tt.ours {
			t.Errorf("%s: Job %v, taken %q (%v)", what, seen.Job != nil, seen.Taken, err)
		}
	}
	made := job(s, "operator:1")
	running := podOf(made, "", func(p *corev1.Pod) { p.Name = "running" })
	ended := podOf(made, "", func(p *corev1.Pod) { p.Name, p.Status.Phase = "ended", corev1.PodSucceeded })
	other := podOf(made, "", func(p *corev1.Pod) { p.Name, p.Spec.Containers[0].Args = "other", nil })
	r := &reconciler{live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(running, ended, other).Build()}
	if names, err := r.pods(t.Context(), s.Backup); err != nil || len(names) != 1 || names[0] != "running" {
		t.Errorf("%v still take it (%v)", names, err)
	}
}

// The cache of pods may be behind that of Jobs: before a Job is made again, the API server is asked.
func TestReportThatTheCacheDoesNotShow(t *testing.T) {
	s := snapshotOf(func(*Snapshot) {})
	s.Backup.Status.Phase = v1alpha1.BackupRunning
	made := job(s, "operator:1")
	made.UID = "j"
	made.Status.Conditions = []batchv1.JobCondition{complied(batchv1.JobComplete, "", "")}
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	build := func(objects ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	pod := podOf(made, said(t, done), func(*corev1.Pod) {})
	r := &reconciler{cache: build(s.Cluster), children: build(made), live: build(made, pod), image: "operator:1",
		now: func() time.Time { return now }}
	seen, err := r.observe(t.Context(), s.Backup)
	if err != nil || seen.Report == nil || seen.Report.Manifest != done.Manifest {
		t.Fatalf("seen %+v (%v)", seen, err)
	}
}

// A RedisBackup that says no store, or two, past its schema, is an error and no panic.
func TestWithoutAStore(t *testing.T) {
	for _, change := range []func(*Snapshot){
		func(s *Snapshot) { s.Backup.Spec.Store.S3 = nil },
		func(s *Snapshot) { s.Backup.Spec.Store.Claim = &v1alpha1.ClaimStore{ClaimName: "a"} },
		func(s *Snapshot) { s.Backup.Spec.Store.S3.Prefix = "../other" },
	} {
		s := snapshotOf(change)
		r := &reconciler{now: func() time.Time { return now }}
		if _, err := r.observe(t.Context(), s.Backup); err == nil {
			t.Error("it is taken somewhere")
		}
	}
}

// A backup whose RedisCluster came to another operator meanwhile is complete only if that one let no slots move.
func TestACacheWithoutTheCluster(t *testing.T) {
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		held      types.UID
		gone      bool
		completes bool
	}{
		"slots stayed":   {"", false, true},
		"slots may move": {"another", false, false},
		"it was deleted": {"", true, true},
	} {
		s := snapshotOf(func(*Snapshot) {})
		s.Backup.Status.Phase = v1alpha1.BackupRunning
		s.Cluster.Status.HeldForBackup = s.Backup.UID
		if tt.held != "" {
			s.Cluster.Status.HeldForBackup = tt.held
		}
		made := job(s, "operator:1")
		made.UID = "j"
		made.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		objects := []client.Object{made, podOf(made, said(t, done), func(*corev1.Pod) {})}
		children := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
		if !tt.gone {
			objects = append(objects, s.Cluster)
		}
		live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
		r := &reconciler{cache: children, children: children, live: live, image: "operator:1", now: func() time.Time { return now }}
		seen, err := r.observe(t.Context(), s.Backup)
		if err != nil {
			t.Fatal(err)
		}
		if step := Plan(seen); is[Complete](step) != tt.completes || is[Fail](step) == tt.completes {
			t.Errorf("%s: %T %+v", what, step, step)
		}
	}
}

func is[T Step](step Step) bool {
	_, is := step.(T)
	return is
}
