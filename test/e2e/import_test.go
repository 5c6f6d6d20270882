// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

const serverPassword = "of the server"

// runServer runs a server that is in no cluster, as Service old of a namespace, and returns what writes keys from one number to another
// into it, as write does.
func runServer(t *testing.T, namespace string) (fill func(from, to int)) {
	t.Helper()
	const port = 6379
	name := metav1.ObjectMeta{Namespace: namespace, Name: "old", Labels: map[string]string{"app": "old"}}
	pod := &corev1.Pod{ObjectMeta: name, Spec: corev1.PodSpec{
		SecurityContext: restricted(),
		Containers: []corev1.Container{{
			Name: "redis", Image: "docker.io/library/redis:7.0.15", SecurityContext: unprivileged(), WorkingDir: "/tmp",
			Command: []string{"redis-server", "--save", "", "--repl-diskless-sync-delay", "0", "--requirepass", serverPassword},
			Env:     []corev1.EnvVar{{Name: "REDISCLI_AUTH", Value: serverPassword}},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1,
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}},
		}},
	}}
	live.Create(t, pod)
	live.Create(t, &corev1.Service{ObjectMeta: name,
		Spec: corev1.ServiceSpec{Selector: name.Labels, Ports: []corev1.ServicePort{{Port: port}}}})
	return func(from, to int) {
		t.Helper()
		script := fmt.Sprintf("for i in $(seq %d %d); do echo set key:$i value:$i; done | redis-cli | sort | uniq -c", from, to)
		want := fmt.Sprintf("%d OK", to-from+1)
		live.Eventually(t, "keys are written to the server", func() error {
			out, err := live.Execute(t.Context(), namespace, pod.Name, "redis", "sh", "-c", script)
			if err != nil || strings.TrimSpace(out) != want {
				return errors.Join(err, fmt.Errorf("%q, want %q", out, want))
			}
			return nil
		})
	}
}

// A cluster begins with the data of a server that is in none, which goes on taking writes until the cut-over.
func TestRedisClusterImportsAServer(t *testing.T) {
	t.Parallel()
	namespace := live.NewNamespace(t)
	fill := runServer(t, namespace)
	live.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "old",
		Labels: map[string]string{v1alpha1.LabelRestore: "true"}},
		StringData: map[string]string{v1alpha1.SecretKeyPassword: serverPassword}})
	const before, all = 300, 500
	fill(1, before)

	cluster := newCluster(namespace, "cache")
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{
		Address: fmt.Sprintf("old.%s.svc:6379", namespace), CredentialsSecretName: "old"}}
	live.Create(t, cluster)
	live.Eventually(t, "it follows the server", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		if is := cluster.Status.Import; is == nil || is.Phase != v1alpha1.ImportFollowing || is.LagBytes == nil || *is.LagBytes > 0 {
			return fmt.Errorf("%+v; %s", is, cluster.Status.Reason)
		}
		return nil
	})
	fill(before+1, all)
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Bootstrap.Import.CutOver = true })
	live.Eventually(t, "it has taken over", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		if is := cluster.Status.Import; is == nil || is.CutOverAt == nil {
			return fmt.Errorf("%+v; %s", is, cluster.Status.Reason)
		}
		return nil
	})
	if missed := cluster.Status.Import.MissedBytes; missed == nil || *missed != 0 {
		t.Errorf("nobody wrote meanwhile, and the status is %+v", cluster.Status.Import)
	}
	live.Ready(t, cluster)
	if n := cluster.Status.Shards; n != 3 {
		t.Errorf("it is Ready with %d shards", n)
	}
	wantKeys(t, cluster, all)
	wantHealthy(t, cluster, 3, 6)
	wantTables(t, cluster, balanced(3))
	live.Eventually(t, "the relay is gone, after the pause", func() error {
		for _, pod := range podsOf(t, cluster) {
			if strings.Contains(pod.Name, "import") {
				return fmt.Errorf("pod %s is still there", pod.Name)
			}
		}
		return nil
	})
}
