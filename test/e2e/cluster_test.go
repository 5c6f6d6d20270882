// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	infos, err := askAll(t, cluster, "cluster", "info")
	if err != nil {
		return err
	}
	for name, info := range infos {
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

// prelude reads the password that the instance itself uses. The shell is the test's own.
const prelude = `REDISCLI_AUTH="$(sed -n 's/^masterauth "\(.*\)"$/\1/p' /etc/redis/auth/auth.conf 2>/dev/null)"
if [ -n "$REDISCLI_AUTH" ]; then export REDISCLI_AUTH; else unset REDISCLI_AUTH; fi
`

// cli runs redis-cli in an instance.
func cli(ctx context.Context, cluster *v1alpha1.RedisCluster, pod string, args ...string) (string, error) {
	return live.Execute(ctx, cluster.Namespace, pod, "redis",
		append([]string{"sh", "-c", prelude + `[ -r /etc/redis/tls/ca.crt ] && set -- --tls --cacert /etc/redis/tls/ca.crt "$@"
exec redis-cli "$@"`, "sh"}, args...)...)
}

// askAll runs redis-cli against every instance of the status, all from one pod, and returns the answers by instance.
func askAll(t *testing.T, cluster *v1alpha1.RedisCluster, args ...string) (answers map[string]string, err error) {
	t.Helper()
	const begins = "@ answer of "
	script := prelude + `[ -r /etc/redis/tls/ca.crt ] && set -- --tls --cacert /etc/redis/tls/ca.crt "$@"
for instance in $INSTANCES; do echo "` + begins + `${instance%=*}"; redis-cli -h "${instance#*=}" "$@" || exit 1; done`
	if len(cluster.Status.Nodes) == 0 {
		return nil, errors.New("the status has no instances")
	}
	addresses := map[string]string{}
	for _, pod := range podsOf(t, cluster) {
		addresses[pod.Name] = pod.Status.PodIP
	}
	var instances []string
	for _, name := range names(cluster) {
		if addresses[name] == "" {
			return nil, fmt.Errorf("%s has no address", name)
		}
		instances = append(instances, name+"="+addresses[name])
	}
	out, err := live.Execute(t.Context(), cluster.Namespace, names(cluster)[0], "redis",
		append([]string{"env", "INSTANCES=" + strings.Join(instances, " "), "sh", "-c", script, "sh"}, args...)...)
	answers = map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(out, begins), "\n"+begins) {
		name, answer, _ := strings.Cut(part, "\n")
		answers[name] = strings.TrimSpace(answer)
	}
	if err == nil && len(answers) != len(instances) {
		err = fmt.Errorf("%d of %d instances answered: %s", len(answers), len(instances), out)
	}
	return answers, err
}

// batch sends commands through the cluster's Service, from one of its pods and down one redis-cli, which goes where it is
// redirected as an ordinary cluster client does, and returns a line for each answer. A process for each command would cost more
// than all else in these tests.
func batch(t *testing.T, cluster *v1alpha1.RedisCluster, pod string, commands []string) (answers []string, err error) {
	t.Helper()
	out, err := live.Pods().Execute(t.Context(), strings.NewReader(strings.Join(commands, "\n")+"\n"), cluster.Namespace, pod, "redis",
		"sh", "-c", prelude+`exec redis-cli -c -h "$1"`, "sh", cluster.Name)
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "-> Redirected") {
			answers = append(answers, strings.TrimSpace(line))
		}
	}
	if err == nil && len(answers) != len(commands) {
		err = fmt.Errorf("%d answers to %d commands: %s", len(answers), len(commands), out)
	}
	return answers, err
}

// write sets keys through the cluster's Service, each acknowledged by as many replicas as every shard has. WAIT is about the
// writes of its own connection: both go down one.
func write(t *testing.T, cluster *v1alpha1.RedisCluster, n int) {
	t.Helper()
	replicas := map[string]int{} // by shard's master
	for _, node := range cluster.Status.Nodes {
		if node.Type == "master" {
			replicas[node.NodeID] += 0
		} else {
			replicas[node.MasterNodeID]++
		}
	}
	least := slices.Min(slices.Collect(maps.Values(replicas)))
	var commands []string
	for i := range n {
		commands = append(commands, fmt.Sprintf("set key:%d value:%[1]d", i+1), fmt.Sprintf("wait %d 5000", least))
	}
	live.Eventually(t, fmt.Sprintf("%d keys are written, and %d replicas have them", n, least), func() error {
		answers, err := batch(t, cluster, cluster.Status.Nodes[0].Name, commands)
		for i, answer := range answers {
			if acknowledged, _ := strconv.Atoi(answer); i%2 == 0 && answer != "OK" || i%2 == 1 && acknowledged < least {
				err = errors.Join(err, fmt.Errorf("%s: %s", commands[i], answer))
			}
		}
		return err
	})
}

// wantKeys reads every key through the Service.
func wantKeys(t *testing.T, cluster *v1alpha1.RedisCluster, n int) {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	wantKeysFrom(t, cluster, cluster.Status.Nodes[0].Name, n)
}

// wantKeysFrom does so from an instance that runs. It asks again when it gets an error, and not when it gets another answer.
func wantKeysFrom(t *testing.T, cluster *v1alpha1.RedisCluster, pod string, n int) {
	t.Helper()
	var commands []string
	for i := range n {
		commands = append(commands, fmt.Sprintf("get key:%d", i+1))
	}
	live.Eventually(t, fmt.Sprintf("%d keys are read", n), func() error {
		answers, err := batch(t, cluster, pod, commands)
		if err != nil {
			return err
		}
		for i, answer := range answers {
			switch {
			case answer == "" || strings.HasPrefix(answer, "value:") && answer != fmt.Sprintf("value:%d", i+1):
				t.Errorf("%s: %q", commands[i], answer)
			case !strings.HasPrefix(answer, "value:"):
				err = errors.Join(err, fmt.Errorf("%s: %s", commands[i], answer))
			}
		}
		return err
	})
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
