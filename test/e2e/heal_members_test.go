// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// Whoever is where it does not belong is led back or sent away: a replica that follows the master of another shard, and a stranger.
func TestRedisClusterKeepsItsMembers(t *testing.T) {
	t.Parallel()
	for _, engine := range newest() {
		t.Run(engine.name, func(t *testing.T) {
			parallel(t)
			cluster := newCluster(live.NewNamespace(t), "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
			live.Create(t, cluster)
			live.Ready(t, cluster)
			keys := 200
			write(t, cluster, keys)

			for _, role := range []string{"slave", "master"} {
				t.Run("the pod of a "+role+" is killed", func(t *testing.T) {
					start := time.Now()
					settled(t, cluster, killPods(t, cluster, ofRole(t, cluster, 0, role).Name))
					t.Logf("Ready %.1f s after the pod of a %s was killed", time.Since(start).Seconds(), role)
					wantKeys(t, cluster, keys)
				})
			}
			t.Run("a replica wanders", func(t *testing.T) {
				wanderer, home, elsewhere := ofRole(t, cluster, 1, "slave"), ofRole(t, cluster, 1, "master"), ofRole(t, cluster, 2, "master")
				start := time.Now()
				command(t, cluster, wanderer.Name, "cluster", "replicate", elsewhere.NodeID)
				live.Eventually(t, "it follows its own master again", func() error {
					line, err := itself(t, cluster, wanderer.Name)
					if err != nil || !strings.Contains(line, " "+home.NodeID+" ") {
						return errors.Join(err, fmt.Errorf("%s says of itself: %s", wanderer.Name, line))
					}
					return live.IsReady(t, cluster)
				})
				t.Logf("Ready %.1f s after a replica was made to follow another shard's master", time.Since(start).Seconds())
				wantKeys(t, cluster, keys)
				wantHealthy(t, cluster, 3, 6)
			})
			t.Run("an empty stranger joins", func(t *testing.T) {
				stranger := newStranger(t, cluster)
				start := time.Now()
				command(t, cluster, ofRole(t, cluster, 0, "master").Name, "cluster", "meet", stranger.Status.PodIP, "6379")
				live.Eventually(t, "an instance knows the stranger", func() error { return knownTo(t, cluster, stranger, false) })
				live.Eventually(t, "nobody knows it any more", func() error { return knownTo(t, cluster, stranger, true) })
				live.Ready(t, cluster)
				t.Logf("Ready without the stranger %.1f s after it was met", time.Since(start).Seconds())
				time.Sleep(stay())
				if err := knownTo(t, cluster, stranger, true); err != nil && !strings.Contains(cluster.Spec.Repository, "valkey") {
					t.Errorf("%s later: %v", stay(), err)
				}
				live.Eventually(t, "one that introduces itself again, as Valkey does, is forgotten again", func() error {
					return errors.Join(knownTo(t, cluster, stranger, true), live.IsReady(t, cluster))
				})
				wantKeys(t, cluster, keys)
				wantHealthy(t, cluster, 3, 6)
			})
		})
	}
}

// stay is how long a stranger must stay away: Redis refuses a forgotten node for 60 s only, which the default leaves out.
func stay() time.Duration {
	if os.Getenv("E2E") == "all" {
		return 90 * time.Second
	}
	return 10 * time.Second
}

// newStranger is an empty Redis in cluster mode that no RedisCluster has made.
func newStranger(t *testing.T, cluster *v1alpha1.RedisCluster) *corev1.Pod {
	t.Helper()
	server := "redis-server"
	if strings.Contains(cluster.Spec.Repository, "valkey") {
		server = "valkey-server"
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "stranger"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: ptr.To[int64](999),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "redis", Image: cluster.Spec.Repository + ":" + cluster.Spec.Version,
				Command: []string{server, "--cluster-enabled", "yes", "--dir", "/tmp", "--save", "", "--protected-mode", "no"},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	live.Create(t, pod)
	live.Eventually(t, "the stranger runs", func() error {
		if err := live.Get(t, pod); err != nil || pod.Status.PodIP == "" {
			return errors.Join(err, errors.New("it has no address yet"))
		}
		_, err := live.Execute(t.Context(), pod.Namespace, pod.Name, "redis", "redis-cli", "ping")
		return err
	})
	return pod
}

// knownTo is an error while some instance knows the stranger, or with nobody false, while none does.
func knownTo(t *testing.T, cluster *v1alpha1.RedisCluster, stranger *corev1.Pod, nobody bool) error {
	t.Helper()
	var by []string
	tables, err := askAll(t, cluster, "cluster", "nodes")
	if err != nil {
		return err
	}
	for name, table := range tables {
		if strings.Contains(table, " "+stranger.Status.PodIP+":") {
			by = append(by, name)
		}
	}
	if (len(by) == 0) != nobody {
		return fmt.Errorf("the stranger is known to %v", by)
	}
	return nil
}

// itself is the line that an instance has about itself in its table.
func itself(t *testing.T, cluster *v1alpha1.RedisCluster, pod string) (string, error) {
	table, err := cli(t.Context(), cluster, pod, "cluster", "nodes")
	for line := range strings.Lines(table) {
		if strings.Contains(line, "myself,") {
			return strings.TrimSpace(line), err
		}
	}
	return "", err
}

// command sends a command to an instance by hand, which must accept it.
func command(t *testing.T, cluster *v1alpha1.RedisCluster, pod string, args ...string) {
	t.Helper()
	if out, err := cli(t.Context(), cluster, pod, append([]string{"-e"}, args...)...); err != nil || out != "OK" {
		t.Fatalf("%s: %v: %v: %s", pod, args, err, out)
	}
}
