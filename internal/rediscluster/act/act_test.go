// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// bench is three simulated nodes and an actor.
type bench struct {
	t       *testing.T
	world   *redistest.World
	nodes   []*redistest.Node
	targets []plan.Target
	pool    *redis.Pool
	actor   *Actor
	subject Subject
}

func newBench(t *testing.T, fails interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, world: redistest.New(redistest.Options{InstantGossip: true})}
	b.pool = redis.NewPool(redis.Options{Dialer: b.world.Dial, DialTimeout: time.Minute, IOTimeout: time.Minute})
	t.Cleanup(func() { b.pool.Close(); b.world.Close() })
	for i := range 3 {
		node := b.world.AddNode(redistest.NodeOptions{IP: fmt.Sprintf("10.0.0.%d", i+1)})
		b.nodes = append(b.nodes, node)
		b.targets = append(b.targets, plan.Target{Pod: fmt.Sprintf("c-%d-0", i), IP: fmt.Sprintf("10.0.0.%d", i+1), NodeID: node.ID()})
	}
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, cluster)...).WithInterceptorFuncs(fails).Build()
	b.actor = &Actor{Client: kube, Redis: b.pool, Now: time.Now}
	b.subject = Subject{Cluster: cluster}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) do(step plan.Step) error {
	b.t.Helper()
	_, err := b.actor.Do(b.t.Context(), b.subject, step)
	return err
}

func (b *bench) must(step plan.Step) {
	b.t.Helper()
	if err := b.do(step); err != nil {
		b.t.Fatalf("%s: %v", step.Name(), err)
	}
}

// knows are the other nodes that a node knows, by number.
func (b *bench) knows(i int) []int {
	b.t.Helper()
	view := b.view(i)
	var known []int
	for j, node := range b.nodes {
		if _, ok := view.Peer(node.ID()); ok && j != i {
			known = append(known, j)
		}
	}
	return known
}

func (b *bench) view(i int) redis.View {
	b.t.Helper()
	view, err := b.pool.Node(b.nodes[i].Addr(), redis.Credentials{}).Describe(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return view
}

// meetAll introduces all three nodes to each other.
func (b *bench) meetAll() {
	b.t.Helper()
	b.must(plan.Meet{
		Meetings: []plan.Meeting{{From: b.targets[0], To: b.targets[1]}, {From: b.targets[0], To: b.targets[2]},
			{From: b.targets[1], To: b.targets[2]}}})
}

func TestRedisSteps(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.must(plan.AssignSlots{Assignments: []plan.Assignment{
		{To: b.targets[0], Slots: slots.Range(0, 9000), Epoch: 1}, {To: b.targets[1], Slots: slots.Range(9001, 16383), Epoch: 2}}})
	b.meetAll()
	b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}})
	b.world.Run(2 * time.Second)
	if first, last := b.view(0), b.view(2); first.Slots.Len() != 9001 || first.ConfigEpoch != 1 || last.MasterID != b.nodes[0].ID() {
		t.Errorf("%d slots, epoch %d, master %s", first.Slots.Len(), first.ConfigEpoch, last.MasterID)
	}
	b.must(plan.BumpEpoch{On: b.targets[0]})
	if epoch := b.view(0).ConfigEpoch; epoch <= 2 {
		t.Errorf("the new epoch is %d", epoch)
	}
	b.world.Kill(b.nodes[0])
	b.must(plan.Promote{Replica: b.targets[2], Takeover: true})
	b.must(plan.Forget{NodeIDs: []string{b.nodes[0].ID()}, On: b.targets[1:]})
	if view := b.view(2); view.Slots.Len() != 9001 || view.Role != redis.RoleMaster {
		t.Errorf("the replica that took over is %s of %d slots", view.Role, view.Slots.Len())
	}
	for _, i := range []int{1, 2} {
		if diff := cmp.Diff([]int{3 - i}, b.knows(i)); diff != "" {
			t.Errorf("node %d knows (-want +got):\n%s", i, diff)
		}
	}
}

// Masters begin with the epochs that they are given. Each instance is asked once who it is, however many it meets.
func TestFormsWithFewCommands(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	told := b.told("CLUSTER SET-CONFIG-EPOCH")
	b.must(plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[0], Slots: slots.Of(0), Epoch: 1},
		{To: b.targets[1], Slots: slots.Of(1), Epoch: 2}, {To: b.targets[2], Slots: slots.Of(2)}}})
	slices.Sort(*told)
	if diff := cmp.Diff([]string{"0: CLUSTER SET-CONFIG-EPOCH 1", "1: CLUSTER SET-CONFIG-EPOCH 2"}, *told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	asked := b.told("CLUSTER MYID")
	b.meetAll()
	if len(*asked) != 3 {
		t.Errorf("asked %q", *asked)
	}
}

// A turn that is taken is something new to observe, and one that is waited for is not. A step that nobody carries out is not done.
func TestWhatIsSaidToBeDone(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	for wave, acted := range []bool{false, true} {
		if result, err := b.actor.Do(t.Context(), b.subject, plan.TakeTurn{Wave: wave}); err != nil || result.Acted != acted {
			t.Errorf("wave %d: %+v, %v", wave, result, err)
		}
	}
	if err := b.actor.do(t.Context(), b.subject, plan.None{}); err == nil {
		t.Error("no error")
	}
}

// A master is silent while it switches over, and not any longer.
func TestSwitchoverSuppressesPings(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.must(plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[0], Slots: slots.All(), Epoch: 1}}})
	b.meetAll()
	b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}})
	b.world.Run(2 * time.Second)
	var told []string
	b.world.OnCommand(func(n *redistest.Node, args []string) {
		if command := strings.Join(args, " "); strings.HasPrefix(command, "CONFIG SET") || strings.HasPrefix(command, "CLUSTER FAILOVER") {
			told = append(told, fmt.Sprintf("%d: %s", slices.Index(b.nodes, n), command))
		}
	})
	b.must(plan.Switchover{Master: b.targets[0], Replica: b.targets[2]})
	if diff := cmp.Diff([]string{"0: CONFIG SET dynamic-hz no hz 1", "2: CLUSTER FAILOVER", "0: CONFIG SET dynamic-hz yes hz 10"},
		told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A replica with a full disk would end as soon as it is a master, and with it what both have in memory only.
func TestSwitchoverOnlyToADiskThatCanBeWritten(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.must(plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[0], Slots: slots.All(), Epoch: 1}}})
	b.meetAll()
	b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}})
	b.world.Run(2 * time.Second)
	b.world.FailNext(b.nodes[2], "CLUSTER SAVECONFIG", redistest.Failure{
		Kind: redistest.ReplyError, Reply: "ERR error saving the cluster node config: No space left on device"})
	err := b.do(plan.Switchover{Master: b.targets[0], Replica: b.targets[2]})
	if err == nil || !strings.Contains(err.Error(), b.targets[2].Pod+" cannot take over") || b.view(0).Role != redis.RoleMaster {
		t.Errorf("got %v, and node 0 is %s", err, b.view(0).Role)
	}
}

// Before a node is told anything it must be the one that was observed: nothing is sent to another, and a MEET is not sent
// about another either.
func TestIdentityMismatch(t *testing.T) {
	stranger := func(b *bench, i int) plan.Target {
		wrong := b.targets[i]
		wrong.NodeID = strings.Repeat("f", 40)
		return wrong
	}
	for name, step := range map[string]func(*bench) plan.Step{
		"assign": func(b *bench) plan.Step {
			return plan.AssignSlots{Assignments: []plan.Assignment{{To: stranger(b, 1), Slots: slots.All()}}}
		},
		"meet from": func(b *bench) plan.Step {
			return plan.Meet{Meetings: []plan.Meeting{{From: stranger(b, 1), To: b.targets[0]}}}
		},
		"meet to": func(b *bench) plan.Step {
			return plan.Meet{Meetings: []plan.Meeting{{From: b.targets[0], To: stranger(b, 1)}}}
		},
		"meet, one of several": func(b *bench) plan.Step {
			return plan.Meet{Meetings: []plan.Meeting{{From: b.targets[0], To: b.targets[2]}, {From: b.targets[2], To: stranger(b, 1)}}}
		},
		"replicate": func(b *bench) plan.Step {
			return plan.Replicate{Replications: []plan.Replication{{Replica: stranger(b, 1), MasterID: b.targets[0].NodeID}}}
		},
		"promote": func(b *bench) plan.Step { return plan.Promote{Replica: stranger(b, 1), Takeover: true} },
		"forget": func(b *bench) plan.Step {
			return plan.Forget{NodeIDs: []string{b.targets[0].NodeID}, On: []plan.Target{stranger(b, 1)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			err := b.do(step(b))
			if err == nil || !strings.Contains(err.Error(), "c-1-0 at 10.0.0.2 is node "+b.nodes[1].ID()+" now, and was node ffff") {
				t.Errorf("got %v", err)
			}
			for i := range b.nodes {
				if view := b.view(i); len(b.knows(i)) > 0 || view.Slots.Len() > 0 || view.Role != redis.RoleMaster {
					t.Errorf("node %d was told something", i)
				}
			}
		})
	}
}

// FORGET goes to every instance, and a node that is unknown there is forgotten already.
func TestForget(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.meetAll()
	b.world.Kill(b.nodes[2])
	gone := []string{b.nodes[2].ID(), strings.Repeat("0", 40)}
	b.must(plan.Forget{NodeIDs: gone, On: b.targets[:2]})
	b.must(plan.Forget{NodeIDs: gone, On: b.targets[:2]})
	for i := range 2 {
		if diff := cmp.Diff([]int{1 - i}, b.knows(i)); diff != "" {
			t.Errorf("node %d knows (-want +got):\n%s", i, diff)
		}
	}
}

// What fails names the pod, and doing the step again completes it.
func TestPartialFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		command string
		step    func(*bench) plan.Step
		pod     string
	}{
		"assign": {"CLUSTER ADDSLOTSRANGE", func(b *bench) plan.Step {
			return plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[1], Slots: slots.Range(0, 99)}}}
		}, "to c-1-0"},
		"epoch": {"CLUSTER SET-CONFIG-EPOCH", func(b *bench) plan.Step {
			return plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[1], Slots: slots.Range(0, 99), Epoch: 2}}}
		}, "epoch of c-1-0"},
		"identify": {"CLUSTER MYID", func(b *bench) plan.Step {
			return plan.Meet{Meetings: []plan.Meeting{{From: b.targets[1], To: b.targets[0]}}}
		}, "identify c-1-0"},
		"meet": {"CLUSTER MEET", func(b *bench) plan.Step {
			return plan.Meet{Meetings: []plan.Meeting{{From: b.targets[0], To: b.targets[2]}, {From: b.targets[1], To: b.targets[2]}}}
		}, "to c-1-0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.world.FailNext(b.nodes[1], tt.command, redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR made to fail"})
			err := b.do(tt.step(b))
			if err == nil || !strings.Contains(err.Error(), tt.pod) || !strings.Contains(err.Error(), "made to fail") {
				t.Errorf("got %v, want an error that says %q", err, tt.pod)
			}
			b.must(tt.step(b))
		})
	}
}

func set(name string, owner *metav1.OwnerReference) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{v1alpha1.LabelCluster: "c"}}}
	if owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return s
}

var (
	ours = &metav1.OwnerReference{APIVersion: "redis.middleware.hc.cn/v1alpha1", Kind: "RedisCluster", Name: "c", UID: "uid",
		Controller: new(true)}
	theirs = &metav1.OwnerReference{APIVersion: "redis.middleware.hc.cn/v1alpha1", Kind: "RedisCluster", Name: "c", UID: "former",
		Controller: new(true)}
)

// Only what names this very RedisCluster as its owner is deleted or let go.
func TestChildrenOfOthersStay(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, set("c-0", ours), set("c-1", theirs), set("c-2", nil))
	b.subject.Cluster.Spec.Auth.Enabled = new(false)
	owners := func() map[string]int {
		var sets appsv1.StatefulSetList
		if err := b.actor.Client.List(t.Context(), &sets); err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for i := range sets.Items {
			found[sets.Items[i].Name] = len(sets.Items[i].OwnerReferences)
		}
		return found
	}
	b.must(plan.OrphanChildren{})
	if diff := cmp.Diff(map[string]int{"c-0": 0, "c-1": 1, "c-2": 0}, owners()); diff != "" {
		t.Errorf("owners after orphaning (-want +got):\n%s", diff)
	}
	b = newBench(t, interceptor.Funcs{}, set("c-0", ours), set("c-1", theirs), set("c-2", nil))
	b.must(plan.DeleteChildren{})
	if diff := cmp.Diff(map[string]int{"c-1": 1, "c-2": 0}, owners()); diff != "" {
		t.Errorf("left after deletion (-want +got):\n%s", diff)
	}
}

// Owner references of other writers stay.
func TestOrphanKeepsOtherOwners(t *testing.T) {
	shared := set("c-0", ours)
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	shared.OwnerReferences = append(shared.OwnerReferences, other)
	b := newBench(t, interceptor.Funcs{}, shared)
	b.must(plan.OrphanChildren{})
	var now appsv1.StatefulSet
	if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(shared), &now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{other}, now.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// The cache may not show yet what was made last: the API server is asked before the object goes, where what is left would be
// deleted too late, or against the user's wish.
func TestDeletionSeesWhatTheCacheDoesNot(t *testing.T) {
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionForeground, v1alpha1.DeletionBackground, v1alpha1.DeletionOrphan} {
		b := newBench(t, interceptor.Funcs{}, set("c-0", ours))
		b.must(plan.AddFinalizer{})
		key := client.ObjectKeyFromObject(b.subject.Cluster)
		if err := b.actor.Client.Get(t.Context(), key, b.subject.Cluster); err != nil {
			t.Fatal(err)
		}
		b.subject.Cluster.Spec.Finalizers = policy
		err := b.do(plan.RemoveFinalizer{})
		var after v1alpha1.RedisCluster
		if err := b.actor.Client.Get(t.Context(), key, &after); err != nil {
			t.Fatal(err)
		}
		waits := policy != v1alpha1.DeletionBackground
		if (err != nil) != waits || (len(after.Finalizers) > 0) != waits {
			t.Errorf("%s: error %v, finalizers %v", policy, err, after.Finalizers)
		}
	}
}

// What is not the cluster's, or is none that it can have made, holds up no deletion.
func TestDeletionWaitsForNobodyElse(t *testing.T) {
	written := 0
	b := newBench(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
		options ...client.PatchOption) error {
		written++
		return c.Patch(ctx, o, patch, options...)
	}}, set("c-0", theirs), set("c-1", nil), set("c-2000000000", ours))
	b.subject.Cluster.Spec.Finalizers = v1alpha1.DeletionForeground
	for _, step := range []plan.Step{plan.AddFinalizer{}, plan.AddFinalizer{}, plan.RemoveFinalizer{}, plan.RemoveFinalizer{}} {
		b.must(step)
	}
	var after v1alpha1.RedisCluster
	err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(b.subject.Cluster), &after)
	if err != nil || len(after.Finalizers) > 0 || len(b.subject.Cluster.Finalizers) > 0 {
		t.Errorf("finalizers %v are left: %v", after.Finalizers, err)
	}
	if written != 2 {
		t.Errorf("finalizers are written %d times, and change twice", written)
	}
}

// What is being deleted already is not deleted once more.
func TestDeletesOnce(t *testing.T) {
	w := writes{}
	stays, goes := set("c-1", ours), set("c-0", ours)
	stays.UID = "seen"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data-c-0-0",
		Labels:      map[string]string{v1alpha1.LabelCluster: "c"},
		Annotations: map[string]string{v1alpha1.AnnotationRestoredFor: "uid"}}}
	deleted(goes)
	deleted(claim)
	b := newBench(t, w.funcs(), stays, goes, claim)
	b.subject.Cluster.Spec = v1alpha1.RedisClusterSpec{Finalizers: v1alpha1.DeletionBackground,
		Storage: &v1alpha1.Storage{Retain: v1alpha1.RetainDelete}, Bootstrap: &v1alpha1.Bootstrap{}}
	for _, step := range []plan.Step{plan.RemoveShards{Shards: map[int]string{0: "999"}}, plan.DeleteChildren{}, plan.RemoveFinalizer{}} {
		b.must(step)
	}
	if diff := cmp.Diff([]string{"delete *v1.StatefulSet c-1 if seen"}, w.made); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

// A finalizer that another writer added meanwhile is not lost.
func TestFinalizerConflict(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	other := b.subject.Cluster.DeepCopy()
	other.Finalizers = []string{"example.com/theirs"}
	if err := b.actor.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := b.do(plan.AddFinalizer{}); err == nil {
		t.Error("the finalizers of another writer were replaced")
	}
}

func TestCreateAuth(t *testing.T) {
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-auth"}}
	b := newBench(t, interceptor.Funcs{}, taken)
	var stall *StallError
	if err := b.do(plan.CreateAuth{}); !errors.As(err, &stall) || stall.Cause != "NameTaken" {
		t.Errorf("a Secret of that name gives %v", err)
	}

	broken := errors.New("timeout")
	b = newBench(t,
		interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return broken }})
	if err := b.do(plan.CreateAuth{}); !errors.Is(err, broken) || errors.As(err, &stall) {
		t.Errorf("a request that fails gives %v, want an error to try again", err)
	}

	seen := map[string]bool{}
	for range 3 {
		b = newBench(t, interceptor.Funcs{})
		b.must(plan.CreateAuth{})
		var secret corev1.Secret
		if err := b.actor.Client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "c-auth"}, &secret); err != nil {
			t.Fatal(err)
		}
		password := string(secret.Data["password"])
		if seen[password] || len(password) < 26 || !metav1.IsControlledBy(&secret, b.subject.Cluster) || secret.Labels[v1alpha1.LabelCluster] !=
			"c" {
			t.Errorf("Secret %v with a password of %d bytes", secret.ObjectMeta, len(password))
		}
		seen[password] = true
	}
}
