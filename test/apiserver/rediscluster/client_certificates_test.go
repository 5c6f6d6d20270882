// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// Certificates of clients are required of a cluster that runs: all instances are told, redis.conf and the status say so, and no
// StatefulSet changes; so it is taken back. What the schema does not know is refused.
func TestCertificatesOfClients(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	kubelet := startKubelet(t, namespace)
	cluster := newCluster(namespace, "cache")
	mgr, err := newOperator(operatorConfig(), namespace, encrypt(t, cluster, kubelet.world.Dial))
	check(t, err)
	environment.Start(t, mgr)
	create(t, cluster)
	awaits := func(want v1alpha1.ClientCertificates, setting string) {
		t.Helper()
		eventually(t, "certificates of clients are "+string(want), func() string {
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-config"}}
			if !get(t, cluster) || !get(t, config) || cluster.Status.TLS == nil {
				return "there is nothing yet"
			}
			if is := cluster.Status.TLS.ClientCertificates; is != want {
				return fmt.Sprintf("status.tls.clientCertificates is %s", is)
			}
			if line := fmt.Sprintf("tls-auth-clients %q", setting); !strings.Contains(config.Data["redis.conf"], line) {
				return "redis.conf lacks " + line
			}
			return ""
		})
	}
	awaits(v1alpha1.ClientCertificatesOptional, "optional")
	revisions := func() (all []int64) {
		for _, shard := range []string{"cache-0", "cache-1", "cache-2"} {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shard}}
			if get(t, set) {
				all = append(all, set.Generation)
			}
		}
		return all
	}
	eventually(t, "the cluster runs", func() string {
		if get(t, cluster); cluster.Status.Phase != v1alpha1.PhaseRunning {
			return "its phase is " + string(cluster.Status.Phase)
		}
		return ""
	})
	before := revisions()
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS.ClientCertificates = v1alpha1.ClientCertificatesRequired })
	awaits(v1alpha1.ClientCertificatesRequired, "yes")
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS.ClientCertificates = v1alpha1.ClientCertificatesNone })
	awaits(v1alpha1.ClientCertificatesNone, "no")
	if after := revisions(); !slices.Equal(before, after) || len(after) != 3 {
		t.Errorf("StatefulSets were of generations %v and are of %v", before, after)
	}

	wrong := newCluster(namespace, "wrong")
	wrong.Spec.TLS = &v1alpha1.TLS{SecretName: "own", ClientCertificates: "yes"}
	if err := api.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "spec.tls.clientCertificates: Unsupported value") {
		t.Errorf("got %v", err)
	}
}
