// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

// The tests that count what is asked come first and alone: passes are counted in the whole process.

// A cluster that is healthy, or that is paused, asks nothing of the API server: neither for its objects, nor for the Secrets and the
// ConfigMap that it names, although these are read anew with every poll where nobody tells whether they have changed.
func TestIdleAsksNothing(t *testing.T) {
	cluster, op, _ := runningWith(t, newNamespace(t), readAnew)
	inPolls := func() []string {
		before := len(op.asked())
		awaitPasses(t, 5)
		return op.asked()[before:]
	}
	quiet := func(what string) {
		t.Helper()
		eventually(t, what+" comes to rest", func() string { return strings.Join(inPolls(), ", ") })
		if asked := inPolls(); len(asked) > 0 {
			t.Errorf("%s asked in 5 polls: %v", what, asked)
		}
	}
	quiet("an idle cluster")
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	awaitPhase(t, cluster, v1alpha1.PhasePaused, "spec.pause is true")
	quiet("a paused cluster")
}

// A cluster to which nothing happens is asked for little, and for everything as soon as anything does: in its objects or in Redis.
func TestAtRestIsAskedForLittle(t *testing.T) {
	cluster, _, k := running(t)
	var briefly, whole atomic.Int64
	k.world.OnCommand(func(_ *redistest.Node, args []string) {
		switch strings.Join(args, " ") {
		case "INFO replication persistence":
			briefly.Add(1)
		case "CLUSTER INFO":
			whole.Add(1)
		}
	})
	eventually(t, "it is looked at briefly most of the time", func() string {
		if b, w := briefly.Load(), whole.Load(); b < 60 || b < 2*w {
			return fmt.Sprintf("%d instances were asked briefly, %d for everything", b, w)
		}
		return ""
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"maxmemory-policy": "allkeys-lru"} })
	eventually(t, "a setting that is asked for now is in force", func() string {
		if got := k.node("cache-0-0").Setting("maxmemory-policy"); got != "allkeys-lru" {
			return got
		}
		return ""
	})
	awaitPhase(t, cluster, v1alpha1.PhaseRunning, "")
	k.world.Partition(k.node("cache-1-0")) // no event of Kubernetes tells
	eventually(t, "an instance that does not answer is in the status", func() string {
		if get(t, cluster); meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
			return "Ready is True"
		}
		return ""
	})
	k.world.Heal()
	eventually(t, "and is forgotten when it does", func() string {
		if get(t, cluster); !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
			return "Ready is not True"
		}
		return ""
	})
}

// An operator that starts anew knows nothing of a paused cluster's children, and may not
// apply them to find out: it stays Ready all the same.
func TestPausedStaysReadyOverRestart(t *testing.T) {
	cluster, op, k := running(t)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	awaitPhase(t, cluster, v1alpha1.PhasePaused, "spec.pause is true")
	version := cluster.ResourceVersion
	op.stop()
	startOperator(t, cluster.Namespace, k.world)
	awaitPasses(t, 5)
	get(t, cluster)
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) || cluster.ResourceVersion != version {
		t.Errorf("after the restart the status was written anew: %+v, plan %+v", cluster.Status.Conditions, cluster.Status.Plan)
	}
}

// Paused from the start, nothing is made, and the status says what would be.
func TestPausedMakesNothing(t *testing.T) {
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	op := startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Pause = true
	create(t, cluster)
	awaitPhase(t, cluster, v1alpha1.PhasePaused, "spec.pause is true")
	if got := cluster.Status.Plan; got == nil || got.Step != "AddFinalizer" || got.Reason == "" {
		t.Errorf("status.plan is %+v, want what would be done first", got)
	}
	if written := op.written(0); len(written) > 0 {
		t.Errorf("these were written: %v", written)
	}
	if found := children(t, cluster); len(found) > 0 || len(cluster.Finalizers) > 0 {
		t.Errorf("a paused cluster has children %v and finalizers %v", slices.Collect(maps.Keys(found)), cluster.Finalizers)
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
	awaitWhole(t, cluster)
}

// The phases of a new cluster are those of its document, each in its turn.
func TestPhasesOfANewCluster(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	watcher, err := client.NewWithWatch(admin, client.Options{Scheme: scheme})
	check(t, err)
	seen, err := watcher.Watch(t.Context(), &v1alpha1.RedisClusterList{}, client.InNamespace(namespace))
	check(t, err)
	defer seen.Stop()
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	create(t, newCluster(namespace, "cache"))
	var phases []v1alpha1.Phase
	for event := range seen.ResultChan() {
		if phase := event.Object.(*v1alpha1.RedisCluster).Status.Phase; !slices.Contains(phases, phase) {
			phases = append(phases, phase)
		}
		if slices.Contains(phases, v1alpha1.PhaseRunning) {
			break
		}
	}
	if diff := cmp.Diff([]v1alpha1.Phase{"", v1alpha1.PhaseNone, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning}, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

// From a CR to a cluster that serves.
func TestForms(t *testing.T) {
	t.Parallel()
	cluster, _, k := running(t)

	found := children(t, cluster)
	if diff := cmp.Diff(made, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if !slices.Contains(cluster.Finalizers, v1alpha1.Finalizer) {
		t.Errorf("finalizers are %v", cluster.Finalizers)
	}
	secret := found["secrets/cache-auth"].(*corev1.Secret)
	password, config := string(secret.Data[v1alpha1.SecretKeyPassword]), string(secret.Data[v1alpha1.SecretKeyConfig])
	if len(password) < 26 || !strings.Contains(config, "masterauth "+strconv.Quote(password)) || strings.Count(config, password) != 1 {
		t.Errorf("the Secret's keys disagree, or the password is short (%d bytes)", len(password))
	}

	want := map[string]metav1.ConditionStatus{"Ready": "True", "SlotsCovered": "True", "Formed": "True", "Stalled": "False",
		"Degraded": "False", "Progressing": "False"}
	for name, status := range want {
		if c := meta.FindStatusCondition(cluster.Status.Conditions, name); c == nil || c.Status != status ||
			c.ObservedGeneration != cluster.Generation {
			t.Errorf("condition %s is %+v, want %s", name, c, status)
		}
	}
	for _, node := range cluster.Status.Nodes {
		if node.NodeID != k.node(node.Name).ID() || node.Instance != k.node(node.Name).Addr() || node.HostIP != "192.168.0.1" ||
			node.DomainName != fmt.Sprintf("%s.cache-nodes.%s.svc.cluster.example", node.Name, cluster.Namespace) {
			t.Errorf("node %+v", node)
		}
	}
	s := cluster.Status
	if s.CurrentVersion != "7.0.15" || s.TargetVersion != "7.0.15" || s.Engine != "redis" || s.SecretName != "cache-auth" || s.Replicas != 6 ||
		s.Selector == "" {
		t.Errorf("status is %+v", s)
	}
	eventually(t, "what happened is told", func() string {
		told := said(t, cluster)
		for _, once := range []string{"AddFinalizer", "CreateAuth", "ApplyChildren", "AssignSlots", "Running"} {
			if n := told["Normal "+once]; n != 1 {
				return fmt.Sprintf("%s is told %d times", once, n)
			}
		}
		if told["Normal Meet"] == 0 || told["Normal Replicate"] == 0 {
			return fmt.Sprintf("told are %v", told)
		}
		return ""
	})
}

// Other numbers of instances, and no password.
func TestFormsUnevenAndOpen(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Replicas, cluster.Spec.Auth.Enabled = new(int32(7)), new(false)
	create(t, cluster)
	awaitWhole(t, cluster)
	perShard := map[int32]int{}
	for _, node := range cluster.Status.Nodes {
		perShard[node.Shard]++
	}
	if diff := cmp.Diff(map[int32]int{0: 3, 1: 2, 2: 2}, perShard); diff != "" {
		t.Errorf("instances by shard (-want +got):\n%s", diff)
	}
	if _, found := children(t, cluster)["secrets/cache-auth"]; found || cluster.Status.SecretName != "" {
		t.Error("a cluster without a password has a Secret")
	}
}

// Killed pods come back under new addresses and the cluster heals; while it is paused it does not.
func TestPauseHoldsHealing(t *testing.T) {
	t.Parallel()
	cluster, op, k := running(t)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	awaitPhase(t, cluster, v1alpha1.PhasePaused, "")
	before, asked := cluster.DeepCopy(), len(op.asked())

	// Both instances of a shard: neither finds the others by itself under its new address as soon as the operator would.
	pods := []string{"cache-1-0", "cache-1-1"}
	k.kill(nil, pods...)
	eventually(t, "the need to heal is seen", func() string {
		get(t, cluster)
		if plan := cluster.Status.Plan; plan == nil || plan.Step == "None" {
			return fmt.Sprintf("plan is %+v", plan)
		}
		return ""
	})
	if cluster.Status.Phase != v1alpha1.PhasePaused {
		t.Errorf("phase is %s", cluster.Status.Phase)
	}
	if written := op.written(asked); len(written) > 0 {
		t.Errorf("while paused these were written: %v", written)
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
	awaitHealed(t, before, pods...)
}

// Data outlives every pod.
func TestHealsAllPodsKilled(t *testing.T) {
	t.Parallel()
	cluster, _, k := running(t)
	var pods []string
	for _, node := range cluster.Status.Nodes {
		pods = append(pods, node.Name)
	}
	k.kill(nil, pods...)
	healed := awaitHealed(t, cluster, pods...)
	for _, node := range cluster.Status.Nodes {
		if now := instance(t, healed, node.Name); now.NodeID != node.NodeID {
			t.Errorf("%s was node %s and is %s", node.Name, node.NodeID, now.NodeID)
		}
	}
}

// The operator may be restarted at any step; what was done is not done again.
func TestOperatorRestarts(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	cluster := newCluster(namespace, "cache")
	create(t, cluster)

	// Forming: each operator lives until the plan has moved on.
	restarts, last := 0, ""
	for ; cluster.Status.Phase != v1alpha1.PhaseRunning && restarts < 20; restarts++ {
		op := startOperator(t, namespace, k.world)
		eventually(t, "the next step", func() string {
			get(t, cluster)
			if plan := cluster.Status.Plan; plan != nil && plan.Step != last {
				last = plan.Step
				return ""
			}
			if cluster.Status.Phase == v1alpha1.PhaseRunning {
				return ""
			}
			return "still " + last
		})
		op.stop()
	}
	if restarts < 3 {
		t.Errorf("the operator was restarted %d times only", restarts)
	}
	op := startOperator(t, namespace, k.world)
	awaitWhole(t, cluster)
	told := said(t, cluster)
	if told["Normal AssignSlots"] > 1 || told["Normal CreateAuth"] > 1 || told["Normal AddFinalizer"] > 1 {
		t.Errorf("something was done twice: %v", told)
	}
	versions := map[string]string{}
	for name, child := range children(t, cluster) {
		versions[name] = string(child.GetUID()) + " " + fmt.Sprint(child.GetGeneration())
	}

	// Healing.
	pods := []string{"cache-0-0", "cache-0-1", "cache-2-0"}
	k.kill(nil, pods...)
	eventually(t, "the loss is seen", func() string {
		get(t, cluster)
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
			return "still Ready"
		}
		return ""
	})
	before := cluster.DeepCopy()
	op.stop()
	op = startOperator(t, namespace, k.world)
	awaitWhole(t, before)
	for name, child := range children(t, cluster) {
		if now := string(child.GetUID()) + " " + fmt.Sprint(child.GetGeneration()); now != versions[name] {
			t.Errorf("%s was %s and is %s", name, versions[name], now)
		}
	}

	// Nothing at all to do: users see nothing of a restart.
	op.stop()
	get(t, cluster)
	resting := cluster.DeepCopy()
	told = said(t, cluster)
	op = startOperator(t, namespace, k.world)
	eventually(t, "the operator has looked at everything", func() string {
		if len(op.written(0)) == 0 {
			return "not yet"
		}
		return ""
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	awaitPhase(t, cluster, v1alpha1.PhasePaused, "")
	ready := func(c *v1alpha1.RedisCluster) *metav1.Condition {
		return meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	}
	if was, is := ready(resting), ready(cluster); !was.LastTransitionTime.Equal(&is.LastTransitionTime) {
		t.Errorf("a restart of the operator made the cluster not Ready for a while: %+v, then %+v", was, is)
	}
	told["Normal Paused"]++
	eventually(t, "nothing but the pause is told", func() string { return cmp.Diff(told, said(t, cluster)) })
}
