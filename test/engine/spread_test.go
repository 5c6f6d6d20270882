// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"middleware.hc.cn/operator/internal/redis"
)

// While an instance is away, and all count it as failed, masters elsewhere switch over for the sake of spreading alone, and go on
// running. No command of a client fails, and nothing that was acknowledged is lost.
func TestSwitchoversCostNothingWhileAnInstanceIsAway(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 3)
		c.switchOver(0, 3)
		c.servers[0].kill()
		alive := &cluster{t: t, pool: c.pool, servers: c.servers[1:], ids: c.ids[1:], masters: 2}
		for i := range alive.servers {
			eventually(t, func() error {
				view, err := alive.node(i).Describe(t.Context())
				if err != nil {
					return err
				}
				peer, _ := view.Peer(c.ids[0])
				return want(peer.Flags.Has(redis.FlagFailed), "%s counts the lost instance as %s", alive.node(i), peer.Flags)
			})
		}
		load := startLoad(alive)
		for _, back := range []bool{false, true} { // about each master once: voters do not vote again for two node timeouts
			for master := range 2 {
				from, to := master, master+3
				if back {
					from, to = to, from
				}
				alive.switchOver(from, to)
			}
		}
		load.end()
	})
}

// switchOver makes a replica the master in place of its own, as the operator does: when everybody knows who is what. One that is told
// earlier may wait in vain for votes.
func (c *cluster) switchOver(master, replica int) {
	c.t.Helper()
	eventually(c.t, func() error { return c.agreed(master, replica) })
	end, err := c.node(master).SuppressPings(c.t.Context())
	must(c.t, err)
	must(c.t, c.node(replica).Failover(c.t.Context(), redis.FailoverDefault))
	eventually(c.t, func() error { return c.agreed(replica, master) })
	if end != nil {
		must(c.t, end(c.t.Context()))
	}
}

// agreed is nil when a replica is in sync, and all know its master and that it follows it.
func (c *cluster) agreed(master, replica int) error {
	if err := inSync(c.t, c.node(replica), c.ids[master]); err != nil {
		return err
	}
	for i := range c.servers {
		view, err := c.node(i).Describe(c.t.Context())
		if err != nil {
			return err
		}
		leads, _ := view.Peer(c.ids[master])
		follows, _ := view.Peer(c.ids[replica])
		if err := want(leads.Flags.Has(redis.FlagMaster) && follows.MasterID == c.ids[master], "%s has not heard of %s", c.node(i),
			c.node(master)); err != nil {
			return err
		}
	}
	return nil
}
