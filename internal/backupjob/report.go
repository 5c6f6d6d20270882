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

// ReportOf reads what the pods of a Job said at their end: that one did it, or else what the last one failed for; nil: nothing that could
// be read. A pod counts that the Job owns and that runs what the Job says: labels and owners are anybody's to write. What a cache does not
// show of a Job that has ended is asked of the API server: the caches of Jobs and of pods are two.
func ReportOf(ctx context.Context, cache, live client.Reader, job *batchv1.Job) (*report.Report, error) {
	said, err := reportOf(ctx, cache, job)
	if err == nil && Ended(job) && (said == nil || said.Error != "") {
		return reportOf(ctx, live, job)
	}
	return said, err
}

func reportOf(ctx context.Context, from client.Reader, job *batchv1.Job) (*report.Report, error) {
	var list corev1.PodList
	err := from.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var last *report.Report
	for i := range list.Items {
		pod := &list.Items[i]
		if !metav1.IsControlledBy(pod, job) || !runs(pod, job) {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.Name != Container || c.State.Terminated == nil {
				continue
			}
			said, err := report.Parse(c.State.Terminated.Message)
			if err != nil {
				continue // it was stopped before it could say anything
			}
			if last = &said; said.Error == "" {
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
	return pods.Why(newest), nil
}

// runs reports whether a pod's container of the name runs what a Job says. Admission may have added other containers, and may have given
// the image another name.
func runs(pod *corev1.Pod, job *batchv1.Job) bool {
	is, want := Of(pod.Spec), Of(job.Spec.Template.Spec)
	return is != nil && want != nil && slices.Equal(is.Command, want.Command) && slices.Equal(is.Args, want.Args) &&
		is.TerminationMessagePath == want.TerminationMessagePath
}

// For reports whether a pod runs the program for the object of a UID.
func For(pod corev1.PodSpec, uid string) bool {
	c := Of(pod)
	return c != nil && slices.Equal(c.Command, []string{Program}) && slices.Contains(c.Args, Request(uid))
}
