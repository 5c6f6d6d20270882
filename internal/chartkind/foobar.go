// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	"middleware.hc.cn/operator/internal/conditions"
)

// FooBarStatus computes completions and jobName of a FooBar, and the conditions
// Complete and Failed, from the Job of its present command.
func FooBarStatus(_ *unstructured.Unstructured, children []*unstructured.Unstructured, _ time.Time) (map[string]any, []metav1.Condition) {
	job := newest[batchv1.Job](children, schema.GroupKind{Group: "batch", Kind: "Job"}, nil)
	if job == nil {
		return map[string]any{"completions": nil, "jobName": nil}, []metav1.Condition{
			conditions.Condition(foobarv1.ConditionComplete, metav1.ConditionFalse, "NotStarted", "the Job is not there yet"),
			conditions.Condition(foobarv1.ConditionFailed, metav1.ConditionFalse, "NotStarted", "the Job is not there yet"),
		}
	}
	fields := map[string]any{
		"completions": fmt.Sprintf("%d/%d", job.Status.Succeeded, ptr.Deref(job.Spec.Completions, 1)),
		"jobName":     job.Name,
	}
	return fields, []metav1.Condition{
		follow(job, batchv1.JobComplete, foobarv1.ConditionComplete, "Succeeded", "the command succeeded"),
		follow(job, batchv1.JobFailed, foobarv1.ConditionFailed, "Failed", "the command failed"),
	}
}

// follow translates a condition of a Job.
func follow(job *batchv1.Job, from batchv1.JobConditionType, to, reason, message string) metav1.Condition {
	for _, c := range job.Status.Conditions {
		if c.Type != from || c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Reason != "" {
			reason = c.Reason
		}
		if c.Message != "" {
			message = c.Message
		}
		return conditions.Condition(to, metav1.ConditionTrue, reason, fmt.Sprintf("Job %s: %s", job.Name, message))
	}
	if _, finished := finishedAs(job); finished {
		return conditions.Condition(to, metav1.ConditionFalse, "Finished", fmt.Sprintf("Job %s ended otherwise", job.Name))
	}
	return conditions.Condition(to, metav1.ConditionFalse, "Running", fmt.Sprintf("Job %s has not finished", job.Name))
}

func finishedAs(job *batchv1.Job) (batchv1.JobConditionType, bool) {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type, true
		}
	}
	return "", false
}
