// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// SuppressPings keeps a master from pinging other nodes for most of a second, in which a replica of its is to take over, and
// returns what ends that; nil when nothing was changed. It is for engines that mishear roles; others are left as they are.
//
// While a master switches over, it pings its successor ten times a second (clusterCron). What the successor answers before it
// is promoted, on the one connection, may be read after its promotion, which comes on the other. Redis before 7.4 then
// takes the new master for a replica again, no longer knows who owns its slots, and answers CLUSTERDOWN to the clients
// that still ask it, until the new master pings it: 0.1 to 1.3 s (https://github.com/redis/redis/pull/13055). What is not
// asked is not answered late.
func (n *Node) SuppressPings(ctx context.Context) (end func(context.Context) error, err error) {
	view, err := n.Describe(ctx)
	if err != nil || !hasRoleBug(view) {
		return nil, err
	}
	const often, adaptive = "hz", "dynamic-hz" // the latter raises the former while there are more than 200 clients
	before, err := n.ConfigGet(ctx, often, adaptive)
	if err != nil {
		return nil, err
	}
	end = func(ctx context.Context) error { return n.ConfigSetAll(ctx, before) }
	if err := n.ConfigSetAll(ctx, map[string]string{often: "1", adaptive: "no"}); err != nil {
		return nil, err
	}
	hz, err := strconv.Atoi(before[often])
	if err != nil || hz < 1 {
		hz = 1
	}
	// The next round is due already, the one after that in a second.
	select {
	case <-ctx.Done():
		return end, ctx.Err()
	case <-time.After(time.Second/time.Duration(hz) + 20*time.Millisecond):
	}
	// A node that was kept waiting for a processor has not come to it yet. It has when it answers twice: between two
	// commands it does the work that is due. PING will not do: one that cannot write to its disk refuses it (MISCONF).
	for range 2 {
		if _, err := n.Identify(ctx); err != nil {
			return end, err
		}
	}
	return end, nil
}

// hasRoleBug reports whether a node may take a stale message about another one's role for news. Redis before 7 is not asked:
// admission refuses it.
func hasRoleBug(v View) bool {
	var major, minor int
	_, err := fmt.Sscanf(v.Version, "%d.%d", &major, &minor)
	return err == nil && v.Engine == EngineRedis && major == 7 && minor < 4
}
