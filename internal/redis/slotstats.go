// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// SlotStat is what a node has counted of a slot that it owns; -1 for what it does not tell.
type SlotStat struct {
	// Keys are in it, and take Bytes.
	Keys, Bytes int64
	// Processor is the time that commands on it took, in microseconds, since the process began or received the slot.
	Processor int64
}

// SlotStats is what a node has counted of the slots that it owns, in one round trip. It is refused with ErrUnsupported by engines that do
// not count, and tells of keys only unless cluster-slot-stats-enabled is yes.
func (n *Node) SlotStats(ctx context.Context) (map[uint16]SlotStat, error) {
	c := command{name: "CLUSTER SLOT-STATS", args: append(words("CLUSTER SLOT-STATS SLOTSRANGE"), 0, slots.Count-1)}
	answer, err := n.read(ctx, c)
	if err != nil {
		return nil, err
	}
	stats, err := slotStatsOf(answer.Val())
	if err != nil {
		return nil, n.notUnderstood(c, err)
	}
	return stats, nil
}

// slotStatsOf reads an array of slots with their figures, which RESP2 writes as names and values in turn.
func slotStatsOf(answer any) (map[uint16]SlotStat, error) {
	entries, isArray := answer.([]any)
	if !isArray || len(entries) > slots.Count {
		return nil, fmt.Errorf("%T instead of an array of %d slots at most", answer, slots.Count)
	}
	stats := make(map[uint16]SlotStat, len(entries))
	for _, entry := range entries {
		pair, _ := entry.([]any)
		if len(pair) != 2 {
			return nil, fmt.Errorf("%s instead of a slot and its figures", show(entry))
		}
		slot, isNumber := pair[0].(int64)
		figures, isArray := pair[1].([]any)
		if !isNumber || slot < 0 || slot >= slots.Count || !isArray || len(figures)%2 != 0 {
			return nil, fmt.Errorf("%s instead of a slot and its figures", show(entry))
		}
		stat := SlotStat{Keys: -1, Bytes: -1, Processor: -1}
		for i := 0; i < len(figures); i += 2 {
			name, _ := figures[i].(string)
			to := map[string]*int64{"key-count": &stat.Keys, "memory-bytes": &stat.Bytes, "cpu-usec": &stat.Processor}[name]
			if to == nil {
				continue
			}
			value, isNumber := figures[i+1].(int64)
			if !isNumber || value < 0 || value > mostCounted {
				return nil, fmt.Errorf("%s of slot %d is %s", name, slot, show(figures[i+1]))
			}
			*to = value
		}
		stats[uint16(slot)] = stat
	}
	return stats, nil
}
