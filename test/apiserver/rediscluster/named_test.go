// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster"
)

// How often what no watch tells of is read again: with every poll, or never as far as a test is concerned.
func readAnew(o *rediscluster.Options)  { o.NamedAge = time.Nanosecond }
func readNever(o *rediscluster.Options) { o.NamedAge = 24 * time.Hour }

// runningWith is a cluster that is whole and names a ConfigMap and a Secret of users.
func runningWith(t *testing.T, namespace string, adjust func(*rediscluster.Options)) (*v1alpha1.RedisCluster, *operator, *kubelet) {
	t.Helper()
	k := startKubelet(t, namespace)
	op := startOperatorWith(t, operatorConfig(), namespace, k.world, adjust)
	create(t, labelled(namespace, "users", v1alpha1.LabelAuth, map[string]string{"app": "on >secret ~* +get"}))
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"},
		Data: map[string]string{"redis.conf": "maxmemory-policy noeviction"}})
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Auth.ACLSecretName = "users"
	cluster.Spec.Pod = []v1alpha1.PodTemplate{{Configmap: "mine"}}
	create(t, cluster)
	awaitWhole(t, cluster)
	awaitAccess(t, cluster, "Applied", "")
	return cluster, op, k
}

// awaitNamed changes what a cluster names, and waits until its instances know.
func awaitNamed(t *testing.T, cluster *v1alpha1.RedisCluster, k *kubelet) {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "mine"}}
	change(t, config, func(c *corev1.ConfigMap) { c.Data["redis.conf"] = "maxmemory-policy allkeys-lru" })
	eventually(t, "the setting of the ConfigMap is in force", func() string {
		if got := k.node("cache-0-0").Setting("maxmemory-policy"); got != "allkeys-lru" {
			return got
		}
		return ""
	})
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "users"}}
	change(t, users, func(s *corev1.Secret) { s.Data["other"] = []byte("on >secret ~* +get") })
	eventually(t, "the user of the Secret is there", func() string {
		for _, accepts := range letIn(t, k, cluster, string(ownSecret(t, cluster).Data["password"])) {
			if _, there := accepts.Users["other"]; !there {
				return fmt.Sprint(accepts.Users)
			}
		}
		return ""
	})
}

// What a cluster names is looked at again when it has changed, whenever it was read last, and also by an operator that has just started.
func TestNamedObjectsAreWatched(t *testing.T) {
	t.Parallel()
	cluster, op, k := runningWith(t, newNamespace(t), readNever)
	awaitNamed(t, cluster, k)
	eventually(t, "the metadata of both kinds are read", func() string {
		for _, resource := range []string{"secrets", "configmaps"} {
			if !slices.ContainsFunc(op.asked(), func(request string) bool { return strings.Contains(request, "/"+resource+"/") }) {
				return resource
			}
		}
		return ""
	})
	remove(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "users"}})
	awaitAccess(t, cluster, "SecretUnusable", "Secret users does not exist")
}

// Where the operator may read Secrets and not watch them, they are read again from time to time.
func TestNamedObjectsWithoutWatch(t *testing.T) {
	t.Parallel()
	namespace := newBareNamespace(t)
	account, name, _ := strings.Cut(serviceAccount, ":")
	reads := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reads"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"}}}}
	for _, object := range []client.Object{&reads, &rbacv1.RoleBinding{ObjectMeta: reads.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reads.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account, Name: name}}}} {
		check(t, api.Create(context.Background(), object))
	}
	cluster, op, k := runningWith(t, namespace, readAnew)
	awaitNamed(t, cluster, k)
	refused := 0
	for _, request := range op.requests.Refused() {
		if strings.HasSuffix(request, "/secrets") {
			refused++
		}
	}
	if refused > 1 {
		t.Errorf("the operator asked %d times for what it may not have", refused)
	}
}
