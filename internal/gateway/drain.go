// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
)

// quiet is for how long a client must have said nothing before its connection is closed while the gateway ends: it is unlikely then that a
// command is under way. Clients that say something before are told the end together with the reply.
const quiet = 3 * time.Second

// lastReplies is what of the time to end is left for replies to what was passed on.
const lastReplies = 2 * time.Second

// drain lets connections finish. One is closed together with the reply after which nothing is outstanding, so that a client that waits for
// replies finds it closed before it says more; or when it rests. Clients connect again, to another gateway. Those that never rest have no
// more commands passed on in the end, and get the replies that are outstanding. What is left then is closed by end.
func (g *Gateway) drain(end func()) {
	g.served.Store(&Served{Reason: "it ends"})
	g.options.Log.Info("The gateway ends", "connections", g.figures.open.Load())
	time.Sleep(g.options.DrainDelay)
	for _, l := range g.listeners {
		_ = l.Close() // nobody waits in it
	}
	g.accepting.Wait() // what was accepted is counted
	begin, last := time.Now(), min(lastReplies, g.options.DrainTimeout/2)
	g.draining.Store(true)
	g.finish(begin.Add(g.options.DrainTimeout-last), func(c *connection) {
		if c.mayEnd() {
			c.finish(quiet)
		}
	})
	g.stopping.Store(true)
	g.finish(begin.Add(g.options.DrainTimeout), func(c *connection) {
		c.session.Stop()
		c.finish(0)
	})
	g.options.Log.Info("The gateway has ended", "closed", g.limits.count())
	end()
	g.wait.Wait()
}

// finish finishes connections again and again, until there are none or it is time.
func (g *Gateway) finish(until time.Time, each func(*connection)) {
	const every = 20 * time.Millisecond
	for g.limits.count() > 0 && time.Now().Before(until) {
		for _, c := range g.connections() {
			each(c)
		}
		time.Sleep(every)
	}
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
