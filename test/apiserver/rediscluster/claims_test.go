// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A larger size reaches every claim where the storage class lets claims be expanded. Where it does not, the API server refuses, the
// cluster says so with the way out, and serves on.
func TestClaimsGrow(t *testing.T) {
	t.Parallel()
	for _, expands := range []bool{true, false} {
		t.Run(fmt.Sprintf("allowVolumeExpansion %v", expands), func(t *testing.T) {
			t.Parallel()
			_, cluster := withClaims(t, expands, nil)

			change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.Size = resource.MustParse("2Gi") })
			if !expands {
				awaitPhase(t, cluster, v1alpha1.PhaseFailed, "set the size back to 1Gi")
				wantConditions(t, cluster, v1alpha1.ReasonCannotExpand)
				wantClaims(t, cluster, "1Gi")
				change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.Size = resource.MustParse("1Gi") })
				awaitWhole(t, cluster)
				return
			}
			awaitWhole(t, cluster)
			wantClaims(t, cluster, "2Gi")
		})
	}
}

// With maxSize the claims of all instances grow with the data of one, and the spec stays as it is. Where the API server refuses, that is
// told, the cluster serves on, and what the spec asks for is done.
func TestClaimsGrowWithTheData(t *testing.T) {
	t.Parallel()
	for _, expands := range []bool{true, false} {
		t.Run(fmt.Sprintf("allowVolumeExpansion %v", expands), func(t *testing.T) {
			t.Parallel()
			k, cluster := withClaims(t, expands, ptr.To(resource.MustParse("3Gi")))

			k.world.SetKeyBytes(450 << 20)
			instances(k, cluster)[0].Put("key", "value")
			if !expands {
				awaitPhase(t, cluster, v1alpha1.PhaseFailed, "remove maxSize")
				wantConditions(t, cluster, "ExpansionRefused")
				wantClaims(t, cluster, "1Gi")
				change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"maxmemory-policy": "allkeys-lru"} })
				eventually(t, "what else is to be done is done", func() string {
					for _, n := range instances(k, cluster) {
						if n.Setting("maxmemory-policy") != "allkeys-lru" {
							return "not by all"
						}
					}
					return ""
				})
				change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.MaxSize = nil })
				awaitWhole(t, cluster)
				return
			}
			awaitClaims(t, cluster, "2Gi")
			k.world.SetKeyBytes(4 << 30)
			awaitClaims(t, cluster, "3Gi")
			awaitWhole(t, cluster)
			if size := cluster.Spec.Storage.Size.String(); size != "1Gi" {
				t.Errorf("spec.storage.size is %s", size)
			}
		})
	}
}

// withClaims is a cluster with claims of 1 Gi, bound, of a storage class that lets them be expanded or not.
func withClaims(t *testing.T, expands bool, most *resource.Quantity) (*kubelet, *v1alpha1.RedisCluster) {
	t.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "grow-"}, Provisioner: "example.com/none",
		AllowVolumeExpansion: &expands}
	create(t, class)
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("1Gi"), MaxSize: most, StorageClassName: &class.Name}
	create(t, cluster)
	awaitWhole(t, cluster)
	bindClaims(t, cluster)
	return k, cluster
}

// bindClaims makes the claims that the StatefulSet's controller would have made, bound as only those that grow are.
func bindClaims(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	for _, node := range cluster.Status.Nodes {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "data-" + node.Name, Labels: map[string]string{
				"app.kubernetes.io/managed-by": "middleware-operator", v1alpha1.LabelCluster: cluster.Name}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: cluster.Spec.Storage.StorageClassName,
				VolumeName: "pv-" + node.Name,
				Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: cluster.Spec.Storage.Size}},
			},
		}
		create(t, claim)
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes,
			Capacity: claim.Spec.Resources.Requests}
		check(t, api.Status().Update(context.Background(), claim))
	}
}

func wantClaims(t *testing.T, cluster *v1alpha1.RedisCluster, size string) {
	t.Helper()
	if wrong := wrongClaims(t, cluster, size); wrong != "" {
		t.Error(wrong)
	}
}

func awaitClaims(t *testing.T, cluster *v1alpha1.RedisCluster, size string) {
	t.Helper()
	eventually(t, "claims request "+size, func() string { return wrongClaims(t, cluster, size) })
}

// wrongClaims says what is wrong when not each instance has a claim of a size.
func wrongClaims(t *testing.T, cluster *v1alpha1.RedisCluster, size string) (wrong string) {
	t.Helper()
	var claims corev1.PersistentVolumeClaimList
	check(t, api.List(context.Background(), &claims, client.InNamespace(cluster.Namespace)))
	for i := range claims.Items {
		if got := claims.Items[i].Spec.Resources.Requests.Storage().String(); got != size {
			wrong += fmt.Sprintf("%s requests %s, want %s\n", claims.Items[i].Name, got, size)
		}
	}
	if len(claims.Items) != len(cluster.Status.Nodes) {
		wrong += fmt.Sprintf("%d claims of %d instances", len(claims.Items), len(cluster.Status.Nodes))
	}
	return wrong
}

// wantConditions asserts that a cluster is stalled and serves all the same.
func wantConditions(t *testing.T, cluster *v1alpha1.RedisCluster, cause string) {
	t.Helper()
	for _, c := range cluster.Status.Conditions {
		if c.Type == v1alpha1.ConditionStalled && (c.Status != metav1.ConditionTrue || c.Reason != cause) || c.Type == v1alpha1.ConditionReady &&
			c.Status != metav1.ConditionTrue {
			t.Errorf("%+v, want to be stalled because of %s, and Ready", c, cause)
		}
	}
}
