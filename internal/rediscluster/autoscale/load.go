// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Load is what the master of a shard bears.
type Load struct {
	Shard int
	// Slots are how many it owns; at least one.
	Slots int
	// Memory is what it uses of Room, in bytes; Room is 0 when it has no limit.
	Memory, Room float64
	// Operations and Network (bytes) are for each second; unknown, which is negative, until it has been looked at twice.
	Operations, Network float64
}

const unknown = -1

// Counters are only compared when they are as far apart as this: over less time chance counts for too much, over more the load may have
// been another one.
const shortest, longest = 15 * time.Second, 5 * time.Minute

// clockError is how far the clocks of operator and server may differ over such a time.
const clockError = 10 * time.Second

var uptime, commands = stats.Index("uptime_seconds"), stats.Index("commands_total")

// traffic is all that comes in and goes out, replicated that part of it which is for replicas, or from a master.
var traffic = []int{stats.Index("network_received_bytes_total"), stats.Index("network_sent_bytes_total")}
var replicated = []int{stats.Index("network_replication_received_bytes_total"), stats.Index("network_replication_sent_bytes_total")}

// Meter makes rates of counters. The zero value has seen nothing. It is no more than what one look left: the counters of one instance a
// shard.
type Meter struct {
	at       time.Time
	counters map[string]stats.Values // by node ID
	loads    []Load
}

// Read is what the masters bear, by shard; nil when it is not known of all of them. Looks that follow upon each other closely give the
// rates of before.
func (m *Meter) Read(s *snapshot.Snapshot, now time.Time) []Load {
	masters := s.Masters()
	if !s.Formed || s.Goal != nil || s.Owned().Len() != slots.Count || len(s.Reachable()) < len(s.Instances) {
		*m = Meter{}
		return nil
	}
	between := now.Sub(m.at)
	again := between >= 0 && between < shortest && len(m.loads) == len(masters)
	rates := map[int]Load{}
	if again {
		for _, load := range m.loads {
			rates[load.Shard] = load
		}
	}
	loads, counters := make([]Load, 0, len(masters)), make(map[string]stats.Values, len(masters))
	for shard := range lastShard(s) + 1 {
		in := masters[shard]
		if in == nil {
			continue
		}
		r := in.Redis
		load := Load{Shard: shard, Slots: r.Slots.Len(), Memory: float64(r.UsedMemory), Room: float64(in.Room()), Operations: unknown,
			Network: unknown}
		if again {
			load.Operations, load.Network = rates[shard].Operations, rates[shard].Network
		} else if before, known := m.counters[r.NodeID]; known && between <= longest && between >= shortest {
			load.Operations = rate(before, r.Stats, between, commands)
			load.Network = rate(before, r.Stats, between, traffic...)
			if part := rate(before, r.Stats, between, replicated...); load.Network >= 0 && part >= 0 {
				load.Network = max(load.Network-part, 0)
			} else {
				load.Network = unknown
			}
		}
		counters[r.NodeID] = r.Stats
		loads = append(loads, load)
	}
	if again {
		m.loads = loads
	} else {
		*m = Meter{at: now, counters: counters, loads: loads}
	}
	return loads
}

func lastShard(s *snapshot.Snapshot) (last int) {
	for shard := range s.Masters() {
		last = max(last, shard)
	}
	return last
}

// rate is how much the sum of counters grew each second; unknown when the process is another one, or one of them is not told.
func rate(before, after stats.Values, between time.Duration, of ...int) float64 {
	if before[uptime] < 0 || after[uptime]-before[uptime] < (between-clockError).Seconds() {
		return unknown
	}
	grown := 0.0
	for _, i := range of {
		if before[i] < 0 || after[i] < before[i] {
			return unknown
		}
		grown += after[i] - before[i]
	}
	return grown / between.Seconds()
}
