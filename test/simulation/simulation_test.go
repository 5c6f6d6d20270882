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
	"net"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/autoscale"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/test/crash"
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
	// written is how often the status was written, inForce the numbers of shards in it, one after the other; see autoscale.
	written int
	inForce []int
	// noRoom: nothing starts any more.
	noRoom    bool
	t         *testing.T
	random    *rand.Rand
	world     *redistest.World
	schedule  *schedule
	kube      client.WithWatch
	loop      *rediscluster.Loop
	memory    *rediscluster.Memory
	cluster   *v1alpha1.RedisCluster
	instances []*instance
	addresses int
	narrative []string
	// valkey makes instances that can move whole slots by themselves.
	valkey bool
	// template is the revision of the template that new pods get.
	template string
	// ports say what the template has of TLS, see portsFor. byTLS: applications connect by TLS.
	ports string
	byTLS bool
	// file is the ConfigMap child: redis.conf, which pods read when they start.
	file map[string]string
	// crash ends the operator's process in the middle of a reconciliation.
	crash context.CancelFunc
	// killer ends its processes at a write; nil: they live. process is the present one.
	killer  *crash.Killer
	process *crash.Process
	// kept are, by pod, the Redis of pods that were stopped, whose claims are still there.
	kept map[string]*redistest.Node
	// made counts the StatefulSets that were made for a shard that had none.
	made map[int]int
	// arrives is what is on its way to nodes, late what a process that is stopped will still send.
	arrives arrivals
	late    []func()
	// stale is what the operator is shown instead of the objects of a kind.
	stale stale
	// bringsBack gives StatefulSets their pods back, with their data, as soon as they are evicted.
	bringsBack bool
	// renders makes the template what the spec asks for; image is the one in it, empty: what the simulation was made with.
	renders bool
	image   string
	// encryption is nil without TLS.
	encryption *encryption
	// awaits reports whether a change that has no generation has been seen; nil: there was none.
	awaits func() bool
	// outside is the server that the cluster begins with; nil: none.
	outside *outside
	// kubelet does what is due; nil: nothing is.
	kubelet func()
	// gateways lead clients outside to the cluster; nil: none are let in.
	gateways *gateways
}

// TestMain collects garbage less often than usual: the heap is small, and a fifth of the time went into that.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func newSimulation(t *testing.T, seed uint64, perShard int) *simulation {
	t.Helper()
	return newSimulationOf(t, seed, perShard, false)
}

func newSimulationOf(t *testing.T, seed uint64, perShard int, valkey bool) *simulation {
	t.Helper()
	s := prepared(t, seed, perShard, valkey)
	s.populate()
	return s
}

// prepared is a simulation of a cluster of which there is nothing yet but the spec.
func prepared(t *testing.T, seed uint64, perShard int, valkey bool) *simulation {
	t.Helper()
	return preparedOn(t, newSchedule(t, seed), seed, perShard, valkey)
}

// preparedOn is prepared for one of several clusters: a bubble has one schedule.
func preparedOn(t *testing.T, schedule *schedule, seed uint64, perShard int, valkey bool) *simulation {
	t.Helper()
	var s *simulation
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	world := redistest.New(redistest.Options{Seed: seed, Clock: time.Now,
		LoadsCertificate: func(addr string, now time.Time) { s.encryption.load(addr, now) }})
	dial := schedule.dialer(world)
	// Who waits for a connection would get one in whatever order goroutines run: here nobody does.
	pool := redis.NewPool(redis.Options{MostConns: 100, Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dial(ctx, addr)
		if err != nil || s.encryption == nil || !world.TakesTLS(addr) {
			return conn, err
		}
		return s.encryption.wrap(conn, addr, s.wants(addr)), nil
	}})
	t.Cleanup(func() { pool.Close(); world.Close() })
	s = &simulation{
		t: t, schedule: schedule, made: map[int]int{}, kept: map[string]*redistest.Node{}, template: "v1", valkey: valkey,
		random: rand.New(rand.NewPCG(seed, 1)), world: world,
		// Nobody looks at managed fields, and keeping them takes longer than all the rest.
		kube: fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(clienttesting.NewObjectTracker(scheme,
			serializer.NewCodecFactory(scheme).UniversalDecoder())).
			WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: func(ctx context.Context, c client.Client, of string, o, body client.Object,
				options ...client.SubResourceCreateOption) error {
				if _, is := body.(*policyv1.Eviction); is {
					if err := s.allowsEviction(o); err != nil {
						return err
					}
				}
				return c.SubResource(of).Create(ctx, o, body, options...)
			}}).Build(),
		cluster: &v1alpha1.RedisCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "sim", Name: "c", UID: "uid", Finalizers: []string{v1alpha1.Finalizer}},
			Spec: v1alpha1.RedisClusterSpec{Replicas: ptr.To(int32(3 * perShard)), Shards: ptr.To[int32](3),
				Auth:          v1alpha1.Auth{Enabled: ptr.To(false)},
				SpreadMasters: ptr.To(false), Pod: []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}}}},
		},
	}
	s.loop = &rediscluster.Loop{
		Observer: &observe.Observer{Children: &s.stale, Clusters: s.kube, Secrets: s.kube, Redis: pool, Now: world.Now},
		Children: s,
		Actor:    &act.Actor{Client: s.kube, Applier: apply.New(s.kube, s.kube), Redis: pool, Now: world.Now}, Now: world.Now,
	}
	s.stale.Reader = s.kube
	s.replaceOperator()
	return s
}

// populate makes what the spec asks for, with pods whose Redis knows nobody.
func (s *simulation) populate() {
	s.t.Helper()
	s.render(s.cluster)
	s.ports = s.portsFor(redisconf.TLSGoal(s.cluster.TLSMode()))
	s.configure(redisconf.AskedFor(s.cluster, nil), redisconf.TLSFor(s.cluster))
	for shard, perShard := range s.cluster.Spec.Topology() {
		s.create(s.statefulSet(shard, int(perShard)))
		for ordinal := range int(perShard) {
			s.start(shard, ordinal)
		}
	}
}

func (s *simulation) say(format string, args ...any) {
	s.narrative = append(s.narrative, fmt.Sprintf(format, args...))
}

// replaceOperator starts the operator again: it remembers nothing.
func (s *simulation) replaceOperator() {
	s.memory, s.process = &rediscluster.Memory{}, s.killer.Begin()
}

// Compare stands for the chart and the API server, which has what is rendered at once: the file
// that pods read when they start, and the StatefulSets with their pods.
func (s *simulation) Compare(_ context.Context, _ *v1alpha1.RedisCluster, _ *snapshot.Snapshot, shape plan.Shape,
	_ *rediscluster.Memory) (rediscluster.Comparison, error) {
	s.render(s.cluster)
	s.configure(shape.Settings, shape.TLS)
	if ports := s.portsFor(shape.TLS.Stage); ports != s.ports && !s.cluster.Spec.Pause {
		s.ports = ports
		s.retemplate(s.template)
	}
	var compared rediscluster.Comparison
	if s.outside != nil {
		if compared.Objects = s.outside.rendered(shape.Topology); !s.outside.begun() {
			return compared, nil
		}
	}
	s.statefulSets(shape.Topology, shape.Dormant)
	if s.gateways != nil {
		s.gateways.rendered(shape, &compared)
	}
	return compared, nil
}

// reconcile runs the operator's loop once; it returns the step that was decided.
func (s *simulation) reconcile() plan.Step {
	ctx, end := context.WithCancel(s.t.Context())
	defer end()
	s.crash = end
	if s.kubelet != nil {
		s.kubelet()
	}
	if s.outside != nil {
		s.outside.control()
		s.outside.write()
	}
	cluster := s.seen()
	report, err := s.loop.Once(ctx, cluster, s.memory, observe.AnswerTimeout)
	if err != nil {
		s.t.Fatal(err)
	}
	step := report.Decision.Step
	if wait, waits := step.(plan.Wait); waits && wait.BlockedBy == "" {
		s.fail("a wait does not say what blocks it: %s", wait.Reason)
	}
	if report.Acted {
		s.say("%s: %s (error: %v)", step.Name(), step.Why(), report.Err)
	}
	if _, renewed := step.(plan.Recreate); renewed {
		s.replaced(false)
	}
	if s.bringsBack {
		s.replaced(true)
	}
	if s.outdated() && ctx.Err() == nil && !s.process.Died() {
		s.sweep()
		return step // the status is not written: the object has changed since
	}
	if s.process.Died() || ctx.Err() != nil || !s.statusWritten(&cluster.Status) {
		s.say("the operator crashed")
		s.replaceOperator()
		return step // and reported nothing
	}
	if s.process.Died() {
		s.replaceOperator()
	}
	s.sweep()
	return step
}

// observe is what the operator sees.
func (s *simulation) observe() *snapshot.Snapshot {
	s.t.Helper()
	snap, _, err := s.loop.Observer.Observe(s.t.Context(), s.cluster, &observe.Memory{}, observe.AnswerTimeout)
	if err != nil {
		s.t.Fatal(err)
	}
	return snap
}

// converge lets the operator and time work until nothing is left to do. No wait outlasts everything that could end it:
// elections, bans and the timeouts of engines come to their end within a minute, and what takes longer says how long (After).
func (s *simulation) converge() {
	s.t.Helper()
	const most, longest, soon = 400, 120, time.Second
	still, reason, acted := 0, "", 0
	for range most {
		step := s.reconcile()
		if plan.Is[plan.None](step) || plan.Is[plan.Sleep](step) {
			return
		}
		if s.outside.torn(step) {
			return
		}
		if plan.Is[plan.RolloutWait](step) {
			s.restartByHand()
		}
		wait, waits := step.(plan.Wait)
		if still++; !waits || wait.After > soon || wait.Reason != reason || len(s.narrative) != acted {
			still, acted, reason = 0, len(s.narrative), wait.Reason
		}
		if still == longest {
			s.fail("nothing ends this wait: %s", reason)
		}
		s.world.Run(time.Second)
	}
	last := s.reconcile()
	s.fail("not settled after %d reconciliations; last step %s: %s", most, last.Name(), last.Why())
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(s.narrative, "\n"), s.state())
}

// shards is how many there are to be.
func (s *simulation) shards() int {
	if s.cluster.Spec.Autoscale != nil {
		bounds, _ := autoscale.BoundsOf(s.cluster.Spec.Autoscale, s.world.Now())
		return int(s.cluster.ShardsInForce(0, bounds.Least))
	}
	return int(s.cluster.Spec.ShardCount())
}

// wantHealthy asserts that every slot has one owner, and every shard its replicas.
func (s *simulation) wantHealthy() {
	s.t.Helper()
	snap := s.observe()
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
	if shards := s.shards(); total != slots.Count || snap.Owned().Len() != slots.Count || len(snap.Masters()) != shards {
		s.fail("%d slots are owned by %d shards, %d of them distinct", total, len(snap.Masters()), snap.Owned().Len())
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
