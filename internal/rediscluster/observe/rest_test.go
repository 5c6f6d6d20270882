// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A cluster to which nothing happens is unchanged, however much its clients do; whatever happens to an instance is noticed.
func TestUnchanged(t *testing.T) {
	type world struct {
		*redistest.World
		nodes []*redistest.Node
		at    func(i int) *redis.Node
		ids   []string
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		happens   func(*testing.T, world)
		unchanged bool
	}{
		"nothing": {func(_ *testing.T, w world) { w.Run(time.Minute) }, true},
		"keys are written": {func(t *testing.T, w world) {
			check(t, w.at(0).ConfigSet(t.Context(), "maxmemory", "1gb"))
			w.Run(time.Second)
		}, true},
		"an instance does not answer": {func(_ *testing.T, w world) { w.Kill(w.nodes[2]) }, false},
		"a replica is led elsewhere":  {func(t *testing.T, w world) { check(t, w.at(2).Replicate(t.Context(), w.ids[1])) }, false},
		"a replica takes over": {func(t *testing.T, w world) {
			check(t, w.at(2).Failover(t.Context(), redis.FailoverForce))
			w.Run(time.Minute)
		}, false},
		"a stranger joins": {func(t *testing.T, w world) {
			w.AddNode(redistest.NodeOptions{IP: "10.0.0.9"})
			check(t, w.at(1).Meet(t.Context(), "10.0.0.9", 6379, 16379))
			w.Run(time.Second)
		}, false},
		"a slot is opened": {func(t *testing.T, w world) {
			check(t, w.at(0).SetSlots(t.Context(), slots.Range(0, 0), redis.SlotMigrating, w.ids[1]))
		}, false},
		"a slot changes hands": {func(t *testing.T, w world) {
			check(t, w.at(1).SetSlots(t.Context(), slots.Range(0, 0), redis.SlotOwned, w.ids[1]))
			check(t, w.at(0).SetSlots(t.Context(), slots.Range(0, 0), redis.SlotOwned, w.ids[1]))
			w.Run(time.Second)
		}, false},
		"a reply is an error": {func(_ *testing.T, w world) {
			for range 2 {
				w.FailNext(w.nodes[1], "INFO", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{statefulSet(nil), statefulSet(func(s *appsv1.StatefulSet) { s.Name, s.UID = "c-1", "set1" })}
			for i, name := range []string{"c-0-0", "c-1-0", "c-0-1"} {
				objects = append(objects, pod(func(p *corev1.Pod) {
					p.Name, p.Status.PodIP = name, "10.0.0."+strconv.Itoa(1+i)
					if i == 1 {
						p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "c-1", "set1"
					}
				}))
			}
			o, _, simulated := newObserver(t, interceptor.Funcs{}, objects...)
			w := world{World: simulated, at: func(i int) *redis.Node {
				return o.Redis.Node("10.0.0."+strconv.Itoa(1+i)+":6379", redis.Credentials{})
			}}
			c := cluster()
			c.Spec.Auth.Enabled = new(false)
			for i, name := range []string{"c-0-0", "c-1-0", "c-0-1"} {
				w.nodes = append(w.nodes, w.AddNode(redistest.NodeOptions{IP: "10.0.0." + strconv.Itoa(1+i),
					Hostname: name + "." + c.HeadlessServiceName() + ".n.svc"}))
				id, err := w.at(i).Identify(t.Context())
				check(t, err)
				w.ids = append(w.ids, id)
			}
			check(t, w.at(0).AddSlots(t.Context(), slots.Range(0, 8191)))
			check(t, w.at(1).AddSlots(t.Context(), slots.Range(8192, 16383)))
			check(t, w.at(0).Meet(t.Context(), "10.0.0.2", 6379, 16379))
			check(t, w.at(0).Meet(t.Context(), "10.0.0.3", 6379, 16379))
			w.Run(time.Second)
			check(t, w.at(2).Replicate(t.Context(), w.ids[0]))
			w.Run(10 * time.Second)

			s, err := o.Observe(t.Context(), c)
			check(t, err)
			rest := RestOf(s, 2) // the first master is asked for its table
			if rest == nil {
				t.Fatal("there is nothing to compare with")
			}
			if same, _ := o.Unchanged(t.Context(), c, &o.Memory, rest, AnswerTimeout); !same {
				t.Fatal("it is not unchanged before anything happens")
			}
			tt.happens(t, w)
			if got, _ := o.Unchanged(t.Context(), c, &o.Memory, rest, time.Second); got != tt.unchanged {
				t.Errorf("unchanged: %t, want %t", got, tt.unchanged)
			}
		})
	}
}

// Every master is asked, however many there are, and one of them, each in its turn, for its table.
func TestMastersAreAsked(t *testing.T) {
	o, _, world := newObserver(t, interceptor.Funcs{})
	const masters = 2*inTurn + 1
	s := &snapshot.Snapshot{}
	for i := range 2 * masters {
		ip := "10.0.0." + strconv.Itoa(1+i)
		world.AddNode(redistest.NodeOptions{IP: ip})
		id, err := o.Redis.Node(ip+":6379", redis.Credentials{}).Identify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		in := snapshot.Instance{Name: "c-" + strconv.Itoa(i), IP: ip, Redis: &snapshot.Redis{NodeID: id, Master: i%2 == 0}}
		s.Instances = append(s.Instances, in)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	world.OnCommand(func(_ *redistest.Node, args []string) {
		mu.Lock()
		defer mu.Unlock()
		asked[args[0]]++
	})
	tellers := map[int]bool{}
	for turn := range masters {
		clear(asked)
		rest := RestOf(s, turn)
		tellers[rest.teller] = true
		same, _ := o.Unchanged(t.Context(), cluster(), &o.Memory, rest, AnswerTimeout)
		if !same || asked["INFO"] != masters || asked["CLUSTER"] != 1 {
			t.Errorf("turn %d: unchanged: %t, asked %v", turn, same, asked)
		}
	}
	if len(tellers) != masters {
		t.Errorf("%d masters were asked for their table, want each of %d", len(tellers), masters)
	}
}

// Nothing is compared with what is not known.
func TestRestNeedsAllInstances(t *testing.T) {
	master := snapshot.Instance{Name: "a", Redis: &snapshot.Redis{Master: true}}
	replica := snapshot.Instance{Name: "b", Redis: &snapshot.Redis{}}
	for name, tt := range map[string]struct {
		instances []snapshot.Instance
		want      bool
	}{
		"all":         {[]snapshot.Instance{master, replica}, true},
		"one unknown": {[]snapshot.Instance{master, {Name: "b"}}, false},
		"no master":   {[]snapshot.Instance{replica}, false},
		"none":        {nil, false},
	} {
		if got := RestOf(&snapshot.Snapshot{Instances: tt.instances}, 1) != nil; got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// Who keeps the operator waiting at a brief look is charged for it.
func TestWaitingAtRestIsCharged(t *testing.T) {
	o, _, world := newObserver(t, interceptor.Funcs{})
	node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1"})
	rest := &Rest{masters: []snapshot.Instance{{Name: "c-0-0", IP: "10.0.0.1"}}, health: make([]redis.Health, 1), table: &snapshot.Redis{}}
	world.FailNext(node, "INFO", redistest.Failure{Kind: redistest.Hang})
	if same, waited := o.Unchanged(t.Context(), cluster(), &o.Memory, rest, time.Second); same || waited < time.Second/2 {
		t.Errorf("unchanged: %t, charged %s", same, waited)
	}
}

// told is what a watch tells of everything.
type told byname.State

func (t told) State([]byname.Seen) byname.State { return byname.State(t) }

// read is a reading of a Secret, a while ago.
func read(t *testing.T, age time.Duration) byname.Reading {
	t.Helper()
	reads := &byname.Reads{Reader: fake.NewClientBuilder().Build()}
	_ = reads.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "a"}, &corev1.Secret{}) // that there is none is seen as well
	return reads.At(now.Add(-age))
}

// What is read by name is read again when it has changed, and where nobody tells, when it is a minute old; also of a cluster at rest.
func TestDue(t *testing.T) {
	const recent, old = 59 * time.Second, time.Minute
	put := func(age time.Duration) func(*Memory) {
		return func(m *Memory) { m.access.Put(access.Reading{}, read(t, age)) }
	}
	named := func(age time.Duration) func(*Memory) {
		return func(m *Memory) { m.config = configRead{name: "a", read: read(t, age)} }
	}
	certified := func(age time.Duration, until time.Time) func(*Memory) {
		return func(m *Memory) { m.certificate = certificate{tls: &redis.TLS{}, read: read(t, age), until: until} }
	}
	for name, tt := range map[string]struct {
		memory func(*Memory)
		told   byname.State
		off    bool // neither a password nor TLS is asked for any more
		want   bool
	}{
		"the Secret of a password that was switched off has changed": {memory: put(0), told: byname.Changed, off: true},
		"the certificate of TLS that was switched off has changed":   {memory: certified(0, time.Time{}), told: byname.Changed, off: true},
		"nothing was read":           {memory: func(*Memory) {}},
		"the Secret is recent":       {memory: put(recent)},
		"the Secret is old":          {memory: put(old), want: true},
		"the Secret is old and same": {memory: put(24 * time.Hour), told: byname.Same},
		"the Secret has changed":     {memory: put(0), told: byname.Changed, want: true},
		"the Secret is to be read": {memory: func(m *Memory) {
			m.access.Put(access.Reading{}, read(t, 0))
			m.ExpireAccess()
		}, told: byname.Same, want: true},
		"the ConfigMap is recent":         {memory: named(recent)},
		"the ConfigMap is old":            {memory: named(old), want: true},
		"the ConfigMap is old and same":   {memory: named(old), told: byname.Same},
		"the ConfigMap has changed":       {memory: named(0), told: byname.Changed, want: true},
		"another ConfigMap has changed":   {memory: func(m *Memory) { m.config = configRead{name: "b"} }, told: byname.Changed},
		"the certificate is old":          {memory: certified(old, time.Time{}), want: true},
		"the certificate is old and same": {memory: certified(old, now.Add(1)), told: byname.Same},
		"the certificate expires now":     {memory: certified(0, now), told: byname.Same, want: true},
	} {
		o, _, _ := newObserver(t, interceptor.Funcs{})
		o.Watched, o.Now = told(tt.told), func() time.Time { return now }
		c := cluster()
		c.Spec.Pod = []v1alpha1.PodTemplate{{Configmap: "a"}}
		c.Spec.TLS = &v1alpha1.TLS{SecretName: "a"}
		if tt.off {
			c.Spec.TLS, c.Spec.Auth.Enabled = nil, new(false)
		}
		var m Memory
		tt.memory(&m)
		if got := o.Due(c, &m); got != tt.want {
			t.Errorf("%s: due %t, want %t", name, got, tt.want)
		}
	}
}
