// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// most is how many requests about one cluster may be refused while its namespace goes. Each look at it, of which there is one with
// every object that goes and every poll, may bring one or two; what is tried again at once would bring thousands.
const most = 100

// TestNamespaceIsDeleted: a namespace that is deleted with a RedisCluster in it goes, whatever of it goes first, by every policy. The
// operator does not try again and again to make what is gone. It ends no reconciliation with an error, unless its right to Secrets
// goes before all else. Some orders; SIMULATION=all tries more.
func TestNamespaceIsDeleted(t *testing.T) {
	rights := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	cluster, others := childKinds[:1], childKinds[1:]
	errors := environment.Errors(t)
	t.Run("rights last", func(t *testing.T) {
		rightsLast := []schema.GroupVersionKind{rights}
		namespaceGoes(t, v1alpha1.DeletionForeground, cluster, others, rightsLast)
		namespaceGoes(t, v1alpha1.DeletionBackground, others, cluster, rightsLast)
		if crash.All() {
			namespaceGoes(t, v1alpha1.DeletionForeground, others, cluster, rightsLast)
			namespaceGoes(t, v1alpha1.DeletionOrphan, cluster, others, rightsLast)
		}
	})
	if n := environment.Errors(t) - errors; n > 0 {
		t.Errorf("%v reconciliations ended with an error", n)
	}
	t.Run("rights first", func(t *testing.T) {
		namespaceGoes(t, v1alpha1.DeletionOrphan, []schema.GroupVersionKind{rights}, cluster, others)
		if crash.All() {
			namespaceGoes(t, v1alpha1.DeletionForeground, []schema.GroupVersionKind{rights}, others, cluster)
		}
	})
}

// namespaceGoes makes a cluster, and deletes its namespace in an order of kinds.
func namespaceGoes(t *testing.T, policy v1alpha1.DeletionPolicy, order ...[]schema.GroupVersionKind) {
	t.Helper()
	kinds := slices.Concat(order...)
	t.Run(string(policy)+", "+kinds[0].Kind, func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		k := startFaithfulKubelet(t, namespace, "")
		op := startOperator(t, namespace, k.world)
		cluster := newCluster(namespace, "cache")
		cluster.Spec.Replicas, cluster.Spec.Finalizers = ptr.To[int32](3), policy
		create(t, cluster)
		awaitWhole(t, cluster)
		before := len(op.requests.Refused())
		environment.DeleteNamespace(t, crash.World{API: api, Kinds: kinds, Namespaces: []string{namespace}})
		if refused := op.requests.Refused()[before:]; len(refused) > most {
			t.Errorf("%d requests were refused: %v", len(refused), refused)
		}
	})
}
