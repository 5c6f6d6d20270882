// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"

	"middleware.hc.cn/operator/test/live"
)

// A master that gives slots and one that receives them are lost in the middle: commands
// may fail until their replicas have taken over, and writes of that moment may be lost, but
// the scaling ends, no slot stays open, and data that had been there is whole.
func TestRedisClusterScalesWhilePodsDie(t *testing.T) {
	shownElsewhere(t, "TestDisasterAtEveryCommand of the simulation; TestRedisClusterScalesWhileTheOperatorDies")
	parallel(t)
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.UpdateStrategy.KeysPerSecond = gently
	load := underLoad(t, cluster, 12000)
	setSize(t, cluster, 4, 8)
	midway(t, cluster)
	killPods(t, cluster, master(t, cluster, 0).Name)
	live.Eventually(t, "the slots go on moving", func() error { return moves(t, cluster) })
	killPods(t, cluster, master(t, cluster, 3).Name)
	live.Ready(t, cluster)
	wantHealthy(t, cluster, 4, 8)
	wantTables(t, cluster, balanced(4))
	result := load.Stop()
	t.Logf("with two masters killed: %d commands failed, %d acknowledged writes lost, %d stale reads", result.Failed, result.Lost,
		result.Stale)
	if result.Corrupt+result.Torn+result.Unread > 0 {
		t.Errorf("%d values that nobody wrote, %d pairs torn, %d keys unread: %s", result.Corrupt, result.Torn, result.Unread, result.Wrong)
	}
	load.WantData()
}

// moves waits for the next slot.
func moves(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	before := cluster.Status.Migration
	if err := live.Get(t, cluster); err != nil {
		return err
	}
	after := cluster.Status.Migration
	if before == nil || after == nil || after.SlotsLeft >= before.SlotsLeft {
		return fmt.Errorf("the migration is %+v", after)
	}
	return nil
}

// The operator dies again and again in the middle of moving slots, on an engine that moves
// them key by key and on one that does it by itself. Applications do not notice.
func TestRedisClusterScalesWhileTheOperatorDies(t *testing.T) {
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		var clusters []*v1alpha1.RedisCluster
		for _, engine := range []int{0, 3} {
			cluster := newCluster(live.NewNamespace(t), "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engines[engine].repository, engines[engine].version
			live.Create(t, cluster)
			clusters = append(clusters, cluster)
		}
		classic, atomic := clusters[0], clusters[1]
		for _, cluster := range clusters {
			live.Ready(t, cluster)
		}
		live.Change(t, classic, func(c *v1alpha1.RedisCluster) { c.Spec.UpdateStrategy.KeysPerSecond = gently })
		loads := []*live.Load{live.NewLoad(t, classic), live.NewLoad(t, atomic)}
		loads[0].Fill(12000)
		loads[1].Fill(50000)
		for _, load := range loads {
			load.Start()
		}
		crash := newCrasher(t)

		setSize(t, atomic, 4, 8)
		setSize(t, classic, 4, 8)
		live.Eventually(t, "slots begin to move by themselves", func() error { return migrates(t, atomic) })
		crash.operator(t)
		midway(t, classic)
		deleteOperator(t)
		live.Ready(t, atomic)
		// The webhook is the operator's: while it starts, nothing is admitted.
		live.Eventually(t, "the next change is admitted", func() error {
			if err := live.Get(t, atomic); err != nil {
				return err
			}
			atomic.Spec.Shards, atomic.Spec.Replicas = ptr.To[int32](3), ptr.To[int32](6)
			return live.Kube.Update(t.Context(), atomic)
		})
		live.Eventually(t, "slots begin to move back", func() error { return migrates(t, atomic) })
		crash.operator(t)
		for _, cluster := range clusters {
			live.Ready(t, cluster)
			wantHealthy(t, cluster, *cluster.Spec.Shards, *cluster.Spec.Replicas)
			wantTables(t, cluster, balanced(int(*cluster.Spec.Shards)))
		}
		run.WantUnnoticed(loads[0], v1alpha1.MigrationClassic)
		run.WantUnnoticed(loads[1], v1alpha1.MigrationAtomic)
	})
}

// migrates checks that a migration has begun for the present spec.
func migrates(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	if err := live.Get(t, cluster); err != nil {
		return err
	}
	if s := cluster.Status; s.Migration == nil || s.ObservedGeneration != cluster.Generation {
		return fmt.Errorf("no migration yet: %s", s.Reason)
	}
	return nil
}

// deleteOperator deletes the operator's pods: another starts elsewhere.
func deleteOperator(t *testing.T) {
	t.Helper()
	pods := operatorPods(t)
	for i := range pods {
		if err := live.Kube.Delete(t.Context(), &pods[i], client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}

func operatorPods(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(live.OperatorNamespace)); err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods of the operator (%v)", len(pods.Items), err)
	}
	return pods.Items
}

// crasher kills the operator's process as nothing in Kubernetes would: without notice. It
// is one privileged pod a node that sees the node's processes.
type crasher struct{ namespace string }

func newCrasher(t *testing.T) crasher {
	t.Helper()
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-crash-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}
	live.Create(t, ns)
	t.Cleanup(func() { _ = live.Kube.Delete(context.Background(), ns) })
	nodes, err := live.Clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: nodes.Items[i].Name},
			Spec: corev1.PodSpec{NodeName: nodes.Items[i].Name, HostPID: true, RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "crash", Image: "docker.io/library/redis:7.0.15", Command: []string{"sleep", "86400"},
					SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64)}}}},
		}
		live.Create(t, pod)
		live.Eventually(t, "the pod on "+pod.Name+" runs", func() error {
			if err := live.Get(t, pod); err != nil || pod.Status.Phase != corev1.PodRunning {
				return errors.Join(err, fmt.Errorf("it is %s", pod.Status.Phase))
			}
			return nil
		})
	}
	return crasher{ns.Name}
}

// operator kills the operator, wherever it runs.
func (c crasher) operator(t *testing.T) {
	t.Helper()
	for _, pod := range operatorPods(t) {
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
			continue
		}
		script := `for p in /proc/[0-9]*; do case "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" in "/manager "*) kill -9 "${p#/proc/}" && echo killed;; esac; done; true`
		if out, err := live.Execute(t.Context(), c.namespace, pod.Spec.NodeName, "crash", "sh", "-c", script); err != nil || out == "" {
			t.Fatalf("kill the operator on %s: %v %q", pod.Spec.NodeName, err, out)
		}
	}
}
