// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Where addresses are of IPv6, instances need no setting: engines listen there as well, and announce, meet, replicate, redirect, move
// slots, switch over, and come back.
func TestClusterOnIPv6(t *testing.T) {
	all := engines(t)
	if os.Getenv("E2E") != "all" { // what they differ in is nothing of addresses
		all = all[len(all)-1:]
	}
	forEach(t, all, func(t *testing.T, e engine) {
		begin := func(pool *redis.Pool) *server {
			busPort := freePort(t)
			return startWith(t, pool, &server{t: t, engine: e, ipv6: true, busPort: busPort,
				settings: append(clusterMode(busPort), "--cluster-announce-ip", "::1")})
		}
		c := startClusterOf(t, newPool(t), 2, 2, 2, begin)
		for i := range c.servers {
			for _, peer := range c.view(i).Peers {
				if peer.IP != "::1" {
					t.Errorf("%s knows %s at %q", c.node(i), peer.ID, peer.IP)
				}
			}
		}
		client, moved := c.client(), slots.Range(100, 199)
		var keys []string
		for _, tag := range tags(moved, 3) {
			keys = append(keys, everyType(t, client, tag)...)
		}
		before := contents(t, client, keys)
		if err := c.direct(1).Get(t.Context(), keys[0]).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") ||
			!strings.HasSuffix(err.Error(), " ::1:"+portOf(t, c.servers[0].addr())) {
			t.Errorf("a client of another master is told %v", err)
		}
		halves := slots.All().Split(2)
		ways := []mover{reshard.Classic}
		if c.view(0).Atomic != slots.AtomicNone {
			ways = append(ways, reshard.Atomic)
		}
		for _, way := range ways {
			complete(t, way, reshard.Options{}, c.move(0, 1, moved))
			eventually(t, func() error {
				return c.settled(map[int]slots.Set{0: halves[0].Subtract(moved), 1: halves[1].Union(moved)})
			})
			complete(t, way, reshard.Options{}, c.move(1, 0, moved))
			eventually(t, func() error { return c.settled(map[int]slots.Set{0: halves[0], 1: halves[1]}) })
		}
		c.switchOver(0, 2)
		c.servers[0].kill() // comes back as a replica, by its nodes.conf
		c.servers[0].run()
		eventually(t, func() error { return c.agreed(2, 0) })
		if diff := cmp.Diff(before, contents(t, client, keys)); diff != "" {
			t.Errorf("contents (-before +after):\n%s", diff)
		}
	})
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	return port
}
