// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs observing, planning and acting against a simulated Redis Cluster
// that speaks RESP, until nothing is left to do: many seeds, damage of every kind, commands
// that fail half-way. What it asserts is what users care about: the cluster comes back,
// and no data is lost that any instance still holds.
package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/slots"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// nodeTimeout is what the cluster asks for; a new one forms with a shorter one.
const nodeTimeout = 5 * time.Second

// instance is a pod and the Redis in it.
type instance struct {
	pod  *corev1.Pod
	node *redistest.Node
}

// simulation is a cluster of 3 shards, the operator's parts, and a narrative of what they did.
type simulation struct {
	t         *testing.T
	random    *rand.Rand
	world     *redistest.World
	kube      client.Client
	observer  *observe.Observer
	actor     *act.Actor
	cluster   *v1alpha1.RedisCluster
	instances []*instance
	addresses int
	narrative []string
	// valkey makes instances that can move whole slots by themselves.
	valkey bool
	// crash ends the operator's process in the middle of a pass.
	crash context.CancelFunc
}

func newSimulation(t *testing.T, seed uint64, perShard int) *simulation {
	t.Helper()
	return newSimulationOf(t, seed, perShard, false)
}

func newSimulationOf(t *testing.T, seed uint64, perShard int, valkey bool) *simulation {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	world := redistest.New(redistest.Options{Seed: seed})
	pool := redis.NewPool(redis.Options{Dialer: world.Dial, DialTimeout: 2 * time.Second, IOTimeout: 2 * time.Second})
	t.Cleanup(func() { pool.Close(); world.Close() })
	s := &simulation{
		t: t, valkey: valkey, random: rand.New(rand.NewPCG(seed, 1)), world: world,
		kube: fake.NewClientBuilder().WithScheme(scheme).Build(),
		cluster: &v1alpha1.RedisCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "sim", Name: "c", UID: "uid", Finalizers: []string{v1alpha1.Finalizer}},
			Spec:       v1alpha1.RedisClusterSpec{Replicas: ptr.To(int32(3 * perShard)), Shards: ptr.To[int32](3), Auth: v1alpha1.Auth{Enabled: ptr.To(false)}},
		},
	}
	s.observer = &observe.Observer{Children: s.kube, Secrets: s.kube, Redis: pool, Now: world.Now}
	s.actor = &act.Actor{Client: s.kube, Redis: pool, Now: world.Now}
	for shard := range 3 {
		s.create(s.statefulSet(shard, perShard))
		for ordinal := range perShard {
			s.start(shard, ordinal)
		}
	}
	return s
}

func (s *simulation) create(object client.Object) {
	if err := s.kube.Create(s.t.Context(), object); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulation) labels(shard int) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: s.cluster.Name, v1alpha1.LabelShard: fmt.Sprint(shard)}
}

func (s *simulation) statefulSet(shard, replicas int) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: s.cluster.ShardName(shard), Labels: s.labels(shard),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "RedisCluster", Name: "c", UID: s.cluster.UID, Controller: ptr.To(true)}}},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(replicas))},
	}
}

// statefulSets makes the StatefulSets be as the chart renders them for a topology, and
// starts the pods that they ask for: what the API server and its controllers do.
func (s *simulation) statefulSets(topology v1alpha1.Topology) {
	for shard, replicas := range topology {
		set := s.statefulSet(shard, int(replicas))
		if err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(set), set); apierrors.IsNotFound(err) {
			s.create(set)
		} else if *set.Spec.Replicas != replicas {
			set.Spec.Replicas = ptr.To(replicas)
			if err := s.kube.Update(s.t.Context(), set); err != nil {
				s.t.Fatal(err)
			}
		}
		for ordinal := range int(replicas) {
			if s.find(fmt.Sprintf("%s-%d", set.Name, ordinal)) == nil {
				s.start(shard, ordinal)
			}
		}
	}
}

// sweep stops the pods that no StatefulSet asks for.
func (s *simulation) sweep() {
	var sets appsv1.StatefulSetList
	if err := s.kube.List(s.t.Context(), &sets); err != nil {
		s.t.Fatal(err)
	}
	wanted := map[string]bool{}
	for i := range sets.Items {
		for ordinal := range int(*sets.Items[i].Spec.Replicas) {
			wanted[fmt.Sprintf("%s-%d", sets.Items[i].Name, ordinal)] = true
		}
	}
	s.instances = slices.DeleteFunc(s.instances, func(in *instance) bool {
		if wanted[in.pod.Name] {
			return false
		}
		s.world.Kill(in.node)
		if err := s.kube.Delete(s.t.Context(), in.pod); err != nil {
			s.t.Fatal(err)
		}
		s.say("%s is gone", in.pod.Name)
		return true
	})
}

// start makes a pod with a fresh Redis.
func (s *simulation) start(shard, ordinal int) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: fmt.Sprintf("%s-%d", s.cluster.ShardName(shard), ordinal), Labels: s.labels(shard),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: s.cluster.ShardName(shard), UID: types.UID(fmt.Sprint(shard)), Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node%d", (shard+ordinal)%3)},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: s.address(),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	s.create(pod)
	s.instances = append(s.instances, &instance{pod: pod, node: s.world.AddNode(redistest.NodeOptions{IP: pod.Status.PodIP, Valkey: s.valkey})})
}

func (s *simulation) address() string {
	s.addresses++
	return fmt.Sprintf("10.0.%d.%d", s.addresses/250, 1+s.addresses%250)
}

// restart gives a pod a new address, as a deleted pod of a StatefulSet gets.
func (s *simulation) restart(in *instance, keepsData bool) {
	in.pod.Status.PodIP = s.address()
	if err := s.kube.Status().Update(s.t.Context(), in.pod); err != nil {
		s.t.Fatal(err)
	}
	s.world.Restart(in.node, in.pod.Status.PodIP, keepsData)
	s.say("restart %s at %s, data kept: %v", in.pod.Name, in.pod.Status.PodIP, keepsData)
}

func (s *simulation) say(format string, args ...any) {
	s.narrative = append(s.narrative, fmt.Sprintf(format, args...))
}

// pass is one pass of the operator; it returns the step that was decided.
func (s *simulation) pass() plan.Step {
	ctx, crash := context.WithCancel(s.t.Context())
	defer crash()
	s.crash = crash
	snap, err := s.observer.Observe(ctx, s.cluster)
	if err != nil {
		s.t.Fatal(err)
	}
	desired := plan.Desired{Topology: s.cluster.Spec.Topology(), HasFinalizer: true, NodeTimeout: nodeTimeout,
		AssignReceive: s.cluster.Spec.UpdateStrategy.Type == v1alpha1.AssignReceive}
	for _, entry := range s.cluster.Spec.UpdateStrategy.AssignStrategies {
		desired.Gifts = append(desired.Gifts, plan.Gift{Slots: int(entry.Slots), From: entry.From()})
	}
	decision := plan.Decide(desired, snap, s.world.Now())
	s.statefulSets(decision.Topology)
	subject := act.Subject{Cluster: s.cluster, Credentials: s.observer.Credentials(s.cluster)}
	result, err := s.actor.Do(ctx, subject, decision.Step)
	if result.Acted {
		s.say("%s: %s (error: %v)", decision.Step.Name(), decision.Step.Why(), err)
	}
	if ctx.Err() != nil {
		s.say("the operator crashed")
		return decision.Step // and reported nothing
	}
	s.cluster.Status = status.Compute(s.cluster, status.Pass{Snapshot: snap, Decision: decision, Err: err, KeysMoved: result.KeysMoved}, s.world.Now())
	s.sweep()
	return decision.Step
}

// converge lets the operator and time work until nothing is left to do.
func (s *simulation) converge() {
	s.t.Helper()
	const most = 400
	for range most {
		if _, done := s.pass().(plan.None); done {
			return
		}
		s.world.Run(time.Second)
	}
	last := s.pass()
	s.fail("not settled after %d passes; last step %s: %s", most, last.Name(), last.Why())
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(s.narrative, "\n"))
}

// wantWhole asserts that every slot has one owner, and every shard its replicas.
func (s *simulation) wantWhole() {
	s.t.Helper()
	snap, err := s.observer.Observe(s.t.Context(), s.cluster)
	if err != nil {
		s.t.Fatal(err)
	}
	total := 0
	for _, in := range snap.Reachable() {
		total += in.Redis.Slots.Len()
		if in.Redis.NodeTimeout != nodeTimeout {
			s.fail("%s has a node timeout of %s, want %s", in.Name, in.Redis.NodeTimeout, nodeTimeout)
		}
		if len(in.Redis.Peers) != len(s.instances)-1 {
			s.fail("%s knows %d nodes, want %d", in.Name, len(in.Redis.Peers), len(s.instances)-1)
		}
	}
	if shards := int(s.cluster.Spec.ShardCount()); total != slots.Count || snap.Owned().Len() != slots.Count || len(snap.Masters()) != shards {
		s.fail("%d slots are owned by %d shards, %d of them distinct", total, len(snap.Masters()), snap.Owned().Len())
	}
}

// write puts one key into each shard and waits until the replicas have it.
func (s *simulation) write(generation int) {
	s.t.Helper()
	for key := range 12 {
		name := fmt.Sprintf("key:%d", key)
		if !s.set(name, fmt.Sprint(generation)) {
			s.fail("no instance takes %s", name)
		}
	}
	s.world.Run(2 * time.Second)
}

// set writes through whichever instance owns the key's slot.
func (s *simulation) set(key, value string) bool {
	for _, in := range s.instances {
		conn, err := s.world.Dial(s.t.Context(), in.node.Addr())
		if err != nil {
			continue
		}
		_, _ = fmt.Fprintf(conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
		answer := make([]byte, 128)
		n, _ := conn.Read(answer)
		_ = conn.Close()
		if strings.HasPrefix(string(answer[:n]), "+OK") {
			return true
		}
	}
	return false
}

// wantData asserts that the masters hold the generation of every key of these shards.
func (s *simulation) wantData(generation int, shards map[int]bool) {
	s.t.Helper()
	snap, err := s.observer.Observe(s.t.Context(), s.cluster)
	if err != nil {
		s.t.Fatal(err)
	}
	masters := snap.Masters()
	for key := range 12 {
		name := fmt.Sprintf("key:%d", key)
		slot := slots.KeySlot(name)
		for shard, master := range masters {
			if !master.Redis.Slots.Contains(slot) || !shards[shard] {
				continue
			}
			if got := s.named(master.Name).node.Keys()[name]; got != fmt.Sprint(generation) {
				s.fail("%s of shard %d is %q at %s, want generation %d", name, shard, got, master.Name, generation)
			}
		}
	}
}

func (s *simulation) named(pod string) *instance {
	in := s.find(pod)
	if in == nil {
		s.t.Fatalf("no instance %s", pod)
	}
	return in
}

// find is nil when there is no such pod.
func (s *simulation) find(pod string) *instance {
	for _, in := range s.instances {
		if in.pod.Name == pod {
			return in
		}
	}
	return nil
}

// damage kills and restarts instances at random. It returns the shards of which some
// instance kept its data, and whether the time for an election is needed.
func (s *simulation) damage() map[int]bool {
	kept := map[int]bool{}
	for i, in := range s.instances {
		shard := i / (len(s.instances) / 3)
		switch s.random.IntN(4) {
		case 0:
			s.restart(in, false)
		case 1:
			s.restart(in, true)
			kept[shard] = true
		default:
			kept[shard] = true
		}
	}
	return kept
}

// unreliable makes commands of the next passes fail now and then, before or after they
// take effect.
func (s *simulation) unreliable() {
	commands := []string{"CLUSTER MEET", "CLUSTER ADDSLOTSRANGE", "CLUSTER REPLICATE", "CLUSTER FORGET", "CLUSTER FAILOVER", "CLUSTER MYID"}
	kinds := []redistest.FailureKind{redistest.ReplyError, redistest.DropBefore, redistest.DropAfter}
	for _, in := range s.instances {
		if s.random.IntN(2) == 0 {
			s.world.FailNext(in.node, commands[s.random.IntN(len(commands))],
				redistest.Failure{Kind: kinds[s.random.IntN(len(kinds))], Reply: "ERR made to fail"})
		}
	}
}

func TestFormsUnderFailingCommands(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, seed, 1+int(seed%3))
			s.unreliable()
			s.converge()
			s.wantWhole()
		})
	}
}

// Whatever is damaged, the cluster comes back whole, and with the data of every shard of
// which one instance kept its disk.
func TestHealsAnyDamage(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, seed, 2+int(seed%2))
			s.converge()
			for generation := range 3 {
				s.write(generation)
				kept := s.damage()
				if s.random.IntN(2) == 0 {
					s.unreliable()
				}
				s.converge()
				s.wantWhole()
				s.wantData(generation, kept)
			}
		})
	}
}

// Nothing is forgotten, taken over or formed while an instance cannot be reached: it may
// hold the only copy.
func TestUnknownIsNotAbsent(t *testing.T) {
	s := newSimulation(t, 7, 2)
	s.converge()
	s.write(1)
	first, second := s.named("c-0-0"), s.named("c-0-1")
	s.world.Partition(first.node, second.node)
	s.narrative = nil
	for range 30 {
		switch step := s.pass().(type) {
		case plan.Wait, plan.None:
		default:
			s.fail("%s while a whole shard cannot be reached: %s", step.Name(), step.Why())
		}
		s.world.Run(time.Second)
	}
	s.world.Heal()
	s.converge()
	s.wantWhole()
	s.wantData(1, map[int]bool{0: true, 1: true, 2: true})
}
