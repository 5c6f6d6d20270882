// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
)

// quiet is for how long a client must have said nothing before its connection is closed while the gateway ends: it is unlikely then that a
// command is under way. Clients that say something before are told the end together with the reply.
const quiet = 3 * time.Second

// drain lets connections finish. One is closed together with the reply after which nothing is outstanding, so that a client that waits for
// replies finds it closed before it says more; or when it rests. Clients connect again, to another gateway. What is left at the end is
// closed by end.
func (g *Gateway) drain(end func()) {
	const every = 20 * time.Millisecond
	g.ready.Store(false)
	g.serves.Store(nil)
	g.options.Log.Info("The gateway ends", "connections", g.figures.open.Load())
	time.Sleep(g.options.DrainDelay)
	for _, l := range g.listeners {
		_ = l.Close() // nobody waits in it
	}
	g.accepting.Wait() // what was accepted is counted
	g.draining.Store(true)
	begin := time.Now()
	for passed := time.Duration(0); passed < g.options.DrainTimeout; passed = time.Since(begin) {
		if g.limits.count() == 0 {
			break
		}
		for _, c := range g.connections() {
			c.finish(quiet)
		}
		time.Sleep(every)
	}
	g.options.Log.Info("The gateway has ended", "closed", g.limits.count())
	end()
	g.wait.Wait()
}

func (g *Gateway) connections() []*connection {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.open))
}

// say logs, unless too much is logged: what is said comes from whoever connects.
func (g *Gateway) say(err error, text string, pairs ...any) {
	const longest = 300
	if g.says.Allow() {
		g.options.Log.Info(text, append(pairs, "reason", excerpt.Of(err.Error(), longest))...)
	}
}

// find looks a name up.
func find(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
