// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/conditions"
)

// progress is how far a child has come.
type progress int

const (
	ready progress = iota
	inProgress
	failed
)

// readiness is a child's progress and, unless it is ready, why.
type readiness struct {
	progress
	why string
}

var isReady = readiness{}

func waiting(format string, args ...any) readiness {
	return readiness{inProgress, fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) readiness {
	return readiness{failed, fmt.Sprintf(format, args...)}
}

// statusless are kinds without a status, or whose status says nothing about readiness. Of these only metadata is watched.
var statusless = []schema.GroupKind{
	{Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "ServiceAccount"}, {Kind: "LimitRange"}, {Kind: "Endpoints"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, {Group: "networking.k8s.io", Kind: "IngressClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "scheduling.k8s.io", Kind: "PriorityClass"},
}

func hasStatus(kind schema.GroupKind) bool { return !slices.Contains(statusless, kind) }

// readinessOf reports whether a child does what it is there for, by its own status. The rules of built-in kinds are those that
// `kubectl rollout status` and the kinds' documentation give; other kinds are read by the standard conditions.
func readinessOf(object *unstructured.Unstructured) readiness {
	if object == nil {
		return waiting("is not there yet")
	}
	if object.GetDeletionTimestamp() != nil {
		return waiting("is being deleted")
	}
	kind := object.GroupVersionKind().GroupKind()
	if !hasStatus(kind) {
		return isReady
	}
	if observed, found := number(object, "status", "observedGeneration"); found && observed < object.GetGeneration() {
		return waiting("has not been looked at by its controller since it changed")
	}
	if rule, ok := readinessRules[kind]; ok {
		return rule(object)
	}
	return byConditions(object)
}

var readinessRules = map[schema.GroupKind]func(*unstructured.Unstructured) readiness{
	{Group: "apps", Kind: "Deployment"}:                     deploymentReadiness,
	{Group: "apps", Kind: "StatefulSet"}:                    statefulSetReadiness,
	{Group: "apps", Kind: "DaemonSet"}:                      daemonSetReadiness,
	{Group: "batch", Kind: "Job"}:                           jobReadiness,
	{Group: "batch", Kind: "CronJob"}:                       always,
	{Group: "networking.k8s.io", Kind: "Ingress"}:           always, // not every ingress controller reports an address
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: routeReadiness,
	{Kind: "Service"}:                                       serviceReadiness,
	{Kind: "PersistentVolumeClaim"}:                         claimReadiness,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          always, // its conditions say what may be disrupted, not whether it works
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: autoscalerReadiness,
}

func always(*unstructured.Unstructured) readiness { return isReady }

func deploymentReadiness(o *unstructured.Unstructured) readiness {
	want := numberOr(o, 1, "spec", "replicas")
	if c := condition(o, "Progressing"); c != nil && c.Reason == "ProgressDeadlineExceeded" {
		return broken("does not come up: %s", c.Message)
	}
	if c := condition(o, "ReplicaFailure"); c != nil && c.Status == metav1.ConditionTrue {
		return broken("cannot make pods: %s", c.Message)
	}
	if _, found := number(o, "status", "observedGeneration"); !found {
		return waiting("is new")
	}
	updated, total, available := numberOr(o, 0, "status", "updatedReplicas"), numberOr(o, 0, "status", "replicas"),
		numberOr(o, 0, "status", "availableReplicas")
	switch {
	case updated < want:
		return waiting("%d of %d pods are of the current version", updated, want)
	case total > updated:
		return waiting("%d pods of a former version still run", total-updated)
	case available < want:
		return waiting("%d of %d pods are available", available, want)
	}
	return isReady
}

func statefulSetReadiness(o *unstructured.Unstructured) readiness {
	want, have := numberOr(o, 1, "spec", "replicas"), numberOr(o, 0, "status", "readyReplicas")
	if have < want {
		return waiting("%d of %d pods are ready", have, want)
	}
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	partition := numberOr(o, 0, "spec", "updateStrategy", "rollingUpdate", "partition")
	updated := numberOr(o, 0, "status", "updatedReplicas")
	if strategy != "OnDelete" && updated < want-partition {
		return waiting("%d of %d pods are of the current version", updated, want-partition)
	}
	return isReady
}

func daemonSetReadiness(o *unstructured.Unstructured) readiness {
	want, found := number(o, "status", "desiredNumberScheduled")
	if !found {
		return waiting("is new")
	}
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	if updated := numberOr(o, 0, "status", "updatedNumberScheduled"); strategy != "OnDelete" && updated < want {
		return waiting("%d of %d pods are of the current version", updated, want)
	}
	if available := numberOr(o, 0, "status", "numberAvailable"); available < want {
		return waiting("%d of %d pods are available", available, want)
	}
	return isReady
}

func jobReadiness(o *unstructured.Unstructured) readiness {
	if c := condition(o, "Failed"); c != nil && c.Status == metav1.ConditionTrue {
		return broken("failed: %s", c.Message)
	}
	if c := condition(o, "Complete"); c != nil && c.Status == metav1.ConditionTrue {
		return isReady
	}
	if c := condition(o, "Suspended"); c != nil && c.Status == metav1.ConditionTrue {
		return waiting("is suspended")
	}
	return waiting("is running, %d of %d pods succeeded", numberOr(o, 0, "status", "succeeded"), numberOr(o, 1, "spec", "completions"))
}

func serviceReadiness(o *unstructured.Unstructured) readiness {
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
	addresses, _, _ := unstructured.NestedSlice(o.Object, "status", "loadBalancer", "ingress")
	if kind == "LoadBalancer" && len(addresses) == 0 {
		return waiting("has no load balancer address")
	}
	return isReady
}

func claimReadiness(o *unstructured.Unstructured) readiness {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	switch phase {
	case "Bound":
		return isReady
	case "Lost":
		return broken("has lost its volume")
	default:
		return waiting("is not bound to a volume")
	}
}

// autoscalerReadiness looks at AbleToScale only: without metrics (ScalingActive) the workload keeps its size and serves.
func autoscalerReadiness(o *unstructured.Unstructured) readiness {
	if c := condition(o, "AbleToScale"); c != nil && c.Status == metav1.ConditionFalse {
		return waiting("cannot scale: %s", c.Message)
	}
	return isReady
}

// byConditions reads the conditions of the Kubernetes API conventions. An object without them is ready.
func byConditions(o *unstructured.Unstructured) readiness {
	for _, bad := range []string{"Stalled", "Failed"} {
		if c := condition(o, bad); c != nil && c.Status == metav1.ConditionTrue {
			return broken("%s: %s", c.Reason, c.Message)
		}
	}
	for _, good := range []string{"Ready", "Available"} {
		if c := condition(o, good); c != nil {
			if c.Status != metav1.ConditionTrue {
				return waiting("%s is %s: %s %s", good, c.Status, c.Reason, c.Message)
			}
			return isReady
		}
	}
	return isReady
}

func condition(o *unstructured.Unstructured, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(conditions.Read(o), conditionType)
}

func number(o *unstructured.Unstructured, path ...string) (int64, bool) {
	n, found, _ := unstructured.NestedInt64(o.Object, path...) // what is no number is not found
	return n, found
}

func numberOr(o *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, found := number(o, path...); found {
		return n
	}
	return otherwise
}
