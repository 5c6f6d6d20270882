// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A pod counts by its owner, not by what anybody may write into its labels.
func TestPodsOfOthers(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"no owner":                  func(p *corev1.Pod) { p.OwnerReferences = nil },
		"another kind of owner":     func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" },
		"a former StatefulSet's":    func(p *corev1.Pod) { p.OwnerReferences[0].UID = "former" },
		"another shard's name":      func(p *corev1.Pod) { p.Name = "c-1-0" },
		"a name without an ordinal": func(p *corev1.Pod) { p.Name = "c-0-x" },
		"another spelling":          func(p *corev1.Pod) { p.Name = "c-0-00" },
		"a sign":                    func(p *corev1.Pod) { p.Name = "c-0-+1" },
		"a negative ordinal":        func(p *corev1.Pod) { p.Name = "c-0--1" },
		"an ordinal out of reach":   func(p *corev1.Pod) { p.Name = "c-0-1000" },
		"an ordinal of ten digits":  func(p *corev1.Pod) { p.Name = "c-0-2000000000" },
		"another cluster's label":   func(p *corev1.Pod) { p.Labels[v1alpha1.LabelCluster] = "d" },
	} {
		o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(change))
		world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
		if s := observe(t, o); len(s.Instances) > 0 {
			t.Errorf("%s: observed as %+v", name, s.Instances[0])
		}
	}
}

// A pod of another's that keeps an instance from starting is named, unless it is about to go.
func TestPodInTheWay(t *testing.T) {
	theirs := func(p *corev1.Pod) { p.OwnerReferences = nil }
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   []snapshot.Instance
	}{
		"ours":                            {nil, nil},
		"theirs":                          {theirs, []snapshot.Instance{{Name: "c-0-0"}}},
		"another name":                    {func(p *corev1.Pod) { theirs(p); p.Name = "web" }, nil},
		"another shard that there is not": {func(p *corev1.Pod) { theirs(p); p.Name = "c-7-0" }, nil},
		"about to go": {func(p *corev1.Pod) {
			theirs(p)
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"test/wait"}
		}, nil},
	} {
		o, _, _ := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(tt.change))
		if diff := cmp.Diff(tt.want, observe(t, o).Taken); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// So does a StatefulSet: one of another's is no shard, and what runs in it no instance.
func TestStatefulSetsOfOthers(t *testing.T) {
	renamed := func(name, shard string) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) { s.Name, s.Labels[v1alpha1.LabelShard] = name, shard }
	}
	for name, change := range map[string]func(*appsv1.StatefulSet){
		"made by hand":            func(s *appsv1.StatefulSet) { s.OwnerReferences = nil },
		"a former cluster's":      func(s *appsv1.StatefulSet) { s.OwnerReferences[0].UID = "former" },
		"owned, not controlled":   func(s *appsv1.StatefulSet) { s.OwnerReferences[0].Controller = nil },
		"an index out of reach":   renamed("c-500", "500"),
		"an index of ten digits":  renamed("c-2000000000", "2000000000"),
		"more than a number":      renamed("c-9223372036854775808", "9223372036854775808"),
		"a negative index":        renamed("c--1", "-1"),
		"a sign":                  renamed("c-+1", "+1"),
		"another spelling":        renamed("c-01", "1"),
		"a pod's name":            renamed("c-0-0", "0"),
		"no index":                renamed("c-x", "x"),
		"another cluster's label": func(s *appsv1.StatefulSet) { s.Labels[v1alpha1.LabelCluster] = "d" },
	} {
		o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(change), pod(nil))
		world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
		if s := observe(t, o); len(s.Shards) > 0 || s.HasOwnedChildren || len(s.Instances) > 0 {
			t.Errorf("%s: shards %+v, instances %+v, owned: %v", name, s.Shards, s.Instances, s.HasOwnedChildren)
		}
	}
}

// What anybody may write into a StatefulSet or pod of the cluster's own does not hide it, and is
// believed only as far as the API goes.
func TestOwnStatefulSetsThatWereChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*appsv1.StatefulSet)
		replicas int32
	}{
		"as made":           {nil, 2},
		"another label":     {func(s *appsv1.StatefulSet) { s.Labels[v1alpha1.LabelShard] = "7" }, 2},
		"scaled by hand":    {func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(2000000000)) }, v1alpha1.MaxReplicas},
		"scaled to nothing": {func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(0)) }, 0},
	} {
		o, _, _ := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(tt.change),
			pod(func(p *corev1.Pod) { p.Labels[v1alpha1.LabelShard] = "7" }))
		s := observe(t, o)
		if len(s.Shards) != 1 || s.Shards[0].Index != 0 || s.Shards[0].Replicas != tt.replicas || len(s.Instances) != 1 ||
			s.Instances[0].Shard != 0 || !s.HasOwnedChildren {
			t.Errorf("%s: shards %+v, instances %+v", name, s.Shards, s.Instances)
		}
	}
}

// A claim counts by its name, which is that of an instance: a label would have the operator expand anybody's.
func TestClaimsOfOthers(t *testing.T) {
	var objects []client.Object
	for _, name := range []string{"data-c-0-0", "data-c-3-1", "data-mysql-0", "c-0-1", "data-c-0", "data-c-0-01", "data-c-500-0",
		"data-c-0-1000"} {
		objects = append(objects,
			&corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{v1alpha1.LabelCluster: "c"}}})
	}
	o, _, _ := newObserver(t, interceptor.Funcs{}, append(objects, secret("s"))...)
	c := cluster()
	c.Spec.Storage = &v1alpha1.Storage{}
	s, err := o.Observe(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, claim := range s.Claims {
		names = append(names, claim.Name)
	}
	if diff := cmp.Diff([]string{"data-c-0-0", "data-c-3-1"}, names); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}
