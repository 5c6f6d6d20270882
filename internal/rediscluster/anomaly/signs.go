// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis/stats"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// The reasons of what is found at an instance.
const (
	ReplicaBehind = "ReplicaBehind"
	Fragmented    = "Fragmented"
	ClientBuffers = "ClientBuffers"
	SlowFork      = "SlowFork"
	SlowCommands  = "SlowCommands"
	SlowInstance  = "SlowInstance"
	VolumeShort   = "VolumeShort"
)

const (
	mib = 1 << 20
	// atLeast is how much memory has to be wasted, or taken by buffers, to be worth a word, in bytes.
	atLeast = 64 * mib
	// slow is how long an answer has to take to be slow, whatever others take.
	slow = 100 * time.Millisecond
)

// look is one look at an instance.
type look struct {
	in   *snapshot.Instance
	snap *snapshot.Snapshot
	// usual is how long instances of the cluster take to answer; zero: there are too few to say.
	usual time.Duration
	counted
	now time.Time
}

// sign is a figure of an instance that is to stay below a bound.
type sign struct {
	reason string
	// begins is the value from which on it is suspicious, and an anomaly when it has been for as long as lasts; below ends it is well again.
	begins, ends float64
	lasts        time.Duration
	// value is the figure; negative: it is not known.
	value   func(look) float64
	message func(l look, value float64) string
}

// signs are in the order in which they are told. The bounds are those of the alerts where there is one.
var signs = []sign{
	{reason: ReplicaBehind, begins: 64 * mib, ends: 16 * mib, lasts: 2 * time.Minute, value: behind,
		message: func(l look, value float64) string {
			return fmt.Sprintf("%.0f MiB behind its master, which would be lost with that: look whether node %s is short of processor time or "+
				"its network slow", value/mib, l.in.NodeName)
		}},
	{reason: Fragmented, begins: 1.5, ends: 1.3, lasts: 10 * time.Minute, value: fragmentation,
		message: func(_ look, value float64) string {
			return fmt.Sprintf("takes %.1f times the memory that its data does: set activedefrag to yes in spec.config, or restart it "+
				"(kubectl middleware restart)", value)
		}},
	{reason: ClientBuffers, begins: 0.25, ends: 0.1, lasts: time.Minute, value: buffers,
		message: func(_ look, value float64) string {
			return fmt.Sprintf("buffers of clients take %.0f %% of its memory: find who does not read what he asked for (CLIENT LIST, omem), and "+
				"set maxmemory-clients in spec.config", 100*value)
		}},
	{reason: SlowFork, begins: 1, ends: 0.5, value: func(l look) float64 { return l.in.Redis.Stats[lastFork] },
		message: func(_ look, value float64) string {
			return fmt.Sprintf("answered nobody for %.1f s while it forked to save its data: more shards have less memory each; transparent huge "+
				"pages on its node are to be off", value)
		}},
	{reason: SlowCommands, begins: 30, ends: 10, lasts: 2 * time.Minute, value: func(l look) float64 { return l.slowly },
		message: func(_ look, value float64) string {
			return fmt.Sprintf("carries out %.0f slow commands a minute, which keep all others waiting: SLOWLOG GET shows them", value)
		}},
	{reason: SlowInstance, begins: 5, ends: 3, lasts: 2 * time.Minute, value: slowness,
		message: func(l look, value float64) string {
			return fmt.Sprintf("takes %.0f times as long to answer as others do: look at node %s, and have the instance started on another one by "+
				"deleting its pod when that is not loaded by it (kubectl top pod)", value, l.in.NodeName)
		}},
	{reason: VolumeShort, begins: 1, ends: 0.9, lasts: 2 * time.Minute, value: onDisk,
		message: func(l look, value float64) string {
			return fmt.Sprintf("its files may take %.0f MiB, which is %.1f times its claim, when they are written anew: set a larger "+
				"spec.storage.size, or spec.storage.maxSize up to which claims grow", float64(l.in.Redis.MostOnDisk())/mib, value)
		}},
}

var rss, used, inBuffers, lastFork = stats.Index("memory_rss_bytes"), stats.Index("memory_used_bytes"), stats.Index("memory_clients_bytes"),
	stats.Index("last_fork_seconds")

// behind is by how many bytes of the stream a replica is behind its master.
func behind(l look) float64 {
	r := l.in.Redis
	if r.Master {
		return 0
	}
	master := l.snap.ByNodeID(r.MasterID)
	if master == nil || master.Redis == nil || !r.MasterLinkUp {
		return stats.Unknown
	}
	return float64(max(0, master.Redis.Offset-r.Offset))
}

// fragmentation is how many times the memory of its data an instance takes.
func fragmentation(l look) float64 {
	takes, data := l.in.Redis.Stats[rss], l.in.Redis.Stats[used]
	switch {
	case takes < 0 || data <= 0:
		return stats.Unknown
	case takes-data < atLeast:
		return 0
	}
	return takes / data
}

// buffers is the part of an instance's memory that buffers of clients take.
func buffers(l look) float64 {
	takes, of := l.in.Redis.Stats[inBuffers], l.in.Redis.Stats[used]
	if l.in.Redis.MaxMemory > 0 {
		of = float64(l.in.Redis.MaxMemory)
	}
	switch {
	case takes < 0 || of <= 0:
		return stats.Unknown
	case takes < atLeast:
		return 0
	}
	return takes / of
}

// slowness is how many times as long as others an instance takes to answer.
func slowness(l look) float64 {
	took := l.in.Redis.AnsweredIn
	switch {
	case l.usual == 0:
		return stats.Unknown
	case took < slow:
		return 0
	}
	return float64(took) / float64(l.usual)
}

// onDisk is how many times its claim the files of an instance may take.
func onDisk(l look) float64 {
	claim := l.snap.ClaimOf(l.in)
	if claim == nil || claim.Requested <= 0 {
		return stats.Unknown
	}
	return float64(l.in.Redis.MostOnDisk()) / float64(claim.Requested)
}

// usualAnswer is the median of how long instances take to answer; zero where fewer than three do. That the operator itself waits for a
// processor is in all of them.
func usualAnswer(s *snapshot.Snapshot) time.Duration {
	var took []time.Duration
	for _, in := range s.Reachable() {
		took = append(took, in.Redis.AnsweredIn)
	}
	if len(took) < 3 {
		return 0
	}
	slices.Sort(took)
	return max(took[(len(took)-1)/2], time.Millisecond)
}

// counted is how many slow commands an instance had carried out, as of a time, and how many a minute it does; negative: not known.
type counted struct {
	at     time.Time
	had    int64
	slowly float64
}

// between is how far apart looks are by whose difference the commands are counted.
const between = 30 * time.Second

func (c counted) next(r *snapshot.Redis, now time.Time) counted {
	switch apart := now.Sub(c.at); {
	case r.SlowCommands < 0:
		return counted{slowly: stats.Unknown}
	case c.at.IsZero() || r.SlowCommands < c.had: // the process began anew
		return counted{at: now, had: r.SlowCommands, slowly: stats.Unknown}
	case apart < between:
		return c
	default:
		return counted{at: now, had: r.SlowCommands, slowly: float64(r.SlowCommands-c.had) / apart.Minutes()}
	}
}
