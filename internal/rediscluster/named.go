// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
)

// named wakes the clusters that name an object, when it came, changed or went.
func (r *Reconciler) named(watches *byname.Watches, clusters client.Reader) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		watches.Changed = func(resource, namespace, name string) {
			var list v1alpha1.RedisClusterList
			if err := clusters.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				// What was read is known to have changed all the same, at the next poll.
				log.FromContext(ctx).Error(err, "Cannot list RedisClusters", "namespace", namespace)
				return
			}
			for i := range list.Items {
				if cluster := &list.Items[i]; names(cluster, resource, name) {
					key := client.ObjectKeyFromObject(cluster)
					r.woken.note(key)
					q.Add(reconcile.Request{NamespacedName: key})
				}
			}
		}
		if p, can := q.(priorities); can {
			q = fair{priorities: p, r: r}
		}
		watches.Start(ctx)
		return nil
	})
}

// names reports whether a cluster reads an object by its name.
func names(cluster *v1alpha1.RedisCluster, resource, name string) bool {
	if resource == byname.ConfigMaps {
		return cluster.Spec.Template().Configmap == name
	}
	secrets := []string{cluster.AuthSecretName(), cluster.Spec.Auth.SecretName, cluster.Spec.Auth.ACLSecretName}
	if cluster.Spec.TLS != nil {
		secrets = append(secrets, cluster.TLSSecretName(), cluster.TLSTrustSecretName(), cluster.TLSClientTrustSecretName())
	}
	return slices.Contains(secrets, name)
}
