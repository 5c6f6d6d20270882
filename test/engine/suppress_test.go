// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// While a master switches over, it asks its successor for nothing that could be answered late: an affected engine would
// forget who owns its slots. It pings once, when it is asked to switch over; one that is not without pings goes on ten times a second.
func TestPingsAreSuppressedDuringASwitchover(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 1)
		const old, next = 0, 3
		began := time.Now()
		end, err := c.node(old).SuppressPings(t.Context())
		must(t, err)
		if (end != nil) != affected(e) {
			t.Fatalf("it was without pings: %t", end != nil)
		}
		for _, other := range []int{1, 2} {
			must(t, c.servers[other].process.Process.Signal(syscall.SIGSTOP)) // they do not vote, and it takes long
		}
		before := c.pings(old)
		must(t, c.node(next).Failover(t.Context(), redis.FailoverDefault))
		time.Sleep(400 * time.Millisecond)
		sent, took := c.pings(old)-before, time.Since(began)
		t.Logf("it sent %d pings", sent)
		for _, other := range []int{1, 2} {
			must(t, c.servers[other].process.Process.Signal(syscall.SIGCONT))
		}
		eventually(t, func() error { return inSync(t, c.node(old), c.ids[next]) })
		if end != nil {
			must(t, end(t.Context()))
			if took < time.Second && sent > 1 { // a slow machine has let it speak again
				t.Errorf("a without pings master sent %d pings, want 1", sent)
			}
		}
		c.wantHz(old, "10")
	})
}

// affected reports whether an engine is one of those that are without pings.
func affected(e engine) bool {
	return strings.HasPrefix(e.name, "redis-7.0") || strings.HasPrefix(e.name, "redis-7.2")
}

// pings is how many a node has sent.
func (c *cluster) pings(i int) int {
	c.t.Helper()
	info, err := c.direct(i).ClusterInfo(context.Background()).Result()
	must(c.t, err)
	n, err := strconv.Atoi(regexp.MustCompile(`(?m)^cluster_stats_messages_ping_sent:(\d+)`).FindStringSubmatch(info)[1])
	must(c.t, err)
	return n
}

func (c *cluster) wantHz(i int, hz string) {
	c.t.Helper()
	shown, err := c.node(i).ConfigGet(c.t.Context(), "hz")
	must(c.t, err)
	if shown["hz"] != hz {
		c.t.Errorf("hz is %s, want %s", shown["hz"], hz)
	}
}

// The script of a pod that stops does the same, and has no need to undo it.
func TestScriptSuppressesPingsOfAMasterThatStops(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 1)
		must(t, s.stop(0, "true"))
		eventually(t, func() error { return inSync(t, s.node(0), s.ids[1]) })
		want := "10"
		if affected(e) {
			want = "1"
		}
		s.wantHz(0, want)
	})
}

// All that a switchover leaves changed when whoever began it is killed is among the settings that every reconciliation looks at, and the
// engine takes the values back that the operator knows of it.
func TestInterruptedSwitchoverCanBeUndone(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c, ctx := startCluster(t, e, 1, 1, 1), t.Context()
		before, err := c.node(0).ConfigGet(ctx, "*")
		must(t, err)
		_, err = c.node(0).SuppressPings(ctx) // and what would end it is never called
		must(t, err)
		must(t, c.node(1).Failover(ctx, redis.FailoverDefault))
		eventually(t, func() error { return inSync(t, c.node(0), c.ids[1]) })
		looked := redisconf.Momentary()
		for _, s := range redisconf.Settings(nil, nil) {
			looked = append(looked, s.Name)
		}
		view, err := c.node(0).Describe(ctx, looked...)
		must(t, err)
		after, err := c.node(0).ConfigGet(ctx, "*")
		must(t, err)
		changed := map[string]string{}
		for name, value := range after {
			if value == before[name] || name == "replicaof" || name == "slaveof" {
				continue
			}
			byDefault, known := redisconf.Default(name, string(view.Engine), view.Version)
			if !known || byDefault != before[name] || view.Settings[name] != value {
				t.Errorf("%s was %q and is %q; a reconciliation sees %q, and knows the default %q", name, before[name], value, view.Settings[name],
					byDefault)
			}
			changed[name] = byDefault
		}
		if affected(e) != (len(changed) == 2) {
			t.Errorf("changed: %v", changed)
		}
		must(t, c.node(0).ConfigSetAll(ctx, changed))
	})
}
