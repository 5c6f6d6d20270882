// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// mostReplicaSets is how many ReplicaSets are read in one reconciliation, strangersFor for how long one is taken for a stranger's.
const mostReplicaSets, strangersFor = 10, 10 * time.Second

// replicaSets are those that were looked at, by their UIDs.
type replicaSets map[types.UID]replicaSet

// replicaSet is what was found of a ReplicaSet, and when.
type replicaSet struct {
	ours bool
	at   time.Time
}

// deployed are the pods whose ReplicaSet is one, by its UID, of the cluster's own Deployment: a name is anybody's to take. ReplicaSets are
// not watched: each is read once, and a stranger's now and then. all reports whether all were looked at; while they cannot be read, all
// that are not known count.
func (o *Observer) deployed(ctx context.Context, cluster *v1alpha1.RedisCluster, deployment string, list []corev1.Pod, seen *replicaSets) (
	ours []corev1.Pod, all bool) {
	before, now, reads := *seen, o.now(), 0
	after, all := replicaSets{}, true
	var err error
	for _, pod := range list {
		owner := metav1.GetControllerOf(&pod)
		is, known := after[owner.UID]
		was, looked := before[owner.UID]
		switch {
		case known:
		case looked && (was.ours || now.Sub(was.at) < strangersFor || reads == mostReplicaSets):
			is = was
		case reads == mostReplicaSets:
			all = false
			continue
		case err == nil:
			reads++
			is.at = now
			is.ours, err = o.isDeployed(ctx, cluster, deployment, owner)
		}
		if err == nil || known || looked {
			after[owner.UID] = is
		}
		if is.ours || err != nil && !known && !looked {
			ours = append(ours, pod)
		}
	}
	*seen = after
	return ours, all
}

// isDeployed reports whether a ReplicaSet is the one that its UID says, of a Deployment that is the cluster's.
func (o *Observer) isDeployed(ctx context.Context, cluster *v1alpha1.RedisCluster, deployment string, owner *metav1.OwnerReference) (bool,
	error) {
	by, set := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	by.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	err := o.Children.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: deployment}, by)
	if err == nil && metav1.IsControlledBy(by, cluster) {
		err = o.Secrets.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: owner.Name}, set)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && set.UID == owner.UID && metav1.IsControlledBy(set, by), err
}
