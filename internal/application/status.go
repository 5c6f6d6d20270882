// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/pause"
)

// verdict is what the conditions say: at most one of stalled and progressing.
type verdict struct {
	ready, progressing, stalled bool
	reason, message             string
}

// ComputeStatus says what the next status is. It is pure.
//
// The count grows with a reconciliation that did something, or that saw something else than
// the last one that was counted. A status write is neither, so an idle Application
// keeps its count, and so does a restart of the operator.
func ComputeStatus(s *Snapshot, step Step, d done, now time.Time) applicationv1.ApplicationStatus {
	status := *s.Status.DeepCopy()
	status.ObservedGeneration = s.Generation
	if seen := s.digest(); seen != status.Observed || len(d.changes.Changed()) > 0 {
		status.Count++
		status.Observed = seen
	}
	status.ReadyReplicas = 0
	if s.Deployment != nil {
		status.ReadyReplicas = s.Deployment.Status.ReadyReplicas
	}
	v := judge(s, step, d)
	reasonIf := func(holds bool) string {
		if holds {
			return v.reason
		}
		return applicationv1.ReasonSettled
	}
	messageIf := func(holds bool) string {
		if holds {
			return v.message
		}
		return ""
	}
	_, paused := step.(Pause)
	why := pause.ReasonNotPaused
	if paused {
		why = pause.ReasonPaused
	}
	status.Conditions = conditions.Set(status.Conditions, now, s.Generation,
		conditions.Condition(applicationv1.ConditionReady, conditions.Status(v.ready), v.reason, v.message),
		conditions.Condition(applicationv1.ConditionProgressing, conditions.Status(v.progressing), reasonIf(v.progressing),
			messageIf(v.progressing)),
		conditions.Condition(applicationv1.ConditionStalled, conditions.Status(v.stalled), reasonIf(v.stalled), messageIf(v.stalled)),
		conditions.Condition(applicationv1.ConditionPaused, conditions.Status(paused), why, s.PauseMessage),
	)
	return status
}

func judge(s *Snapshot, step Step, d done) verdict {
	if d.refusal != nil {
		reason := applicationv1.ReasonApplyFailed
		var foreign *apply.NotOursError
		if errors.As(d.refusal, &foreign) {
			reason = applicationv1.ReasonConflict
		}
		retried := d.outcome.Kind() == outcome.KindRetry || outcome.NamespaceGoing(d.refusal)
		return verdict{progressing: retried, stalled: !retried, reason: reason, message: d.refusal.Error()}
	}
	switch step := step.(type) {
	case Leave:
		return verdict{progressing: true, reason: applicationv1.ReasonDeleting, message: "the Deployment is removed with the Application"}
	case Pause:
		if s.Deployment == nil {
			return verdict{reason: pause.ReasonPaused, message: "there is no Deployment, and the pause keeps it from being made"}
		}
		return rollout(s)
	case Refuse:
		return verdict{stalled: true, reason: applicationv1.ReasonInvalid, message: step.Message}
	case Yield:
		return verdict{stalled: true, reason: applicationv1.ReasonConflict, message: step.Message}
	case AwaitDeletion:
		return verdict{progressing: true, reason: applicationv1.ReasonRollingOut,
			message: "the Deployment is being deleted; it will be made again"}
	case Make, Restore:
		if len(d.changes.Changed()) == 0 {
			// The first reconciliation after a restart applies what it does not remember having applied, and changes nothing. No event
			// follows of it, so this reconciliation says how the Deployment does.
			return rollout(s)
		}
		return verdict{progressing: true, reason: applicationv1.ReasonRollingOut, message: d.changes.String()}
	case Keep:
		return rollout(s)
	}
	return verdict{progressing: true, reason: applicationv1.ReasonRollingOut}
}

// rollout reads a Deployment's status as "kubectl rollout status" does.
func rollout(s *Snapshot) verdict {
	d := s.Deployment
	if d == nil {
		return verdict{progressing: true, reason: applicationv1.ReasonRollingOut, message: "the Deployment was made and is not seen yet"}
	}
	if s.Behind {
		return verdict{progressing: true, reason: applicationv1.ReasonRollingOut, message: "the Deployment is not seen yet as it was applied"}
	}
	progressing := func(format string, args ...any) verdict {
		return verdict{progressing: true, reason: applicationv1.ReasonRollingOut, message: fmt.Sprintf(format, args...)}
	}
	if d.Status.ObservedGeneration < d.Generation {
		return progressing("Deployment %s: its controller has not seen the latest change", d.Name)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return verdict{stalled: true, reason: applicationv1.ReasonDeploymentFailed, message: fmt.Sprintf("Deployment %s: %s", d.Name, c.Message)}
		}
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return progressing("Deployment %s: %s", d.Name, c.Message)
		}
	}
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	if d.Status.UpdatedReplicas < wanted || d.Status.Replicas > d.Status.UpdatedReplicas ||
		d.Status.AvailableReplicas < d.Status.UpdatedReplicas {
		return progressing("Deployment %s: %d of %d pods are new, %d are available, %d exist",
			d.Name, d.Status.UpdatedReplicas, wanted, d.Status.AvailableReplicas, d.Status.Replicas)
	}
	return verdict{ready: true, reason: applicationv1.ReasonAvailable,
		message: fmt.Sprintf("Deployment %s: %d of %d pods are available", d.Name, d.Status.AvailableReplicas, wanted)}
}

// statusDiffers reports whether a status has to be written.
func statusDiffers(a, b *applicationv1.ApplicationStatus) bool {
	return a.ObservedGeneration != b.ObservedGeneration || a.Count != b.Count || a.Observed != b.Observed ||
		a.ReadyReplicas != b.ReadyReplicas || conditions.Differ(a.Conditions, b.Conditions)
}

// readyCondition is the Ready condition of a status, the zero value if there is none.
func readyCondition(status *applicationv1.ApplicationStatus) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(status.Conditions, applicationv1.ConditionReady), metav1.Condition{})
}
