// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
)

func TestSlotStats(t *testing.T) {
	node, _ := answering(t, "*2\r\n*2\r\n:5\r\n*4\r\n$9\r\nkey-count\r\n:3\r\n$16\r\nnetwork-bytes-in\r\n:7\r\n"+
		"*2\r\n:9\r\n*6\r\n$9\r\nkey-count\r\n:0\r\n$8\r\ncpu-usec\r\n:12\r\n$12\r\nmemory-bytes\r\n:99\r\n")
	got, err := node.SlotStats(t.Context())
	want := map[uint16]redis.SlotStat{5: {Keys: 3, Bytes: -1, Processor: -1}, 9: {Keys: 0, Bytes: 99, Processor: 12}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestSlotStatsThatAreNotUnderstood(t *testing.T) {
	for _, answer := range []string{
		"+OK\r\n", "*1\r\n:5\r\n", "*1\r\n*1\r\n:5\r\n", "*1\r\n*2\r\n:16384\r\n*0\r\n", "*1\r\n*2\r\n:-1\r\n*0\r\n",
		"*1\r\n*2\r\n:5\r\n*1\r\n$9\r\nkey-count\r\n", "*1\r\n*2\r\n:5\r\n*2\r\n$9\r\nkey-count\r\n:-1\r\n",
		"*1\r\n*2\r\n:5\r\n*2\r\n$9\r\nkey-count\r\n+a\r\n", "*1\r\n*2\r\n:5\r\n*2\r\n$9\r\nkey-count\r\n:281474976710657\r\n",
		"*1\r\n*2\r\n+a\r\n*0\r\n", "*1\r\n*2\r\n:5\r\n:5\r\n",
	} {
		node, _ := answering(t, answer)
		if got, err := node.SlotStats(t.Context()); !errors.Is(err, redis.ErrProtocol) {
			t.Errorf("%q: %v, %v", answer, got, err)
		}
	}
}

func TestSlotStatsOfEngines(t *testing.T) {
	for name, tt := range map[string]struct {
		version string
		valkey  bool
		enabled string
		want    error
		tells   bool
	}{
		"an engine that cannot": {"7.0.15", false, "", redis.ErrUnsupported, false},
		"keys only":             {"8.1.1", true, "no", nil, false},
		"processor time":        {"9.1.2", true, "yes", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			world := redistest.New(redistest.Options{})
			t.Cleanup(world.Close)
			world.AddNode(redistest.NodeOptions{IP: "10.0.0.7", Valkey: tt.valkey, Version: tt.version,
				Settings: map[string]string{"cluster-slot-stats-enabled": tt.enabled}})
			pool := redis.NewPool(redis.Options{Dialer: world.Dial, DialTimeout: time.Minute, IOTimeout: time.Minute})
			t.Cleanup(pool.Close)
			node := pool.Node(addr, redis.Credentials{})
			if err := node.AddSlots(t.Context(), slots.Range(100, 199)); err != nil {
				t.Fatal(err)
			}
			got, err := node.SlotStats(t.Context())
			if !errors.Is(err, tt.want) || err == nil && (len(got) != 100 || (got[150].Processor >= 0) != tt.tells || got[150].Keys != 0) {
				t.Errorf("%v, %v", got[150], err)
			}
		})
	}
}
