// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// SlotState is what CLUSTER SETSLOT makes of a slot in a node's own table.
type SlotState string

// The states of CLUSTER SETSLOT.
const (
	// SlotImporting marks the slot as one that the node receives from the node ID. It is refused with ErrAlreadyOwner
	// where the node owns the slot.
	SlotImporting SlotState = "IMPORTING"
	// SlotMigrating marks the slot as one that the node gives to the node ID. It is refused with ErrNotOwner where the
	// node does not own the slot.
	SlotMigrating SlotState = "MIGRATING"
	// SlotOwned makes the node ID the owner and takes the node's own marks away. It is refused with ErrSlotHasKeys by an
	// owner that holds keys of the slot.
	SlotOwned SlotState = "NODE"
	// SlotStable takes the marks away.
	SlotStable SlotState = "STABLE"
)

// SlotChange is what becomes of some slots. NodeID is ignored for SlotStable.
type SlotChange struct {
	Slots  slots.Set
	State  SlotState
	NodeID string
}

// SetSlots sends CLUSTER SETSLOT for each slot of the set, all in one round trip, and returns the first error. The other
// slots are set nevertheless. nodeID is ignored for SlotStable.
func (n *Node) SetSlots(ctx context.Context, set slots.Set, state SlotState, nodeID string) error {
	return n.ChangeSlots(ctx, SlotChange{Slots: set, State: state, NodeID: nodeID})
}

// ChangeSlots is SetSlots for several changes in the same round trip. The node writes its table to disk once for all of
// them, which is what takes time.
func (n *Node) ChangeSlots(ctx context.Context, changes ...SlotChange) error {
	var commands []command
	for _, change := range changes {
		for slot := range change.Slots.Slots() {
			c := command{
				name: fmt.Sprintf("CLUSTER SETSLOT %d %s", slot, change.State),
				args: []any{"CLUSTER", "SETSLOT", slot, string(change.State)},
			}
			if change.State != SlotStable {
				c.args = append(c.args, change.NodeID)
			}
			commands = append(commands, c)
		}
	}
	if len(commands) == 0 {
		return nil
	}
	lanes := slices.Collect(slices.Chunk(commands, 1+(len(commands)-1)/max(1, n.lanes)))
	errs := make([]error, len(lanes))
	var wait sync.WaitGroup
	for i, lane := range lanes {
		wait.Go(func() {
			errs[i] = contain.Call(ctx, "change slots at "+n.Addr(), func() error { return n.tellAll(ctx, lane) })
		})
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// tellAll sends commands that answer OK in one round trip and returns the first error.
func (n *Node) tellAll(ctx context.Context, commands []command) error {
	answers, err := n.pipeline(ctx, commands...)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		if err := answer.Err(); err != nil {
			return n.failed(ctx, commands[i], err)
		}
		if text, err := answer.Text(); err != nil || text != "OK" {
			return n.unexpected(commands[i], answer, "OK")
		}
	}
	return nil
}

// CountKeysInSlots counts the keys that the node holds, in one round trip. Only slots with keys are in the map. It counts
// what is there, whether the node owns the slot or not.
func (n *Node) CountKeysInSlots(ctx context.Context, set slots.Set) (map[uint16]int64, error) {
	const mostInSlot = 1 << 32 // of a server
	counts := map[uint16]int64{}
	err := n.eachSlot(ctx, n.pipeline, set, func(slot uint16) command {
		return command{
			name: fmt.Sprintf("CLUSTER COUNTKEYSINSLOT %d", slot),
			args: []any{"CLUSTER", "COUNTKEYSINSLOT", slot},
		}
	}, func(slot uint16, answer *redis.Cmd) error {
		count, err := answer.Int64()
		if err == nil && (count < 0 || count > mostInSlot) {
			err = fmt.Errorf("%d keys are more than a server can have", count)
		}
		if count > 0 {
			counts[slot] = count
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// KeysInSlots names keys that the node holds in database 0, for each slot most of them at the most, in one round trip.
// Only slots with keys are in the map. Keys may hold any bytes; those whose time is over may be among them.
func (n *Node) KeysInSlots(ctx context.Context, set slots.Set, most int) (map[uint16][]string, error) {
	keys := map[uint16][]string{}
	err := n.eachSlot(ctx, n.readAll, set, func(slot uint16) command {
		return command{
			name: fmt.Sprintf("CLUSTER GETKEYSINSLOT %d", slot),
			args: []any{"CLUSTER", "GETKEYSINSLOT", slot, most},
		}
	}, func(slot uint16, answer *redis.Cmd) error {
		found, err := answer.StringSlice()
		if err == nil && len(found) > most {
			err = fmt.Errorf("%d keys instead of %d at most", len(found), most)
		}
		if len(found) > 0 {
			keys[slot] = found
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// eachSlot sends one command for each slot and reads the answers in the order of the slots up to the first error.
func (n *Node) eachSlot(ctx context.Context, send sender, set slots.Set,
	ask func(uint16) command, read func(uint16, *redis.Cmd) error,
) error {
	if set.IsEmpty() {
		return nil
	}
	var commands []command
	for slot := range set.Slots() {
		commands = append(commands, ask(slot))
	}
	answers, err := send(ctx, commands...)
	if err != nil {
		return err
	}
	i := 0
	for slot := range set.Slots() {
		if err := answers[i].Err(); err != nil {
			return n.failed(ctx, commands[i], err)
		}
		if err := read(slot, answers[i]); err != nil {
			return n.notUnderstood(commands[i], err)
		}
		i++
	}
	return nil
}
