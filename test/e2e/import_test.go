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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// A clone has what another cluster of the namespace had, shard by shard; that goes on, and neither sees what is written to the other then.
func TestRedisClusterIsCloned(t *testing.T) {
	shownElsewhere(t, "TestClusterIsCloned of test/engine; TestRedisClusterImportsAServer")
	parallel(t)
	namespace := live.NewNamespace(t)
	source := newCluster(namespace, "cache")
	source.Spec.Replicas = ptr.To[int32](3)
	live.Create(t, source)
	live.Ready(t, source)
	const before, all = 200, 250
	write(t, source, before)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: source.AuthSecretName()}}
	live.Change(t, secret, func(s *corev1.Secret) { metav1.SetMetaDataLabel(&s.ObjectMeta, v1alpha1.LabelClone, "true") })

	clone := newCluster(namespace, "copy")
	clone.Spec.Replicas = ptr.To[int32](3)
	clone.Spec.Bootstrap = &v1alpha1.Bootstrap{Clone: &v1alpha1.Clone{Name: source.Name}}
	live.Create(t, clone)
	live.Ready(t, clone)
	if is := clone.Status.Import; is == nil || is.CutOverAt == nil || len(is.Slots) != 3 {
		t.Errorf("it is Ready with %+v", is)
	}
	write(t, source, all)
	wantKeys(t, clone, before)
	wantKeys(t, source, all)
	answers, err := batch(t, clone, clone.Status.Nodes[0].Name, []string{fmt.Sprintf("exists key:%d", all)})
	if err != nil || len(answers) != 1 || answers[0] != "0" {
		t.Errorf("what was written to the source afterwards: %q, %v", answers, err)
	}
	wantHealthy(t, clone, 3, 3)
	wantTables(t, clone, balanced(3))
	wantNoRelays(t, namespace)
}

// A cluster begins with the data of a server that is in none, which goes on taking writes until the cut-over.
func TestRedisClusterImportsAServer(t *testing.T) {
	parallel(t)
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
	wantNoRelays(t, namespace)
}

// wantNoRelays waits until the relays of a namespace are gone, which they are when the pause of writes is over.
func wantNoRelays(t *testing.T, namespace string) {
	t.Helper()
	live.Eventually(t, "its relays are gone", func() error {
		var pods corev1.PodList
		if err := live.Kube.List(t.Context(), &pods, client.InNamespace(namespace),
			client.MatchingLabels{v1alpha1.LabelRelay: "true"}); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d are still there", n)
		}
		return nil
	})
}
