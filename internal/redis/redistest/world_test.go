// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// fixture is a formed cluster of three masters (nodes 0 to 2) and a replica of each (nodes 3 to 5).
type fixture struct {
	t     *testing.T
	world *redistest.World
	pool  *redis.Pool
	nodes []*redistest.Node

	valkey bool // that is the engine
}

func form(t *testing.T) *fixture {
	t.Helper()
	return formOf(t, redistest.NodeOptions{}, redistest.Options{InstantGossip: true})
}

// formOf forms it of nodes with these options.
func formOf(t *testing.T, node redistest.NodeOptions, world redistest.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, world: redistest.New(world), valkey: node.Valkey}
	t.Cleanup(f.world.Close)
	f.pool = redis.NewPool(redis.Options{Dialer: f.world.Dial, DialTimeout: time.Minute, IOTimeout: time.Minute})
	t.Cleanup(f.pool.Close)
	for i := range 6 {
		node.IP = fmt.Sprintf("10.0.0.%d", i+1)
		f.nodes = append(f.nodes, f.world.AddNode(node))
	}
	for i, part := range slots.All().Split(3) {
		f.must(f.node(i).SetConfigEpoch(t.Context(), uint64(i+1)))
		f.must(f.node(i).AddSlots(t.Context(), part))
	}
	for i := range 5 {
		f.must(f.node(0).Meet(t.Context(), fmt.Sprintf("10.0.0.%d", i+2), 6379, 16379))
	}
	for i := range 3 {
		f.must(f.node(3+i).Replicate(t.Context(), f.nodes[i].ID()))
	}
	f.world.Run(3 * time.Second) // a master stays in state fail for 2 s after its start
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) node(i int) *redis.Node {
	return f.pool.Node(f.nodes[i].Addr(), redis.Credentials{})
}

func (f *fixture) view(i int) redis.View {
	f.t.Helper()
	view, err := f.node(i).Describe(f.t.Context())
	f.must(err)
	return view
}

// seenBy is how node i sees node j.
func (f *fixture) seenBy(i, j int) redis.Peer {
	f.t.Helper()
	peer, found := f.view(i).Peer(f.nodes[j].ID())
	if !found {
		f.t.Fatalf("node %d does not know node %d", i, j)
	}
	return peer
}

func TestClusterForms(t *testing.T) {
	f := form(t)
	parts := slots.All().Split(3)
	for i := range f.nodes {
		view := f.view(i)
		if view.ClusterState != redis.ClusterOK || view.SlotsAssigned != slots.Count || len(view.Peers) != 6 {
			t.Errorf("node %d: %s, %d slots, %d peers", i, view.ClusterState, view.SlotsAssigned, len(view.Peers))
		}
		if i < 3 && (view.Role != redis.RoleMaster || !view.Slots.Equal(parts[i]) || view.ConfigEpoch != uint64(i+1)) {
			t.Errorf("node %d: %s of %q, epoch %d", i, view.Role, view.Slots, view.ConfigEpoch)
		}
		if i >= 3 && (view.Role != redis.RoleReplica || !view.MasterLinkUp || view.MasterID != f.nodes[i-3].ID()) {
			t.Errorf("node %d: %s of %q, link %t", i, view.Role, view.MasterID, view.MasterLinkUp)
		}
		for _, peer := range view.Peers {
			if !peer.LinkConnected || peer.Flags.HasAny(redis.FlagHandshake|redis.FlagPossiblyFailed|redis.FlagFailed) {
				t.Errorf("node %d sees %+v", i, peer)
			}
		}
	}
}

func TestDeadMasterIsReplaced(t *testing.T) {
	f := form(t)
	f.world.Kill(f.nodes[0])
	f.world.Run(4 * time.Second)
	if view := f.view(3); view.Role != redis.RoleReplica {
		t.Fatalf("promoted before the node timeout")
	}
	f.world.Run(8 * time.Second)
	view := f.view(3)
	if view.Role != redis.RoleMaster || !view.Slots.Equal(slots.All().Split(3)[0]) || view.ConfigEpoch <= 3 {
		t.Fatalf("replica is %s of %q, epoch %d", view.Role, view.Slots, view.ConfigEpoch)
	}
	if !f.seenBy(1, 0).Flags.Has(redis.FlagFailed) || f.view(1).ClusterState != redis.ClusterOK {
		t.Errorf("the others see %s, cluster %s", f.seenBy(1, 0).Flags, f.view(1).ClusterState)
	}

	f.world.Restart(f.nodes[0], "10.0.0.1", true)
	f.world.Run(time.Second)
	if view := f.view(0); view.Role != redis.RoleReplica || view.MasterID != f.nodes[3].ID() {
		t.Errorf("the old master came back as %s of %q", view.Role, view.MasterID)
	}
	if f.seenBy(1, 0).Flags.Has(redis.FlagFailed) {
		t.Error("the old master is still seen as failed")
	}
}

func TestNoElectionWithoutMajority(t *testing.T) {
	f := form(t)
	f.world.Kill(f.nodes[0])
	f.world.Kill(f.nodes[1])
	f.world.Run(time.Minute)
	for _, i := range []int{3, 4} {
		if view := f.view(i); view.Role != redis.RoleReplica || view.ClusterState != redis.ClusterFail {
			t.Errorf("node %d: %s, cluster %s", i, view.Role, view.ClusterState)
		}
	}
	f.must(f.node(3).Failover(t.Context(), redis.FailoverForce))
	f.world.Run(2 * time.Second)
	if f.view(3).Role != redis.RoleReplica {
		t.Error("FORCE won an election without a majority")
	}
	f.must(f.node(3).Failover(t.Context(), redis.FailoverTakeover))
	f.must(f.node(4).Failover(t.Context(), redis.FailoverTakeover))
	f.world.Run(10 * time.Second)
	if f.view(3).Role != redis.RoleMaster || f.view(2).ClusterState != redis.ClusterOK {
		t.Errorf("after two takeovers: %s, cluster %s", f.view(3).Role, f.view(2).ClusterState)
	}
}

func TestPlannedFailover(t *testing.T) {
	f := form(t)
	f.must(f.node(3).Failover(t.Context(), redis.FailoverDefault))
	f.world.Run(time.Second)
	if f.view(3).Role != redis.RoleMaster || f.view(0).Role != redis.RoleReplica || f.view(0).MasterID != f.nodes[3].ID() {
		t.Errorf("roles %s and %s", f.view(3).Role, f.view(0).Role)
	}
	if !f.view(1).Slots.Equal(slots.All().Split(3)[1]) || f.view(1).ClusterState != redis.ClusterOK {
		t.Errorf("the rest: %q, %s", f.view(1).Slots, f.view(1).ClusterState)
	}
}

func TestRestartedNodeIsFoundAgain(t *testing.T) {
	for _, tc := range []struct {
		name string
		all  bool // all nodes get new addresses, so that no table holds a living one
	}{{"one node", false}, {"all nodes", true}} {
		t.Run(tc.name, func(t *testing.T) {
			f := form(t)
			before := f.nodes[5].ID()
			for i, n := range f.nodes {
				if tc.all {
					f.world.Kill(n)
				} else if i == 5 {
					f.world.Restart(n, "10.1.0.6", true)
				}
			}
			if tc.all {
				for i, n := range f.nodes {
					f.world.Restart(n, fmt.Sprintf("10.1.0.%d", i+1), true)
				}
			}
			f.world.Run(3 * time.Second)
			if got := f.nodes[5].ID(); got != before {
				t.Fatalf("the node ID changed from %s to %s", before, got)
			}
			if tc.all {
				if ip := f.seenBy(0, 5).IP; ip != "10.0.0.6" {
					t.Fatalf("node 5 is known at %s before anyone was told", ip)
				}
				for i := range 5 {
					f.must(f.node(0).Meet(t.Context(), fmt.Sprintf("10.1.0.%d", i+2), 6379, 16379))
				}
				f.world.Run(10 * time.Second)
			}
			for i := range 5 {
				if peer := f.seenBy(i, 5); peer.IP != "10.1.0.6" || !peer.LinkConnected {
					t.Errorf("node %d sees %+v", i, peer)
				}
			}
			if view := f.view(5); len(view.Peers) != 6 || !view.MasterLinkUp || view.ClusterState != redis.ClusterOK {
				t.Errorf("node 5: %d peers, link %t, cluster %s", len(view.Peers), view.MasterLinkUp, view.ClusterState)
			}
		})
	}
}

func TestNodeWithoutItsDataIsANewOne(t *testing.T) {
	f := form(t)
	before := f.nodes[5].ID()
	f.world.Restart(f.nodes[5], "10.0.0.6", false)
	f.world.Run(10 * time.Second)
	view := f.view(5)
	if f.nodes[5].ID() == before || len(view.Peers) != 1 || view.Role != redis.RoleMaster || !view.Slots.IsEmpty() {
		t.Errorf("came back as %+v", view)
	}
	// The others notice that somebody else has the address.
	old, found := f.view(0).Peer(before)
	if !found || !old.Flags.Has(redis.FlagNoAddress) {
		t.Errorf("the old entry is %+v", old)
	}
}

func TestForgottenNodeIsBannedForAMinute(t *testing.T) {
	f := form(t)
	id := f.nodes[5].ID()
	f.must(f.node(0).Forget(t.Context(), id))
	f.world.Run(50 * time.Second)
	if _, found := f.view(0).Peer(id); found {
		t.Error("came back by gossip within the ban")
	}
	f.world.Run(20 * time.Second)
	if _, found := f.view(0).Peer(id); !found {
		t.Error("did not come back by gossip after the ban, though all others know it")
	}
}

// One of Valkey that runs on after everyone has forgotten it introduces itself again (valkey-io/valkey#2788); one of Valkey 8.0 or
// Redis does not.
func TestForgottenNodeOfValkeyComesBack(t *testing.T) {
	for _, tc := range []struct {
		node redistest.NodeOptions
		back bool
	}{
		{redistest.NodeOptions{Version: "8.2.1"}, false},
		{redistest.NodeOptions{Valkey: true, Version: "8.0.4"}, false},
		{redistest.NodeOptions{Valkey: true, Version: "8.1.1"}, true},
		{redistest.NodeOptions{Valkey: true, Version: "9.1.2"}, true},
	} {
		t.Run(fmt.Sprintf("valkey %t %s", tc.node.Valkey, tc.node.Version), func(t *testing.T) {
			f := formOf(t, tc.node, redistest.Options{InstantGossip: true})
			for i := range 5 {
				f.must(f.node(i).Forget(t.Context(), f.nodes[5].ID()))
			}
			f.world.Run(3 * time.Second)
			if _, known := f.view(0).Peer(f.nodes[5].ID()); known {
				t.Fatal("it is back before a node timeout has passed")
			}
			f.world.Run(20 * time.Second)
			if _, known := f.view(0).Peer(f.nodes[5].ID()); known != tc.back {
				t.Errorf("known after a node timeout: %t, want %t", known, tc.back)
			}
		})
	}
}

func TestPartitionedMasterIsReplacedAndSteppedDown(t *testing.T) {
	f := form(t)
	f.world.Partition(f.nodes[0])
	f.world.Run(15 * time.Second)
	if f.view(3).Role != redis.RoleMaster {
		t.Fatal("no failover by the majority")
	}
	f.world.Heal()
	f.world.Run(5 * time.Second)
	if view := f.view(0); view.Role != redis.RoleReplica || view.MasterID != f.nodes[3].ID() {
		t.Errorf("after the partition: %s of %q", view.Role, view.MasterID)
	}
}

// data is an ordinary client of one node.
func (f *fixture) data(i int) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{
		Addr: f.nodes[i].Addr(), Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) { return f.world.Dial(ctx, addr) },
	})
	f.t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestDataIsServedWhereItsSlotIs(t *testing.T) {
	f := form(t)
	ctx, key := t.Context(), "foo" // slot 12182, of the third master
	f.must(f.data(2).Set(ctx, key, "bar", 0).Err())
	if got, err := f.data(2).Get(ctx, key).Result(); err != nil || got != "bar" {
		t.Errorf("Get: %q, %v", got, err)
	}
	if _, err := f.data(2).Get(ctx, "{foo}other").Result(); !errors.Is(err, goredis.Nil) {
		t.Errorf("a key that does not exist: %v", err)
	}
	for _, i := range []int{0, 5} {
		if err := f.data(i).Set(ctx, key, "x", 0).Err(); err == nil || err.Error() != "MOVED 12182 10.0.0.3:6379" {
			t.Errorf("node %d: %v", i, err)
		}
	}
	f.world.Gossip()
	want := map[string]string{key: "bar"}
	if diff := cmp.Diff(want, f.nodes[5].Keys()); diff != "" {
		t.Errorf("the replica (-want +got):\n%s", diff)
	}
	if view := f.view(5); view.Keys != 1 || view.ReplicationOffset != f.view(2).ReplicationOffset {
		t.Errorf("the replica has %d keys, offset %d", view.Keys, view.ReplicationOffset)
	}

	f.world.Kill(f.nodes[0])
	f.world.Kill(f.nodes[3])
	f.world.Run(20 * time.Second)
	if err := f.data(2).Get(ctx, key).Err(); err == nil || !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		t.Errorf("with a third of the slots lost: %v", err)
	}
}

// A master that restarts without its data serves nothing of it, and its replicas copy the empty data set.
func TestEmptyMasterEmptiesItsReplicas(t *testing.T) {
	f := form(t)
	f.must(f.data(2).Set(t.Context(), "foo", "bar", 0).Err())
	f.nodes[2].LoseKeys()
	f.world.Gossip()
	if got := f.nodes[5].Keys(); len(got) != 0 {
		t.Errorf("the replica still has %v", got)
	}
}

func TestRolesAndShards(t *testing.T) {
	f := form(t)
	ctx := t.Context()
	replica, err := f.data(3).Do(ctx, "ROLE").Slice()
	if diff := cmp.Diff([]any{"slave", "10.0.0.1", int64(6379), "connected", int64(0)}, replica); err != nil || diff != "" {
		t.Errorf("ROLE of a replica: %v (-want +got):\n%s", err, diff)
	}
	master, err := f.data(0).Do(ctx, "ROLE").Slice()
	want := []any{"master", int64(0), []any{[]any{"10.0.0.4", "6379", "0"}}}
	if diff := cmp.Diff(want, master); err != nil || diff != "" {
		t.Errorf("ROLE of a master: %v (-want +got):\n%s", err, diff)
	}
	shards, err := f.data(0).ClusterShards(ctx).Result()
	if err != nil || len(shards) != 3 {
		t.Fatalf("CLUSTER SHARDS: %v, %v", shards, err)
	}
	for _, shard := range shards {
		if len(shard.Nodes) != 2 || shard.Nodes[0].Role != "master" || shard.Nodes[1].Role != "replica" || len(shard.Slots) != 1 {
			t.Errorf("shard %+v", shard)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := form(t)
	ctx := t.Context()
	f.must(f.data(2).Set(ctx, "foo", "bar", 0).Err())
	for command, want := range map[string]string{
		"NOSUCH a b":                           "ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ",
		"CLUSTER NOSUCH":                       "ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.",
		"GET":                                  "ERR wrong number of arguments for 'get' command",
		"CLUSTER MEET localhost 1":             "ERR Invalid node address specified: localhost:1",
		"CLUSTER ADDSLOTSRANGE 0 1":            "ERR Slot 0 is already busy",
		"CLUSTER ADDSLOTSRANGE 5 1":            "ERR start slot number 5 is greater than end slot number 1",
		"CLUSTER ADDSLOTSRANGE 0 16384":        "ERR Invalid or out of range slot",
		"CLUSTER SET-CONFIG-EPOCH 9":           "ERR The user can assign a config epoch only when the node does not know any other node.",
		"CLUSTER REPLICATE " + f.nodes[2].ID(): "ERR Can't replicate myself",
		"CLUSTER REPLICATE " + f.nodes[3].ID(): "ERR I can only replicate a master, not a replica.",
		"CLUSTER REPLICATE " + f.nodes[0].ID(): "ERR To set a master the node must be empty and without assigned slots.",
		"CLUSTER FORGET " + f.nodes[2].ID():    "ERR I tried hard but I can't forget myself...",
		"CLUSTER FAILOVER":                     "ERR You should send CLUSTER FAILOVER to a replica",
		"CLUSTER FAILOVER NOW":                 "ERR syntax error",
		"CLUSTER RESET":                        "ERR CLUSTER RESET can't be called with master nodes containing keys",
		"AUTH guessed":                         "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
	} {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		if err := f.data(2).Do(ctx, args...).Err(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
	if err := f.data(5).Do(ctx, "CLUSTER", "FORGET", f.nodes[2].ID()).Err(); err == nil || err.Error() != "ERR Can't forget my master!" {
		t.Errorf("a replica forgets its master: %v", err)
	}
}

func TestSameSeedSameWorld(t *testing.T) {
	var ids [2][]string
	for i := range ids {
		for _, n := range form(t).nodes {
			ids[i] = append(ids[i], n.ID())
		}
	}
	if diff := cmp.Diff(ids[0], ids[1]); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}
