// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/outcome"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// deployment is one that its controller has rolled out, changed by change.
func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", Generation: 3}}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	if change != nil {
		change(d)
	}
	return d
}

func TestPlan(t *testing.T) {
	gone := deployment(func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })
	invalid := field.ErrorList{field.Required(field.NewPath("spec", "selector"), "name some"), field.Forbidden(field.NewPath("x"), "no")}
	tests := []struct {
		name string
		seen Snapshot
		want Step
	}{
		{"nothing there", Snapshot{Differs: true}, Make{}},
		{"made a moment ago, not seen yet", Snapshot{}, Keep{}},
		{"as the template says", Snapshot{Deployment: deployment(nil)}, Keep{}},
		{"edited by someone", Snapshot{Deployment: deployment(nil), Differs: true}, Restore{}},
		{"being deleted", Snapshot{Deployment: gone, Differs: true}, AwaitDeletion{}},
		{"someone else's", Snapshot{Differs: true, Foreign: "Deployment x"}, Yield{"Deployment x"}},
		{"wrong", Snapshot{Refused: invalid}, Refuse{"spec.selector: Required value: name some; x: Forbidden: no"}},
		{"paused, and edited by someone", Snapshot{Paused: true, Deployment: deployment(nil), Differs: true}, Pause{}},
		{"paused, and wrong", Snapshot{Paused: true, Refused: invalid}, Pause{}},
		{"paused, and being deleted", Snapshot{Paused: true, Deleting: true}, Leave{}},
		{"being deleted itself, and wrong", Snapshot{Deleting: true, Refused: invalid, Differs: true}, Leave{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Plan(&tt.seen)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// namespaceGoes is what the API server answers to whoever makes something in a namespace that is being deleted.
func namespaceGoes() error {
	err := apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return fmt.Errorf("apply: %w", err)
}

// Whoever deleted the namespace is not warned, and nobody is asked to change anything.
func TestNamespaceThatGoesIsNoWarning(t *testing.T) {
	seen := Snapshot{Differs: true}
	d := done{refusal: namespaceGoes(), outcome: outcome.Retry(namespaceGoes())}
	status := ComputeStatus(&seen, Plan(&seen), d, now)
	if stalled := meta.FindStatusCondition(status.Conditions, applicationv1.ConditionStalled); stalled.Status != metav1.ConditionFalse {
		t.Errorf("Stalled is %+v", stalled)
	}
	if told := eventsOf(&seen, Plan(&seen), d, &status); len(told) > 0 {
		t.Errorf("told are %+v", told)
	}
}

func TestConditions(t *testing.T) {
	made := done{
		changes: apply.ChangeSet{{Ref: apply.Ref{GroupVersionKind: deploymentKind, Namespace: "n", Name: "web"}, Action: apply.Created}}}
	same := done{changes: apply.ChangeSet{{Ref: made.changes[0].Ref, Action: apply.Unchanged}}}
	tests := []struct {
		name string
		seen Snapshot
		done done
		want string // Ready, Progressing, Stalled: reason: message
	}{
		{"made", Snapshot{Differs: true}, made, "False True False RollingOut: created Deployment n/web"},
		{"applied again after a restart of the operator", Snapshot{Deployment: deployment(nil), Differs: true}, same,
			"True False False Available: Deployment web: 2 of 2 pods are available"},
		{"not seen yet", Snapshot{}, done{}, "False True False RollingOut: the Deployment was made and is not seen yet"},
		{"changed, and seen as it was", Snapshot{Deployment: deployment(nil), Behind: true}, done{},
			"False True False RollingOut: the Deployment is not seen yet as it was applied"},
		{"available", Snapshot{Deployment: deployment(nil)}, done{}, "True False False Available: Deployment web: 2 of 2 pods are available"},
		{"scaled to nothing", Snapshot{Deployment: deployment(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{ObservedGeneration: 3}
		})}, done{}, "True False False Available: Deployment web: 0 of 0 pods are available"},
		{"one pod down", Snapshot{Deployment: deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 })}, done{},
			"False True False RollingOut: Deployment web: 2 of 2 pods are new, 1 are available, 2 exist"},
		{"old pods left", Snapshot{Deployment: deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 3 })}, done{},
			"False True False RollingOut: Deployment web: 2 of 2 pods are new, 2 are available, 3 exist"},
		{"not observed", Snapshot{Deployment: deployment(func(d *appsv1.Deployment) { d.Generation = 4 })}, done{},
			"False True False RollingOut: Deployment web: its controller has not seen the latest change"},
		{"gave up", Snapshot{Deployment: deployment(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded", Message: "timed out"}}
		})}, done{}, "False False True DeploymentFailed: Deployment web: timed out"},
		{"paused", Snapshot{Paused: true, Deployment: deployment(nil)}, done{},
			"True False False Available: Deployment web: 2 of 2 pods are available"},
		{"paused from the start", Snapshot{Paused: true}, done{},
			"False False False PauseReconcileAnnotationTrue: there is no Deployment, and the pause keeps it from being made"},
		{"conflict", Snapshot{Foreign: "Deployment x is in the way"}, done{}, "False False True Conflict: Deployment x is in the way"},
		{"taken name", Snapshot{Differs: true}, done{refusal: &apply.NotOursError{Ref: apply.Ref{GroupVersionKind: deploymentKind, Name: "web"}},
			outcome: outcome.Wait("", time.Minute)},
			"False False True Conflict: Deployment web exists and was not made by this operator: it is left as it is; choose another name, or delete it first"},
		{"API server is away", Snapshot{Differs: true},
			done{refusal: errors.New("connection refused"), outcome: outcome.Retry(errors.New("connection refused"))},
			"False True False ApplyFailed: connection refused"},
		{"refused by the API server", Snapshot{Differs: true}, done{refusal: errors.New("invalid"), outcome: outcome.Stalled("invalid")},
			"False False True ApplyFailed: invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status := ComputeStatus(&tt.seen, Plan(&tt.seen), tt.done, now)
			got := ""
			for _, c := range status.Conditions[:3] {
				got += string(c.Status) + " "
			}
			if paused := status.Conditions[3]; (paused.Status == metav1.ConditionTrue) != tt.seen.Paused {
				t.Errorf("%s is %s", paused.Type, paused.Status)
			}
			got += status.Conditions[0].Reason + ": " + status.Conditions[0].Message
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCountConverges plays the life of an Application: the count grows with what
// there is to look at, and a repeated reconciliation finds nothing to count or to write.
func TestCountConverges(t *testing.T) {
	changed := func(action apply.Action) done { return done{changes: apply.ChangeSet{{Action: action}}} }
	starting := deployment(func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0 })
	edited := deployment(func(d *appsv1.Deployment) { d.Generation = 4 })
	restored := deployment(func(d *appsv1.Deployment) { d.Generation, d.Status.ObservedGeneration = 5, 5 })
	passes := []struct {
		name  string
		seen  Snapshot
		done  done
		count int64
	}{
		{"made", Snapshot{Generation: 1, Differs: true}, changed(apply.Created), 1},
		{"seen", Snapshot{Generation: 1, Deployment: starting}, done{}, 2},
		{"ready", Snapshot{Generation: 1, Deployment: deployment(nil)}, done{}, 3},
		{"operator restarts, applies and changes nothing", Snapshot{Generation: 1, Deployment: deployment(nil), Differs: true},
			changed(apply.Unchanged), 3},
		{"a label is edited", Snapshot{Generation: 1, Deployment: deployment(nil), Differs: true}, changed(apply.Configured), 4},
		{"the spec is edited", Snapshot{Generation: 1, Deployment: edited, Differs: true}, changed(apply.Configured), 5},
		{"restored", Snapshot{Generation: 1, Deployment: restored}, done{}, 6},
		{"a new template", Snapshot{Generation: 2, Deployment: restored, Differs: true}, changed(apply.Configured), 7},
	}
	var status applicationv1.ApplicationStatus
	for i, pass := range passes {
		pass.seen.Status = status
		status = ComputeStatus(&pass.seen, Plan(&pass.seen), pass.done, now.Add(time.Duration(i)*time.Hour))
		if status.Count != pass.count {
			t.Fatalf("%s: count is %d, want %d", pass.name, status.Count, pass.count)
		}
	}
	// The last reconciliation's write wakes nobody; were it repeated all the same, it would settle.
	settled := Snapshot{Generation: 2, Deployment: restored, Status: status}
	first := ComputeStatus(&settled, Plan(&settled), done{}, now)
	settled.Status = first
	if second := ComputeStatus(&settled, Plan(&settled), done{}, now.Add(time.Hour)); statusDiffers(&first, &second) {
		t.Errorf("an idle Application is written again:\n%s", cmp.Diff(first, second))
	}
}

func TestDesired(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	tests := []struct{ name, application, want string }{
		{"what the template leaves to the Application", `
metadata: {name: a, namespace: ns}
spec:
  selector: {matchLabels: {app: a}}
  template: {spec: {template: {metadata: {labels: {app: a, x: z}}, spec: {containers: [{name: c, image: i}]}}}}`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: ns, labels: {app: a, x: z}}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a, x: z}}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: i}]}}`},
		{"what the template says, zero values included", `
metadata: {name: a, namespace: ns}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {name: own, labels: {app: a}, annotations: {k: v}}
    spec:
      paused: false
      replicas: 0
      selector: {matchLabels: {tier: t}}
      template: {metadata: {labels: {tier: t}}, spec: {hostNetwork: false, containers: [{name: c, image: i}]}}`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: own, namespace: ns, labels: {app: a}, annotations: {k: v}}
spec:
  paused: false
  replicas: 0
  selector: {matchLabels: {tier: t}}
  template:
    metadata: {labels: {tier: t}}
    spec: {automountServiceAccountToken: false, hostNetwork: false, containers: [{name: c, image: i}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			application := object(tt.application)
			before := application.DeepCopy()
			if diff := cmp.Diff(object(tt.want).Object, desired(application).Object); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Object, application.Object); diff != "" {
				t.Errorf("the cached object was changed:\n%s", diff)
			}
		})
	}
}
