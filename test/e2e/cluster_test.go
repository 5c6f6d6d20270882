// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

func master(t *testing.T, cluster *v1alpha1.RedisCluster, shard int32) v1alpha1.NodeStatus {
	t.Helper()
	node, found := masterOf(cluster, shard)
	if !found {
		t.Fatalf("shard %d has no master: %+v", shard, cluster.Status.Nodes)
	}
	return node
}

// masterOf is a shard's master in the status.
func masterOf(cluster *v1alpha1.RedisCluster, shard int32) (master v1alpha1.NodeStatus, found bool) {
	for _, node := range cluster.Status.Nodes {
		if node.Shard == shard && node.Type == "master" && node.Slots != "" {
			return node, true
		}
	}
	return v1alpha1.NodeStatus{}, false
}

func names(cluster *v1alpha1.RedisCluster) []string {
	var list []string
	for _, node := range cluster.Status.Nodes {
		list = append(list, node.Name)
	}
	return list
}

// underLoad makes a cluster, waits until it is Ready, fills keys in and starts an application.
func underLoad(t *testing.T, cluster *v1alpha1.RedisCluster, keys int) *live.Load {
	t.Helper()
	live.Create(t, cluster)
	live.Ready(t, cluster)
	load := live.NewLoad(t, cluster)
	load.Fill(keys)
	load.Start()
	return load
}

// killPods deletes pods without grace, as a failing node would, and returns their UIDs.
func killPods(t *testing.T, cluster *v1alpha1.RedisCluster, pods ...string) map[string]bool {
	t.Helper()
	killed := map[string]bool{}
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name}}
		if err := live.Get(t, pod); err != nil {
			t.Fatal(err)
		}
		killed[string(pod.UID)] = true
		if err := live.Kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	return killed
}

// settled waits until the killed pods are replaced and the cluster is Ready again.
func settled(t *testing.T, cluster *v1alpha1.RedisCluster, killed map[string]bool) {
	t.Helper()
	live.Eventually(t, "the cluster is healthy again", func() error {
		var pods corev1.PodList
		if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
			return err
		}
		if want := int(*cluster.Spec.Replicas); len(pods.Items) != want {
			return fmt.Errorf("%d pods, want %d", len(pods.Items), want)
		}
		for i := range pods.Items {
			if killed[string(pods.Items[i].UID)] {
				return fmt.Errorf("pod %s is still the killed one", pods.Items[i].Name)
			}
		}
		if err := errors.Join(live.IsReady(t, cluster), everyPodServes(t, cluster)); err != nil {
			return err
		}
		return servesEverywhere(t, cluster)
	})
}

// atRest is nil when a cluster is Ready and nothing is under way. It is Ready during a rollout, too.
func atRest(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	if err := live.IsReady(t, cluster); err != nil || cluster.Status.Phase != v1alpha1.PhaseRunning {
		return errors.Join(err, fmt.Errorf("phase %s: %s", cluster.Status.Phase, cluster.Status.Reason))
	}
	return nil
}

// servesEverywhere asks every instance itself.
func servesEverywhere(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	for _, name := range names(cluster) {
		info, err := cli(t.Context(), cluster, name, "cluster", "info")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
			return fmt.Errorf("%s does not serve all slots: %s", name, info)
		}
	}
	return nil
}

// wantHealthy asks the engine's own check, and the status.
func wantHealthy(t *testing.T, cluster *v1alpha1.RedisCluster, shards, instances int32) {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	s := cluster.Status
	if s.Phase != v1alpha1.PhaseRunning || s.Slots != 16384 || s.Shards != shards || s.Replicas != instances ||
		s.Instances != fmt.Sprintf("%d/%d", instances, instances) || len(s.Nodes) != int(instances) {
		t.Errorf("status: phase %s, %d slots, %d shards, %d replicas, instances %s, %d nodes", s.Phase, s.Slots, s.Shards, s.Replicas,
			s.Instances, len(s.Nodes))
	}
	out, err := cli(t.Context(), cluster, s.Nodes[0].Name, "--cluster", "check", "127.0.0.1:6379")
	if err != nil || !strings.Contains(out, "[OK] All 16384 slots covered.") || strings.Contains(out, "[WARNING]") {
		t.Errorf("the engine's own check: %v\n%s", err, out)
	}
}

// prelude reads the password that the instance itself uses, and defines ask: redis-cli as
// an ordinary cluster client would use it, trying again while it gets an error instead of
// an answer. The shell is the test's own.
const prelude = `REDISCLI_AUTH="$(sed -n 's/^masterauth "\(.*\)"$/\1/p' /etc/redis/auth/auth.conf 2>/dev/null)"
if [ -n "$REDISCLI_AUTH" ]; then export REDISCLI_AUTH; else unset REDISCLI_AUTH; fi
ask() { n=0; until redis-cli -e -c -h "$HOST" "$@"; do n=$((n+1)); [ $n -lt 100 ] || return 1; sleep 0.1; done; }
`

// cli runs redis-cli in an instance.
func cli(ctx context.Context, cluster *v1alpha1.RedisCluster, pod string, args ...string) (string, error) {
	return live.Execute(ctx, cluster.Namespace, pod, "redis",
		append([]string{"sh", "-c", prelude + `[ -r /etc/redis/tls/ca.crt ] && set -- --tls --cacert /etc/redis/tls/ca.crt "$@"
exec redis-cli "$@"`, "sh"}, args...)...)
}

// write sets keys through the cluster's Service, each acknowledged by as many replicas as every shard has. WAIT is about the
// writes of its own connection: both go down one.
func write(t *testing.T, cluster *v1alpha1.RedisCluster, n int) {
	t.Helper()
	script := prelude + `HOST="$1"
tell() { printf 'set %s %s\nwait %d 5000\n' "$@" | redis-cli -c -h "$HOST" | tail -n 2; }
put() { n=0; until set -- "$1" "$2" "$3" $(tell "$1" "$2" "$3") && [ "$4" = OK ] && [ "$5" -ge "$3" ]; do
  n=$((n+1)); [ $n -lt 100 ] || return 1; sleep 0.1; done; }
for i in $(seq "$2"); do put "key:$i" "value:$i" "$3" && echo stored; done 2>/dev/null | grep -c stored`
	replicas := map[string]int{} // by shard's master
	for _, node := range cluster.Status.Nodes {
		if node.Type == "master" {
			replicas[node.NodeID] += 0
		} else {
			replicas[node.MasterNodeID]++
		}
	}
	least := slices.Min(slices.Collect(maps.Values(replicas)))
	out, err := live.Execute(t.Context(), cluster.Namespace, cluster.Status.Nodes[0].Name, "redis", "sh", "-c", script, "sh", cluster.Name,
		fmt.Sprint(n), fmt.Sprint(least))
	if err != nil || out != fmt.Sprint(n) {
		t.Fatalf("write %d keys that %d replicas have: %v: %s", n, least, err, out)
	}
}

// wantKeys reads every key through the Service.
func wantKeys(t *testing.T, cluster *v1alpha1.RedisCluster, n int) {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	wantKeysFrom(t, cluster, cluster.Status.Nodes[0].Name, n)
}

// wantKeysFrom does so from an instance that runs.
func wantKeysFrom(t *testing.T, cluster *v1alpha1.RedisCluster, pod string, n int) {
	t.Helper()
	script := fmt.Sprintf(
		`%sHOST=%s; for i in $(seq %d); do got=$(ask get key:$i 2>/dev/null) || got="(no answer)"; [ "$got" = value:$i ] && echo same || echo "key:$i=$got"; done | sort | uniq -c`,
		prelude, cluster.Name, n)
	out, err := live.Execute(t.Context(), cluster.Namespace, pod, "redis", "sh", "-c", script)
	if err != nil || strings.TrimSpace(out) != fmt.Sprintf("%d same", n) {
		t.Errorf("read %d keys: %v: %s", n, err, out)
	}
}

func wantGone(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if err := live.Kube.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the object is gone", func() error { return gone(t, cluster.DeepCopy()) })
	// Foreground: when the object is gone, so are its pods.
	if err := noPods(t, cluster); err != nil {
		t.Error(err)
	}
	wantClaims(t, cluster, 0)
	live.Eventually(t, "Secret and Service are gone", func() error {
		return errors.Join(
			gone(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}}),
			gone(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}))
	})
}

func gone(t *testing.T, object client.Object) error {
	err := live.Get(t, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%T %s is still there", object, object.GetName()))
}

func noPods(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		return err
	}
	if len(pods.Items) > 0 {
		return fmt.Errorf("%d pods are still there", len(pods.Items))
	}
	return nil
}

// wantClaims waits until a cluster has so many claims. Ready says nothing about those of instances that are gone: Kubernetes'
// garbage collector deletes them, and each stays until no pod uses it any more.
func wantClaims(t *testing.T, cluster *v1alpha1.RedisCluster, want int) {
	t.Helper()
	live.Eventually(t, fmt.Sprintf("there are %d claims", want), func() error {
		var list corev1.PersistentVolumeClaimList
		if err := live.Kube.List(t.Context(), &list, client.InNamespace(cluster.Namespace)); err != nil {
			return err
		}
		var found []string
		for i := range list.Items {
			if c := &list.Items[i]; strings.Contains(c.Name, cluster.Name+"-") {
				found = append(found, fmt.Sprintf("%s, made %s, deleted %s, of %v", c.Name, c.CreationTimestamp, c.DeletionTimestamp,
					c.OwnerReferences))
			}
		}
		if len(found) != want {
			return fmt.Errorf("there are %d:\n%s", len(found), strings.Join(found, "\n"))
		}
		return nil
	})
}
