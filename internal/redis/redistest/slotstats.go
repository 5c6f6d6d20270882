// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// commandTakes is the processor time of a command of World.SetCommandsPerSecond.
const commandTakes = 10 * time.Microsecond

// slotStatsCommand is CLUSTER SLOT-STATS SLOTSRANGE (clusterSlotStatsCommand), without what networks carry.
func (n *Node) slotStatsCommand(args []string) any {
	first, err := strconv.ParseUint(args[1], 10, 16)
	last, err2 := strconv.ParseUint(args[2], 10, 16)
	switch {
	case !strings.EqualFold(args[0], "SLOTSRANGE"):
		return errorText("ERR only SLOTSRANGE is simulated")
	case err != nil || err2 != nil || first > last || last >= slots.Count:
		return invalidSlot
	}
	answer := []any{}
	for slot := range n.self().slots.Intersect(slots.Range(uint16(first), uint16(last))).Slots() {
		figures := []any{"key-count", len(n.keysIn(slots.Of(slot)))}
		if n.settings["cluster-slot-stats-enabled"] == "yes" {
			ran := n.world.now.Sub(n.started).Seconds()
			figures = append(figures, "cpu-usec", int(ran*n.world.perSlot*float64(commandTakes.Microseconds())), "network-bytes-in", 0)
		}
		answer = append(answer, []any{int(slot), figures})
	}
	return answer
}
