// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"middleware.hc.cn/operator/test/standin"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A kubelet that is faithful does what takes more requests and what few tests ask for. Pods bear the revision of their template, and
// may be evicted. Instances have claims, which go as their retention policy says, with the data. A pod that asks for a node that there
// is not, or for an image that is nowhere, does not run. Servers are of the engine and version that their image says.

// namedEngine is an image of an engine, by its name and tag.
var namedEngine = regexp.MustCompile(`(?:^|/)(redis|valkey):([0-9]+\.[0-9]+(?:\.[0-9]+)?)$`)

// engine is what the image of a pod holds.
func (k *kubelet) engine(pod *corev1.Pod) (valkey bool, version string) {
	found := namedEngine.FindStringSubmatch(pod.Spec.Containers[0].Image)
	if !k.faithful || found == nil {
		return false, k.version
	}
	return found[1] == "valkey", found[2]
}

// revision is that of the template of a StatefulSet.
func (k *kubelet) revision(set *appsv1.StatefulSet) string {
	if !k.faithful {
		return "1"
	}
	text, err := json.Marshal(set.Spec.Template)
	check(k.t, err)
	sum := sha256.Sum256(bytes.ReplaceAll(text, []byte(k.namespace), nil)) // two of the same template have the same
	return hex.EncodeToString(sum[:5])
}

// makePod makes a pod of a StatefulSet, and its claim before.
func (k *kubelet) makePod(ctx context.Context, set *appsv1.StatefulSet, name string, ordinal int) error {
	pod := standin.NewPod(set, name, ordinal, k.revision(set))
	if !k.faithful {
		return api.Create(ctx, pod)
	}
	for i := range set.Spec.VolumeClaimTemplates {
		if err := k.claim(ctx, set, &set.Spec.VolumeClaimTemplates[i], name); apierrors.IsForbidden(err) {
			return nil // a controller tries again, too
		} else if err != nil {
			return err
		}
	}
	if unschedulable(&pod.Spec) {
		pod.Spec.NodeName = ""
	}
	if err := api.Create(ctx, pod); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return err
	}
	return nil
}

// claim makes the claim of a pod, bound, unless it exists.
func (k *kubelet) claim(ctx context.Context, set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, pod string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: template.Name + "-" + pod,
		Labels: maps.Clone(template.Labels)}, Spec: *template.Spec.DeepCopy()}
	maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	claim.Spec.VolumeName = "pv-" + pod
	if err := api.Create(ctx, claim); apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return err
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes,
		Capacity: claim.Spec.Resources.Requests}
	return api.Status().Update(ctx, claim)
}

// tend does what the controllers of claims and of disruption budgets do, and lets pods go whose StatefulSet is gone.
func (k *kubelet) tend(ctx context.Context, pods []corev1.Pod) error {
	if !k.faithful {
		return nil
	}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			continue
		}
		if err := api.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := api.List(ctx, &claims, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if _, runs := k.running[strings.TrimPrefix(claim.Name, "data-")]; claim.DeletionTimestamp != nil && !runs {
			if err := k.unprotect(ctx, claim); err != nil {
				return err
			}
			continue
		}
		if claim.DeletionTimestamp != nil || claim.Spec.Resources.Requests.Storage().Equal(*claim.Status.Capacity.Storage()) {
			continue
		}
		claim.Status.Capacity = claim.Spec.Resources.Requests
		if err := api.Status().Update(ctx, claim); err != nil {
			return err
		}
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := api.List(ctx, &budgets, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	for i := range budgets.Items {
		budget := &budgets.Items[i]
		if budget.Status.ObservedGeneration == budget.Generation && budget.Status.DisruptionsAllowed == 1 {
			continue
		}
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: 1}
		if err := api.Status().Update(ctx, budget); err != nil {
			return err
		}
	}
	return nil
}

// release deletes the claim of a pod that is not wanted any more, and its data with it, if the policy says so.
func (k *kubelet) release(ctx context.Context, pod string, policy appsv1.PersistentVolumeClaimRetentionPolicyType) error {
	if !k.faithful || policy != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return nil
	}
	k.emptied[pod] = true
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "data-" + pod}}
	if err := api.Delete(ctx, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	return k.unprotect(ctx, claim)
}

// unprotect lets a claim go that no pod uses any more (kubernetes.io/pvc-protection).
func (k *kubelet) unprotect(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	return client.IgnoreNotFound(api.Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

// retention is the policy about the claims of a StatefulSet.
func retention(set *appsv1.StatefulSet) appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return ptr.Deref(set.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
}

// unfit shows what keeps a pod from running; false when nothing does.
func (k *kubelet) unfit(ctx context.Context, pod *corev1.Pod) (bool, error) {
	status := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
		Status: corev1.ConditionFalse}}}
	image := pod.Spec.Containers[0].Image
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	switch {
	case !k.faithful:
		return false, nil
	case pod.Spec.NodeName == "":
		scheduled.Status, scheduled.Reason = corev1.ConditionFalse, corev1.PodReasonUnschedulable
		scheduled.Message = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, or have insufficient memory."
	case strings.HasPrefix(image, "nowhere."):
		status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Image: image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
				Message: "pulling " + image + " failed"}}}}
	default:
		return false, nil
	}
	status.Conditions = append(status.Conditions, scheduled)
	k.crashed[pod.UID] = true
	pod.Status = status
	return true, api.Status().Update(ctx, pod)
}

// unschedulable reports whether a pod asks for what none of the nodes has: they have no labels, 64 GiB and 16 processors.
func unschedulable(spec *corev1.PodSpec) bool {
	needs := func(name corev1.ResourceName, most string) bool {
		return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
			return ptr.To(c.Resources.Requests[name]).Cmp(resource.MustParse(most)) > 0
		})
	}
	if len(spec.NodeSelector) > 0 || needs(corev1.ResourceMemory, "64Gi") || needs(corev1.ResourceCPU, "16") {
		return true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return false
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required != nil && !slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist
		})
	})
}

// startFaithfulKubelet runs a faithful stand-in until the test ends.
func startFaithfulKubelet(t *testing.T, namespace, version string) *kubelet {
	t.Helper()
	return runKubelet(t, namespace, func(k *kubelet) { k.faithful, k.version = true, version })
}
