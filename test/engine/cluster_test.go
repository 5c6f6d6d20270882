// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// cluster is masters and replicas of them, formed.
type cluster struct {
	t    testing.TB
	pool *redis.Pool
	// servers are the masters, then the replicas: servers[masters+i] follows servers[i] in the beginning.
	servers []*server
	ids     []string
	masters int
	tls     *tls.Config // for clients; nil: none
}

// startCluster starts masters, of which the first owners share all slots, and one replica for each of the first replicas
// masters.
func startCluster(t testing.TB, e engine, masters, owners, replicas int) *cluster {
	t.Helper()
	return startClusterOf(t, newPool(t), masters, owners, replicas, func(pool *redis.Pool) *server { return start(t, e, pool) })
}

// startClusterOf is startCluster of servers that are started in some other way.
func startClusterOf(t testing.TB, pool *redis.Pool, masters, owners, replicas int, start func(*redis.Pool) *server) *cluster {
	t.Helper()
	c := &cluster{t: t, pool: pool, masters: masters}
	for range masters + replicas {
		s := start(c.pool)
		c.servers, c.ids = append(c.servers, s), append(c.ids, mustIdentify(t, s.node(c.pool)))
	}
	ctx := t.Context()
	for i, part := range slots.All().Split(owners) {
		must(t, c.node(i).SetConfigEpoch(ctx, uint64(i+1)))
		must(t, c.node(i).AddSlots(ctx, part))
	}
	// A master without slots is given the highest epochs. A newcomer's that happened to be higher would make Valkey swap the two once it
	// follows: a late message in which it was a master counts as a failover in the shard.
	for i := len(c.servers) - 1; masters > owners && i >= owners; i-- {
		must(t, c.node(i).SetConfigEpoch(ctx, uint64(owners+len(c.servers)-i)))
	}
	for _, s := range c.servers[1:] {
		must(t, c.node(0).Meet(ctx, s.ip(), s.port, s.busPort))
	}
	for i := range replicas {
		eventually(t, func() error { return knows(t, c.node(masters+i), c.ids[i]) })
		must(t, c.node(masters+i).Replicate(ctx, c.ids[i]))
	}
	eventually(t, c.formed)
	for i := range replicas {
		eventually(t, func() error { return inSync(t, c.node(masters+i), c.ids[i]) })
	}
	for i := range c.servers {
		eventually(t, func() error { return c.restartable(i) })
	}
	return c
}

// restartable is nil when a server can read its own nodes.conf. Valkey 8.1.1 cannot while it has heard who is a replica, and not yet
// that it is in the shard of its master.
func (c *cluster) restartable(i int) error {
	if err := c.node(i).SaveConfig(c.t.Context()); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.servers[i].dir, "nodes.conf"))
	if err != nil {
		return err
	}
	shards, masters := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		_, after, _ := strings.Cut(words[1], "shard-id=")
		shard, _, _ := strings.Cut(after, ",")
		shards[words[0]], masters[words[0]] = shard, words[3]
	}
	for id, master := range masters {
		if err := want(master == "-" || shards[id] == shards[master], "%s has node %s in shard %s, and its master %s in %s", c.node(i), id,
			shards[id], master, shards[master]); err != nil {
			return err
		}
	}
	return nil
}

// formed is nil when every node serves and knows all others.
func (c *cluster) formed() error {
	for i := range c.servers {
		view, err := c.node(i).Describe(c.t.Context())
		if err != nil {
			return err
		}
		known := 0
		for _, p := range view.Peers {
			if p.LinkConnected && !p.Flags.HasAny(redis.FlagHandshake|redis.FlagPossiblyFailed|redis.FlagFailed) {
				known++
			}
		}
		if err := want(view.ClusterState == redis.ClusterOK && known == len(c.servers), "%s: %s, knows %d of %d",
			c.node(i), view.ClusterState, known, len(c.servers)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) node(i int) *redis.Node { return c.servers[i].node(c.pool) }

func (c *cluster) end(i int) reshard.End {
	return reshard.End{Node: c.node(i), ID: c.ids[i], IP: c.servers[i].ip(), Port: c.servers[i].port}
}

func (c *cluster) move(from, to int, set slots.Set) reshard.Move {
	return reshard.Move{From: c.end(from), To: c.end(to), Slots: set}
}

func (c *cluster) view(i int) redis.View {
	c.t.Helper()
	view, err := c.node(i).Describe(c.t.Context())
	must(c.t, err)
	return view
}

// bearSilence lets servers be silent for long before the others take them for failing, as a busy machine makes them for seconds.
func (c *cluster) bearSilence() {
	c.t.Helper()
	for i := range c.servers {
		must(c.t, c.node(i).ConfigSet(c.t.Context(), "cluster-node-timeout", "15000"))
	}
}

// client is an ordinary application's: it follows redirections, and repeats nothing else.
func (c *cluster) client() *goredis.ClusterClient { return c.clientAsking(0) }

// clientAsking is a client that asks who owns what every so often; 0: the library's own time, with which it may write nothing for a minute
// when a master is killed.
func (c *cluster) clientAsking(every time.Duration) *goredis.ClusterClient {
	var addrs []string
	for _, s := range c.servers {
		addrs = append(addrs, s.addr())
	}
	client := goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: addrs, Password: password, MaxRetries: -1, MaxRedirects: 16, Protocol: 2, DisableIdentity: true, TLSConfig: c.tls,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		ClusterStateReloadInterval: every,
	})
	c.t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}

// settled is nil when all masters agree on the owners (slots by index of the master), no slot is open, and no master holds a
// key of a slot that it does not own.
func (c *cluster) settled(owners map[int]slots.Set) error {
	var errs []error
	for i := range c.masters {
		view, err := c.node(i).Describe(c.t.Context())
		if err != nil {
			return err
		}
		errs = append(errs, want(len(view.Migrating)+len(view.Importing) == 0, "%s: open slots %v %v", c.node(i),
			view.Migrating, view.Importing))
		for owner, set := range owners {
			peer, _ := view.Peer(c.ids[owner])
			errs = append(errs, want(peer.Slots.Equal(set), "%s says that %s owns %s, want %s", c.node(i), c.node(owner),
				peer.Slots, set))
		}
		unowned, err := c.node(i).CountKeysInSlots(c.t.Context(), view.Slots.Complement())
		errs = append(errs, err, want(len(unowned) == 0, "%s holds keys of slots it does not own: %v", c.node(i), unowned))
	}
	return errors.Join(errs...)
}

// direct is a client of one server.
func (c *cluster) direct(i int) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{
		Addr: c.servers[i].addr(), Password: password, MaxRetries: -1, Protocol: 2, PoolSize: 1,
	})
	c.t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}
