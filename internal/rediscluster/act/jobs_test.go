// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// The pods of Jobs decide on which nodes the volumes are: they keep apart from each other as masters do, and not from their own shard.
func TestJobsSpreadAsMasters(t *testing.T) {
	of := []corev1.TopologySpreadConstraint{
		{TopologyKey: "node", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelShard: "0"}}},
		{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelCluster: "c"}},
			MatchLabelKeys: []string{"pod-template-hash"}},
		{TopologyKey: "rack"},
	}
	got := spread(of, map[string]string{"a": "b"})
	if len(got) != 2 || got[0].TopologyKey != "zone" || got[1].TopologyKey != "rack" {
		t.Fatalf("%+v", got)
	}
	for _, c := range got {
		if c.LabelSelector == nil || c.LabelSelector.MatchLabels["a"] != "b" || len(c.LabelSelector.MatchLabels) != 1 || c.MatchLabelKeys != nil {
			t.Errorf("%+v", c)
		}
	}
}

// The relay runs for as long as the import takes: its pod is made anew, also while one on a lost node ends, and takes connections when it
// is ready. Jobs are in the operator's cache.
func TestRelayJobRunsOn(t *testing.T) {
	cluster := beginning(t, unhurt, "redis:6379").subject.Cluster
	job := relayJob(cluster, &appsv1.StatefulSet{}, snapshot.ImportFrom{}, plan.Relay{}, "image")
	c := backupjob.Of(job.Spec.Template.Spec)
	if *job.Spec.BackoffLimit != math.MaxInt32 || *job.Spec.PodReplacementPolicy != batchv1.TerminatingOrFailed ||
		job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		t.Errorf("%+v", job.Spec)
	}
	if len(c.Ports) != 1 || c.Ports[0].ContainerPort != v1alpha1.PortRedis || c.ReadinessProbe == nil {
		t.Errorf("%+v", c)
	}
	if job.Labels[apply.ManagedByLabel] != apply.ManagedByValue || job.Labels[v1alpha1.LabelCluster] != "c" {
		t.Errorf("%v", job.Labels)
	}
}

// A budget that does not allow a restart now is named; a claim that the API server finds invalid takes somebody.
func TestRefusalsThatPeopleUnderstand(t *testing.T) {
	b := newBench(t, interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object,
		...client.SubResourceCreateOption) error {
		return apierrors.NewTooManyRequests("no", 1)
	}})
	err := b.do(plan.Restart{Pod: "c-0-0", UID: "pod"})
	if err == nil || !strings.Contains(err.Error(), "a PodDisruptionBudget does not allow it now") {
		t.Errorf("a restart: %v", err)
	}
	b = newBench(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch,
		...client.PatchOption) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "data-c-0-0", nil)
	}}, claim("data-c-0-0"))
	var stall *StallError
	if err := b.do(plan.ExpandPVCs{Claims: []string{"data-c-0-0"}, Bytes: 2 << 30}); !errors.As(err, &stall) || stall.Cause != "CannotExpand" {
		t.Errorf("a claim: %v", err)
	}
}

// Children of others that bear the cluster's label keep their owner when its own are let go. So does what archives: nobody would end it.
func TestOrphansOfOthersStayTheirs(t *testing.T) {
	theirs := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-7",
		Labels: map[string]string{v1alpha1.LabelCluster: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a", Controller: new(true)},
			{APIVersion: "v1", Kind: "RedisCluster", Name: "c", UID: "uid"}}}}
	archive := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-archive",
		Labels: map[string]string{v1alpha1.LabelCluster: "c"}, OwnerReferences: []metav1.OwnerReference{*ours}}}
	b := newBench(t, interceptor.Funcs{}, theirs, archive)
	b.must(plan.OrphanChildren{})
	if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || len(theirs.OwnerReferences) != 2 {
		t.Errorf("%v: %v", theirs.OwnerReferences, err)
	}
	if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(archive), archive); err != nil || len(archive.OwnerReferences) != 1 {
		t.Errorf("what archives: %v: %v", archive.OwnerReferences, err)
	}
}
