// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"middleware.hc.cn/operator/internal/redis"
)

// While an instance is away, and all count it as failed, masters elsewhere hand over for the sake of spreading alone, and go on
// running. No command of a client fails, and nothing that was acknowledged is lost.
func TestHandoversCostNothingWhileAnInstanceIsAway(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 3)
		c.handOver(0, 3)
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
				alive.handOver(from, to)
			}
		}
		load.end()
	})
}

// handOver makes a replica the master in place of its own, as the operator does, and waits until both have taken their places.
func (c *cluster) handOver(master, replica int) {
	c.t.Helper()
	eventually(c.t, func() error { return inSync(c.t, c.node(replica), c.ids[master]) })
	end, err := c.node(master).Hush(c.t.Context())
	must(c.t, err)
	must(c.t, c.node(replica).Failover(c.t.Context(), redis.FailoverDefault))
	eventually(c.t, func() error { return inSync(c.t, c.node(master), c.ids[replica]) })
	if end != nil {
		must(c.t, end(c.t.Context()))
	}
}
