// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func ownedBy(apiVersion, kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// deploymentOf is a Deployment of the cluster with the UID uid, and its ReplicaSet, which has the UID rs.
func deploymentOf(name string) []client.Object {
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "d",
			OwnerReferences: ownedBy("redis.middleware.hc.cn/v1alpha1", "RedisCluster", "c", "uid")}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name + "-5d4", UID: "rs",
			OwnerReferences: ownedBy("apps/v1", "Deployment", name, "d")}},
	}
}

// A pod counts by the UIDs from its ReplicaSet to the RedisCluster: names are anybody's to take.
func TestWhoIsDeployed(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment, *appsv1.ReplicaSet)) []client.Object {
		objects := deploymentOf("c-gateway")
		change(objects[0].(*appsv1.Deployment), objects[1].(*appsv1.ReplicaSet))
		return objects
	}
	set := func(change func(*appsv1.ReplicaSet)) []client.Object {
		return deployment(func(_ *appsv1.Deployment, rs *appsv1.ReplicaSet) { change(rs) })
	}
	for name, tt := range map[string]struct {
		objects []client.Object
		broken  bool
		want    bool
	}{
		"of the cluster's Deployment": {deploymentOf("c-gateway"), false, true},
		"of another's Deployment": {deployment(func(d *appsv1.Deployment, _ *appsv1.ReplicaSet) {
			d.OwnerReferences[0].UID = "other"
		}), false, false},
		"of nobody's Deployment": {deployment(func(d *appsv1.Deployment, _ *appsv1.ReplicaSet) {
			d.OwnerReferences = nil
		}), false, false},
		"of another Deployment of that name": {set(func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].UID = "before" }), false, false},
		"of another ReplicaSet of that name": {set(func(rs *appsv1.ReplicaSet) { rs.UID = "other" }), false, false},
		"of a stranger's ReplicaSet":         {set(func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }), false, false},
		"of one that is not controlled":      {set(func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].Controller = nil }), false, false},
		"of none":                            {deploymentOf("c-gateway")[:1], false, false},
		"there is none at all":               {nil, false, false},
		"it cannot be read":                  {deploymentOf("c-gateway"), true, true},
	} {
		kube := fake.NewClientBuilder().WithObjects(tt.objects...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
				if tt.broken {
					return errors.New("the API server is away")
				}
				return c.Get(ctx, key, into, opts...)
			}}).Build()
		o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return now }}
		var seen replicaSets
		ours, all := o.deployed(t.Context(), outsideCluster(), "c-gateway", []corev1.Pod{*gatewayPod("g", nil)}, &seen)
		if !all || (len(ours) == 1) != tt.want {
			t.Errorf("%s: %d count, all %t, want %t", name, len(ours), all, tt.want)
		}
	}
}

// What is known of a ReplicaSet is not read again, and strangers' cost a few reads at a time, however many there are.
func TestReplicaSetsAreReadOnce(t *testing.T) {
	reads, at := 0, now
	kube := fake.NewClientBuilder().WithObjects(deploymentOf("c-gateway")...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if into.GetObjectKind().GroupVersionKind().Kind == "ReplicaSet" {
				reads++
			}
			return c.Get(ctx, key, into, opts...)
		}}).Build()
	o, seen := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return at }}, replicaSets(nil)
	looks := func(list []corev1.Pod, wantReads, wantOurs int, wantAll bool) {
		t.Helper()
		before := reads
		ours, all := o.deployed(t.Context(), outsideCluster(), "c-gateway", list, &seen)
		if reads-before != wantReads || len(ours) != wantOurs || all != wantAll {
			t.Errorf("%d reads, %d count, all %t; want %d, %d, %t", reads-before, len(ours), all, wantReads, wantOurs, wantAll)
		}
	}
	pods := []corev1.Pod{*gatewayPod("a", nil), *gatewayPod("b", nil)}
	looks(pods, 1, 2, true)
	at = at.Add(time.Hour)
	looks(pods, 0, 2, true)
	for i := range 12 {
		pods = append(pods, *gatewayPod(fmt.Sprint("stranger-", i), func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(fmt.Sprint(i)) }))
	}
	looks(pods, mostReplicaSets, 2, false)
	looks(pods, 2, 2, true)
	looks(pods, 0, 2, true)
	at = at.Add(strangersFor)
	looks(pods, mostReplicaSets, 2, true)
	looks(pods[2:], 2, 0, true)
	looks(pods[:2], 1, 2, true)
	if len(seen) != 1 {
		t.Errorf("%d are remembered", len(seen))
	}
}
