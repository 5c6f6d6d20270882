// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"middleware.hc.cn/operator/internal/pods"
)

const (
	// Pods of a child that is not ready are looked at after the first time, then after twice as long each, up to the second: its
	// own status tells of most changes, by an event.
	diagnoseFirst, diagnoseMost = 3 * time.Second, 5 * time.Minute
	// diagnosePods is how many pods are looked at; what keeps one from running keeps most.
	diagnosePods = 20
)

// diagnose finds out why children that run pods are not ready, which their own status does not tell: an image that cannot be
// pulled, a container that crashes, no node that fits, a quota. It asks the API server at growing intervals, only as long as
// such a child is not ready, and only once its controller has looked at it.
func (r *Reconciler) diagnose(ctx context.Context, cr *unstructured.Unstructured, done *effect) {
	if cr.GetDeletionTimestamp() != nil {
		return
	}
	is, now := r.memory.Get(cr.GetUID()), r.options.Now()
	var waiting []int
	for i, child := range done.children {
		if child.Object != nil && !child.Behind && runsPods(child.Object) && readinessOf(child.Object).progress != ready {
			waiting = append(waiting, i)
		}
	}
	if len(waiting) == 0 {
		if is.backoff > 0 {
			r.memory.Update(cr.GetUID(), func(m *memory) { m.backoff, m.why = 0, nil })
		}
		return
	}
	if due := is.diagnosed.Add(is.backoff); is.backoff > 0 && now.Before(due) {
		for _, i := range waiting {
			done.children[i].Why = is.why[done.children[i].Object.GetUID()]
		}
		done.lookAgain(due.Sub(now))
		return
	}
	next := memory{diagnosed: now, backoff: min(max(2*is.backoff, diagnoseFirst), diagnoseMost), why: map[types.UID]string{}}
	if is.backoff > 0 || !r.isNew(done) { // what was just applied gets its time
		for _, i := range waiting {
			child := &done.children[i]
			why, err := r.whyNotReady(ctx, child.Object)
			if err != nil {
				log.FromContext(ctx).V(1).Info("Cannot look at the pods of a child that is not ready", "child", child.String(), "error", err.Error())
				continue
			}
			child.Why, next.why[child.Object.GetUID()] = why, why
		}
	}
	r.memory.Update(cr.GetUID(), func(m *memory) { m.diagnosed, m.backoff, m.why = next.diagnosed, next.backoff, next.why })
	done.lookAgain(next.backoff)
}

func (r *Reconciler) isNew(done *effect) bool { return len(done.changes.Changed()) > 0 }

// lookAgain makes the reconciliation be repeated after d at the latest.
func (e *effect) lookAgain(d time.Duration) {
	if e.again == 0 || d < e.again {
		e.again = d
	}
}

// RunsPods reports whether the objects of a kind are workloads whose pods are looked at.
func RunsPods(kind schema.GroupKind) bool {
	return slices.Contains([]string{"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch"}, kind.String())
}

// runsPods reports whether the object is a workload that its controller has looked at.
func runsPods(object *unstructured.Unstructured) bool {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	return len(status) > 0 && RunsPods(object.GroupVersionKind().GroupKind())
}

// whyNotReady says what keeps pods of a workload from running: the first cause its pods show, else the last warning about a pod
// that is not ready, or about the workload itself if it has none (a StatefulSet or a Job that may not make pods says so in
// Events only).
func (r *Reconciler) whyNotReady(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	raw, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	var parsed metav1.LabelSelector
	if err := fromUnstructured(raw, &parsed); err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil || selector.Empty() {
		return "", err
	}
	list := &corev1.PodList{}
	err = r.live.List(ctx, list, client.InNamespace(object.GetNamespace()), client.MatchingLabelsSelector{Selector: selector},
		client.Limit(diagnosePods))
	if err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		if why := pods.Why(&list.Items[i]); why != "" && why != pods.Starting {
			return fmt.Sprintf("pod %s: %s", list.Items[i].Name, why), nil
		}
	}
	for i := range list.Items { // those that run and do not answer their probe say so in Events too
		if pod := &list.Items[i]; pod.Status.Phase == corev1.PodRunning && !pods.Ready(pod) {
			why, err := r.lastWarning(ctx, pod)
			if why != "" {
				why = "pod " + pod.Name + ": " + why
			}
			return why, err
		}
	}
	if len(list.Items) > 0 {
		return "", nil
	}
	return r.lastWarning(ctx, object)
}

func (r *Reconciler) lastWarning(ctx context.Context, object client.Object) (string, error) {
	list := &corev1.EventList{}
	about := client.MatchingFields{"involvedObject.uid": string(object.GetUID()), "type": corev1.EventTypeWarning}
	if err := r.live.List(ctx, list, client.InNamespace(object.GetNamespace()), about); err != nil {
		return "", fmt.Errorf("list events: %w", err)
	}
	var last *corev1.Event
	for i := range list.Items {
		if event := &list.Items[i]; last == nil || eventTime(last).Before(eventTime(event)) {
			last = event
		}
	}
	if last == nil {
		return "", nil
	}
	return strings.TrimSpace(last.Reason + ": " + last.Message), nil
}

func eventTime(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
