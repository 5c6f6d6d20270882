// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/pods"
)

// ReportOf is Said of a Job that takes a backup or restores a shard: what one that succeeded said, or else what the last one failed for.
// What a cache does not show of a Job that has ended is asked of the API server: the caches of Jobs and of pods are two.
func ReportOf(ctx context.Context, cache, live client.Reader, job *batchv1.Job) (*report.Report, error) {
	parse := func(text string) (said report.Report, final bool, err error) {
		said, err = report.Parse(text)
		return said, said.Error == "", err
	}
	said, err := Said(ctx, cache, job, parse)
	if err == nil && Ended(job) && (said == nil || said.Error != "") {
		return Said(ctx, live, job, parse)
	}
	return said, err
}

// Said reads what the pods of a Job said at their end: the first final message, or else the last one; nil: nothing that could be read. A
// pod counts that the Job owns and that runs what the Job says: labels and owners are anybody's to write.
func Said[T any](ctx context.Context, from client.Reader, job *batchv1.Job,
	parse func(string) (said T, final bool, err error)) (*T, error) {
	var list corev1.PodList
	err := from.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var last *T
	for i := range list.Items {
		pod := &list.Items[i]
		if !metav1.IsControlledBy(pod, job) || !Runs(pod, job) {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.Name != Container || c.State.Terminated == nil {
				continue
			}
			said, final, err := parse(c.State.Terminated.Message)
			if err != nil {
				continue // it was stopped before it could say anything
			}
			if last = &said; final {
				return last, nil
			}
		}
	}
	return last, nil
}

// Waits says what keeps the newest pod of a Job from running, or that there is none; empty: it runs.
func Waits(ctx context.Context, cache client.Reader, job *batchv1.Job) (string, error) {
	if ptr.Deref(job.Spec.Suspend, false) {
		return "the Job is suspended", nil
	}
	var list corev1.PodList
	if err := cache.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return "", fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	var newest *corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; metav1.IsControlledBy(pod, job) && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	switch {
	case newest == nil:
		return "the Job has no pod yet", nil
	case newest.DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s on node %s still ends", newest.Name, newest.Spec.NodeName), nil
	case newest.Status.Phase != corev1.PodPending:
		return "", nil
	}
	return Why(newest), nil
}

// Why says what keeps a pod from running, as pods.Why does. What keeps a volume from being mounted is in Events alone: of a pod that starts
// on its node it is said which claim is mounted.
func Why(pod *corev1.Pod) string {
	said := pods.Why(pod)
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claimVolume && v.PersistentVolumeClaim != nil })
	if said != pods.Starting || pod.Spec.NodeName == "" || at < 0 {
		return said
	}
	return fmt.Sprintf("pod %s starts on node %s, where claim %s is mounted for it; one that is ReadWriteOnce waits until no pod of another "+
		"node uses it", pod.Name, pod.Spec.NodeName, pod.Spec.Volumes[at].PersistentVolumeClaim.ClaimName)
}

// Runs reports whether a pod's container of the name runs what a Job says. Admission may have added other containers, and may have given
// the image another name.
func Runs(pod *corev1.Pod, job *batchv1.Job) bool {
	is, want := Of(pod.Spec), Of(job.Spec.Template.Spec)
	return is != nil && want != nil && slices.Equal(is.Command, want.Command) && slices.Equal(is.Args, want.Args) &&
		is.TerminationMessagePath == want.TerminationMessagePath
}

// For reports whether a pod runs a command of the program for the object of a UID.
func For(pod corev1.PodSpec, uid, command string) bool {
	c := Of(pod)
	return c != nil && slices.Equal(c.Command, []string{Program}) && len(c.Args) > 0 && c.Args[0] == command &&
		slices.Contains(c.Args, Request(uid))
}
