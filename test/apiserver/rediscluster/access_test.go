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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

// labelled is a Secret of the user's that the operator may use.
func labelled(namespace, name, label string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{label: "true"}},
		StringData: data}
}

// ownSecret is the operator's.
func ownSecret(t *testing.T, cluster *v1alpha1.RedisCluster) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}}
	get(t, secret)
	return secret
}

// instances are the nodes of all pods.
func instances(k *kubelet, cluster *v1alpha1.RedisCluster) []*redistest.Node {
	var nodes []*redistest.Node
	for _, instance := range cluster.Status.Nodes {
		nodes = append(nodes, k.node(instance.Name))
	}
	return nodes
}

// letIn asks every instance for its ACL users.
func letIn(t *testing.T, k *kubelet, cluster *v1alpha1.RedisCluster, password string) []redis.Access {
	t.Helper()
	pool := redis.NewPool(redis.Options{Dialer: k.world.Dial})
	defer pool.Close()
	var all []redis.Access
	for _, node := range instances(k, cluster) {
		found, err := pool.Node(node.Addr(), redis.Credentials{Password: password}).Access(context.Background())
		check(t, err)
		all = append(all, found)
	}
	return all
}

// awaitAccess waits until the condition AccessApplied has a reason and its message holds a text.
func awaitAccess(t *testing.T, cluster *v1alpha1.RedisCluster, reason, message string) {
	t.Helper()
	eventually(t, "AccessApplied says "+reason, func() string {
		get(t, cluster)
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAccessApplied)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) || c.ObservedGeneration != cluster.Generation {
			return fmt.Sprintf("it is %+v", c)
		}
		return ""
	})
}

// A new password that the spec asks for is accepted by every instance before anybody is told it, and the cluster stays Ready.
func TestNextPasswordIsAcceptedFirst(t *testing.T) {
	t.Parallel()
	cluster, _, k := running(t)
	before := string(ownSecret(t, cluster).Data[v1alpha1.SecretKeyPassword])
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Auth.Rotate = "2026-11-21" })
	eventually(t, "every instance accepts two passwords", func() string {
		for _, found := range letIn(t, k, cluster, before) {
			if len(found.Passwords) != 2 || !slices.Contains(found.Passwords, access.Digest(before)) {
				return fmt.Sprintf("one accepts %d", len(found.Passwords))
			}
		}
		return ""
	})
	awaitAccess(t, cluster, "PasswordChanging", "")
	secret := ownSecret(t, cluster)
	if got := string(secret.Data[v1alpha1.SecretKeyPassword]); got != before {
		t.Error("clients are told the next password before it can be in the files of every pod")
	}
	if c := cluster.Status.PasswordChange; c == nil || c.Stage != "Accepting" || c.Until.Sub(c.Since.Time) != 2*time.Minute {
		t.Errorf("the status says %+v", c)
	}
	if text := fmt.Sprint(cluster.Status); strings.Contains(text, before) ||
		!meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("the status tells the password, or the cluster is not ready: %s", cluster.Status.Reason)
	}
}

// A Secret that was deleted while instances run comes back with the password that they know.
func TestDeletedSecretComesBack(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	before := ownSecret(t, cluster)
	remove(t, before.DeepCopy())
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Auth.PreviousPasswordFor = &metav1.Duration{Duration: time.Minute}
	}) // it looks at once
	eventually(t, "the Secret comes back", func() string {
		secret := ownSecret(t, cluster)
		if secret.UID == before.UID || string(secret.Data[v1alpha1.SecretKeyPassword]) != string(before.Data[v1alpha1.SecretKeyPassword]) {
			return fmt.Sprintf("it has %d keys", len(secret.Data))
		}
		return ""
	})
	awaitWhole(t, cluster)
}

// Users come and go without a restart, and stand in the file of those that start. What cannot be used changes nothing, and
// hinders nothing.
func TestUsers(t *testing.T) {
	t.Parallel()
	cluster, _, k := running(t)
	use := func(name string, data map[string]string) {
		t.Helper()
		create(t, labelled(cluster.Namespace, name, v1alpha1.LabelAuth, data))
		change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Auth.ACLSecretName = name })
	}
	password := string(ownSecret(t, cluster).Data[v1alpha1.SecretKeyPassword])
	users := func() []string {
		var names []string
		for _, found := range letIn(t, k, cluster, password) {
			for name := range found.Users {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}

	use("first", map[string]string{"alice": "on >wonder ~cache:* +@read", "bob": "on >builder ~* +@all"})
	awaitAccess(t, cluster, "Applied", "")
	if got := users(); !slices.Equal(got, []string{"alice", "bob", "exporter", "operator-backup"}) {
		t.Errorf("users are %v", got)
	}
	if config := string(ownSecret(t, cluster).Data[v1alpha1.SecretKeyConfig]); strings.Contains(config, "wonder") ||
		!strings.Contains(config, access.Digest("wonder")) {
		t.Errorf("auth.conf holds a password of a user, or not its digest:\n%s", config)
	}

	use("second", map[string]string{"default": "on nopass ~* +@all", "alice": "on >x\nuser default nopass"})
	awaitAccess(t, cluster, "SecretUnusable", "key default: is the operator's user")
	for _, node := range instances(k, cluster) {
		k.world.FailNext(node, "ACL SETUSER",
			redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR Error in ACL SETUSER modifier '+nosuch': Unknown command"})
	}
	use("third", map[string]string{"carol": "on >x +nosuch"})
	awaitAccess(t, cluster, "SecretUnusable", "key carol: ")
	if got := users(); !slices.Equal(got, []string{"alice", "bob", "exporter", "operator-backup"}) {
		t.Errorf("users after two refused Secrets are %v", got)
	}
	awaitWhole(t, cluster)

	use("fourth", map[string]string{"alice": "on >wonder ~cache:* +@read"})
	awaitAccess(t, cluster, "Applied", "")
	if got := users(); !slices.Equal(got, []string{"alice", "exporter", "operator-backup"}) {
		t.Errorf("users in the end are %v", got)
	}
}

// Without a certificate that is in order nothing is made: an instance would not start, and one without TLS is never a way.
func TestCertificateMustBeInOrder(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace, startKubelet(t, namespace).world)
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bare"}})
	create(t, labelled(namespace, "empty", v1alpha1.LabelTLS, nil))
	for secret, refusal := range map[string]string{
		"missing": "spec.tls.secretName: Secret missing does not exist",
		"bare":    "kubectl label secret bare --namespace " + namespace + " redis.middleware.hc.cn/tls=true",
		"empty":   "spec.tls.secretName: Secret empty holds no certificate with its key under tls.crt and tls.key",
	} {
		cluster := newCluster(namespace, "with-"+secret)
		cluster.Spec.TLS = &v1alpha1.TLS{SecretName: secret}
		create(t, cluster)
		awaitStalled(t, cluster, "CertificateUnavailable", refusal)
		for name := range children(t, cluster) {
			if strings.HasPrefix(name, "statefulsets/") {
				t.Errorf("%s exists", name)
			}
		}
	}
}
