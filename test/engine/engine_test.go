// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
)

const nobody = "07c37dfeb235213a872192d90877d0cd55635b91"

func TestFreshNode(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		s := start(t, e, pool)
		view, err := s.node(pool).Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(view.Engine) + "-" + view.Version; got != e.name && !strings.HasPrefix(got, e.name+".") {
			t.Errorf("it says it is %s, ENGINES says %s", got, e.name)
		}
		if id, err := s.node(pool).Identify(t.Context()); err != nil || id != view.NodeID {
			t.Errorf("Identify says %q, %v; Describe says %q", id, err, view.NodeID)
		}
		if view.Role != redis.RoleMaster || view.ClusterState != redis.ClusterFail || !view.Slots.IsEmpty() ||
			view.SlotsAssigned != 0 || view.Keys != 0 || view.UsedMemory == 0 || view.Loading || len(view.RunID) != 40 {
			t.Errorf("view %+v", view)
		}
		self, found := view.Self()
		if !found || self.Port != s.port || self.BusPort != s.busPort || self.Hostname != "pod-0.example.svc" ||
			!self.Flags.Has(redis.FlagMyself|redis.FlagMaster) || !self.LinkConnected || len(view.Peers) != 1 {
			t.Errorf("table %+v", view.Peers)
		}
		for i, value := range view.Stats { // a metric that an engine does not tell would leave a panel empty
			if value < 0 {
				t.Errorf("it does not tell %s", stats.All[i].Name)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		s := start(t, e, pool)
		ctx, node := t.Context(), s.node(pool)
		if err := node.AddSlots(ctx, slots.Range(0, 9)); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			err, want error
		}{
			"no password":      {pool.Node(s.addr(), redis.Credentials{}).Ping(ctx), redis.ErrAuth},
			"wrong password":   {pool.Node(s.addr(), redis.Credentials{Password: "guessed"}).Ping(ctx), redis.ErrAuth},
			"forget a nobody":  {node.Forget(ctx, nobody), redis.ErrUnknownNode},
			"follow a nobody":  {node.Replicate(ctx, nobody), redis.ErrUnknownNode},
			"busy slot":        {node.AddSlots(ctx, slots.Range(9, 20)), redis.ErrSlotBusy},
			"failover, master": {node.Failover(ctx, redis.FailoverDefault), redis.ErrRefused},
			"meet a name":      {node.Meet(ctx, "localhost", 6379, 16379), redis.ErrRefused},
			"unknown setting":  {node.ConfigSet(ctx, "no-such-setting", "1"), redis.ErrRefused},
		} {
			if !errors.Is(tc.err, tc.want) {
				t.Errorf("%s: %v, want one that is %q", name, tc.err, tc.want)
			}
		}
		if view, err := node.Describe(ctx); err != nil || view.Slots.String() != "0-9" {
			t.Errorf("the refused commands left slots %q, %v", view.Slots, err)
		}
		s.kill()
		if err := node.Ping(ctx); !errors.Is(err, redis.ErrUnreachable) {
			t.Errorf("killed server: %v", err)
		}
	})
}

func TestServerWithoutClusterMode(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		s := startPlain(t, e, pool)
		if _, err := s.node(pool).Describe(t.Context()); !errors.Is(err, redis.ErrNotCluster) {
			t.Errorf("Describe: %v", err)
		}
	})
}

func TestSettings(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		node := start(t, e, pool).node(pool)
		if err := node.ConfigSet(t.Context(), "maxmemory", "100mb"); err != nil {
			t.Fatal(err)
		}
		got, err := node.ConfigGet(t.Context(), "maxmemory", "appendonly")
		if err != nil || got["maxmemory"] != "104857600" || got["appendonly"] != "yes" || len(got) != 2 {
			t.Errorf("ConfigGet: %v, %v", got, err)
		}
		if view, err := node.Describe(t.Context()); err != nil || view.MaxMemory != 100<<20 {
			t.Errorf("the view says %d, %v", view.MaxMemory, err)
		}
		if err := node.SaveConfig(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A cluster of one master and one replica goes through everything an operator tells it.
// Slow commands are counted by the number of the last one, from the start of the process.
func TestSlowCommands(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		node := start(t, e, pool).node(pool)
		count := func() int64 {
			view, err := node.Describe(t.Context())
			must(t, err)
			return view.SlowCommands
		}
		slower := func(than string) { must(t, node.ConfigSet(t.Context(), "slowlog-log-slower-than", than)) }
		slower("-1") // never
		before := count()
		slower("0")
		for range 3 {
			must(t, node.Ping(t.Context()))
		}
		slower("-1")
		if after := count(); before < 0 || after < before+3 {
			t.Errorf("%d slow commands, and then %d", before, after)
		}
	})
}

func TestLifeOfACluster(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		first, second, third := start(t, e, pool), start(t, e, pool), start(t, e, pool)
		ctx := t.Context()
		a, b, c := first.node(pool), second.node(pool), third.node(pool)
		idA, idB := mustIdentify(t, a), mustIdentify(t, b)
		idC := mustIdentify(t, c)

		must(t, a.SetConfigEpoch(ctx, 1))
		must(t, b.SetConfigEpoch(ctx, 2))
		must(t, a.AddSlots(ctx, slots.All()))
		must(t, a.Meet(ctx, "127.0.0.1", second.port, second.busPort))
		must(t, a.Meet(ctx, "127.0.0.1", third.port, third.busPort))
		eventually(t, func() error { return knows(t, b, idA) })
		must(t, b.Replicate(ctx, idA))
		eventually(t, func() error { return inSync(t, b, idA) })
		eventually(t, func() error {
			view, err := a.Describe(ctx)
			peer, found := view.Peer(idB)
			return errors.Join(err, want(view.ClusterState == redis.ClusterOK && found && peer.MasterID == idA &&
				peer.Flags.Has(redis.FlagReplica), "state %s, replica %+v", view.ClusterState, peer))
		})

		if err := b.Forget(ctx, idA); !errors.Is(err, redis.ErrRefused) {
			t.Errorf("a replica forgets its master: %v", err)
		}
		must(t, b.Failover(ctx, redis.FailoverDefault))
		eventually(t, func() error { return inSync(t, a, idB) })
		if view, err := b.Describe(ctx); err != nil || view.Role != redis.RoleMaster || view.Slots.Len() != slots.Count {
			t.Errorf("after the failover: %s of %d slots, %v", view.Role, view.Slots.Len(), err)
		}
		must(t, a.Failover(ctx, redis.FailoverTakeover))
		eventually(t, func() error { return inSync(t, b, idA) })

		// The third one leaves: reset first, so that it does not call the others back.
		must(t, c.Reset(ctx, redis.ResetHard))
		if again := mustIdentify(t, c); again == idC {
			t.Error("a hard reset kept the node ID")
		}
		for _, node := range []*redis.Node{a, b} {
			if err := node.Forget(ctx, idC); err != nil && !errors.Is(err, redis.ErrUnknownNode) {
				t.Error(err) // from Redis 7.2 on the first one tells the second one
			}
			if err := knows(t, node, idC); err == nil {
				t.Errorf("%s still knows the node it forgot", node)
			}
		}

		// A restart keeps the identity and changes the run ID.
		before, err := b.Describe(ctx)
		must(t, err)
		second.kill()
		second.run()
		eventually(t, func() error { return inSync(t, b, idA) })
		after, err := b.Describe(ctx)
		must(t, err)
		if after.NodeID != before.NodeID || after.RunID == before.RunID {
			t.Errorf("node ID %s then %s, run ID %s then %s", before.NodeID, after.NodeID, before.RunID, after.RunID)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustIdentify(t testing.TB, node *redis.Node) string {
	t.Helper()
	id, err := node.Identify(t.Context())
	must(t, err)
	return id
}

// knows is nil when the node has the peer in its table, past the handshake.
func knows(t testing.TB, node *redis.Node, id string) error {
	view, err := node.Describe(t.Context())
	if err != nil {
		return err
	}
	peer, found := view.Peer(id)
	return want(found && !peer.Flags.Has(redis.FlagHandshake), "%s does not know %s", node, id)
}

// inSync is nil when the node replicates the master over a working link.
func inSync(t testing.TB, node *redis.Node, masterID string) error {
	view, err := node.Describe(t.Context())
	if err != nil {
		return err
	}
	return want(view.Role == redis.RoleReplica && view.MasterID == masterID && view.MasterLinkUp,
		"%s is %s of %q, link %t", node, view.Role, view.MasterID, view.MasterLinkUp)
}
