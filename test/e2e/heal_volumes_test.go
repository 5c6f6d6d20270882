// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// Volumes come back wrong, and no replica has a copy. Keys that are still there stay; what is gone is given up by a person, or by
// whoever deletes the claim.
func TestRedisClusterLosesVolumes(t *testing.T) {
	shownElsewhere(t, "TestEmptyVolumesWaitForAPerson of the simulation; TestRedisClusterLosesFiles")
	t.Parallel()
	if !live.Local() {
		t.Skip("only the local cluster's processes can be killed")
	}
	for _, engine := range newest() {
		t.Run(engine.name, func(t *testing.T) {
			parallel(t)
			cluster := newCluster(live.NewNamespace(t), "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			cluster.Spec.Replicas = ptr.To[int32](3)
			live.Create(t, cluster)
			live.Ready(t, cluster)
			const keys = 200
			write(t, cluster, keys)

			t.Run("nodes.conf of the only copy", func(t *testing.T) {
				before := ofRole(t, cluster, 1, "master")
				returnsWithout(t, cluster, "rm /data/nodes.conf", before.Name)
				start := time.Now()
				live.Eventually(t, "it is back under another ID", func() error {
					if err := live.Get(t, cluster); err != nil {
						return err
					}
					if now, found := masterOf(cluster, 1); !found || now.NodeID == before.NodeID {
						return fmt.Errorf("its slots are those of %+v", now)
					}
					return errors.Join(live.IsReady(t, cluster), servesEverywhere(t, cluster))
				})
				t.Logf("Ready %.1f s after it came back", time.Since(start).Seconds())
				wantKeys(t, cluster, keys)
				wantHealthy(t, cluster, 3, 3)
			})
			t.Run("a volume that is empty", func(t *testing.T) {
				before := ofRole(t, cluster, 2, "master")
				left := keyCount(t, cluster) - keyCount(t, cluster, before.Name)
				returnsWithout(t, cluster, "rm -r /data/*", before.Name)
				givesUp(t, cluster, before.Name)
				if after := keyCount(t, cluster); after != left {
					t.Errorf("%d keys are left, want the %d of the other shards", after, left)
				}
				write(t, cluster, keys)
			})
			t.Run("a claim that is deleted", func(t *testing.T) {
				gone := ofRole(t, cluster, 0, "master")
				left := keyCount(t, cluster) - keyCount(t, cluster, gone.Name)
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "data-" + gone.Name}}
				if err := live.Kube.Delete(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
				settled(t, cluster, killPods(t, cluster, gone.Name))
				wantHealthy(t, cluster, 3, 3)
				if after := keyCount(t, cluster); after != left {
					t.Errorf("%d keys are left, want the %d of the other shards", after, left)
				}
			})
			t.Run("all volumes are empty", func(t *testing.T) {
				all := names(cluster)
				returnsWithout(t, cluster, "rm -r /data/*", all...)
				givesUp(t, cluster, all...)
				if after := keyCount(t, cluster); after != 0 {
					t.Errorf("%d keys came from nowhere", after)
				}
				write(t, cluster, keys)
				wantKeys(t, cluster, keys)
			})
		})
	}
}

// returnsWithout hangs servers, changes their files and kills them, so that they start with what is left. A server that ends in
// another way writes its files first.
func returnsWithout(t *testing.T, cluster *v1alpha1.RedisCluster, script string, pods ...string) {
	t.Helper()
	uids := podUIDs(t, cluster)
	for _, pod := range pods {
		if n := live.Signal(t, syscall.SIGSTOP, "redis-server", uids[pod]); n != 1 {
			t.Fatalf("%d servers of %s were stopped", n, pod)
		}
		if out, err := live.Execute(t.Context(), cluster.Namespace, pod, "redis", "sh", "-c", script); err != nil {
			t.Fatalf("%s: %v: %s", pod, err, out)
		}
	}
	for _, pod := range pods {
		live.Signal(t, syscall.SIGKILL, "redis-server", uids[pod])
	}
}

var giveUp = regexp.MustCompile(`set the annotation (\S+) to (\S+)$`)

// givesUp waits until the cluster says that the data of instances is lost, and how to give it up, sees that nothing is done before,
// and does so.
func givesUp(t *testing.T, cluster *v1alpha1.RedisCluster, pods ...string) {
	t.Helper()
	slices.Sort(pods)
	var loss []string
	lost := func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled)
		if c == nil || c.Reason != "DataLost" || !strings.Contains(c.Message, "those of "+strings.Join(pods, ", ")+". ") {
			return fmt.Errorf("Stalled is %+v", c)
		}
		if loss = giveUp.FindStringSubmatch(c.Message); loss == nil || loss[1] != v1alpha1.AnnotationGiveUpData {
			return fmt.Errorf("it says no remedy: %s", c.Message)
		}
		if cluster.Status.Slots == 16384 {
			return errors.New("all slots are owned")
		}
		return nil
	}
	live.Eventually(t, "it says what is lost", lost)
	time.Sleep(3 * time.Second) // some reconciliations
	if err := lost(); err != nil {
		t.Fatalf("nobody has given it up yet: %v", err)
	}
	start := time.Now()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, loss[1], loss[2]) })
	live.Eventually(t, "it is Ready", func() error { return errors.Join(live.IsReady(t, cluster), servesEverywhere(t, cluster)) })
	t.Logf("Ready %.1f s after the data of %v was given up", time.Since(start).Seconds(), pods)
	wantHealthy(t, cluster, 3, 3)
}

// keyCount is how many keys instances have; without names all of them.
func keyCount(t *testing.T, cluster *v1alpha1.RedisCluster, pods ...string) int {
	t.Helper()
	if len(pods) == 0 {
		pods = names(cluster)
	}
	sum := 0
	for _, pod := range pods {
		out, err := cli(t.Context(), cluster, pod, "dbsize")
		var n int
		if _, scanErr := fmt.Sscan(out, &n); err != nil || scanErr != nil {
			t.Fatalf("%s: %v: %s", pod, err, out)
		}
		sum += n
	}
	return sum
}

// What cannot be done for a cluster holds nothing back that it needs as it is: masters die while a Service's name is someone else's,
// and while a ConfigMap that the spec names is gone.
func TestRedisClusterHealsBesideProblems(t *testing.T) {
	parallel(t)
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
	cluster.Spec.Pod[0].Configmap = "mine"
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "mine"},
		Data: map[string]string{"redis.conf": "maxclients 500\n"}}
	live.Create(t, mine)
	live.Create(t, cluster)
	live.Ready(t, cluster)
	const keys = 200
	write(t, cluster, keys)

	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{v1alpha1.LabelCluster: cluster.Name},
		Ports:    []corev1.ServicePort{{Name: "redis", Port: 6379, TargetPort: intstr.FromInt32(6379)}}}}
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	live.Eventually(t, "it is paused", func() error { return inPhase(t, cluster, v1alpha1.PhasePaused) })
	if err := live.Kube.Delete(t.Context(), foreign.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	live.Create(t, foreign)
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
	healsWhileStalled(t, cluster, "NameTaken", "Service "+cluster.Namespace+"/cache ")
	if err := live.Get(t, foreign); err != nil || len(foreign.OwnerReferences)+len(foreign.Labels) > 0 {
		t.Errorf("the Service of someone else was changed (%v): %+v", err, foreign.ObjectMeta)
	}
	wantKeys(t, cluster, keys)
	if err := live.Kube.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	live.Ready(t, cluster)

	if err := live.Kube.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	healsWhileStalled(t, cluster, "InvalidSpec", "ConfigMap mine does not exist")
	wantKeys(t, cluster, keys)
	mine.ResourceVersion = ""
	live.Create(t, mine)
	live.Ready(t, cluster)
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
}

// healsWhileStalled waits for a stall, kills the pod of a master, and waits until all slots are served by six instances; the stall
// stays.
func healsWhileStalled(t *testing.T, cluster *v1alpha1.RedisCluster, cause, message string) {
	t.Helper()
	stalled := func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Reason != cause ||
			!strings.Contains(c.Message, message) {
			return fmt.Errorf("Stalled is %+v, want %s: %s", c, cause, message)
		}
		return nil
	}
	live.Eventually(t, "it says what it cannot do", stalled)
	start := time.Now()
	killed := killPods(t, cluster, ofRole(t, cluster, 1, "master").Name)
	live.Eventually(t, "six instances serve all slots", func() error {
		now := podUIDs(t, cluster)
		for _, uid := range now {
			if killed[uid] {
				return errors.New("the killed pod is there")
			}
		}
		if len(now) != 6 {
			return fmt.Errorf("%d pods", len(now))
		}
		return errors.Join(everyPodServes(t, cluster), servesEverywhere(t, cluster), stalled())
	})
	t.Logf("%s: healed %.1f s after a master's pod was killed", cause, time.Since(start).Seconds())
}
