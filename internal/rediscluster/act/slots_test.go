// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// owning is three masters, of which the first two own the slots.
func owning(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, interceptor.Funcs{})
	b.must(plan.AssignSlots{Assignments: []plan.Assignment{
		{To: b.targets[0], Slots: slots.Range(0, 9000), Epoch: 1}, {To: b.targets[1], Slots: slots.Range(9001, 16383), Epoch: 2}}})
	b.meetAll()
	b.world.Run(2 * time.Second)
	return b
}

// told notes the commands that begin with words, by node.
func (b *bench) told(words string) *[]string {
	var mu sync.Mutex // nodes are asked side by side
	var told []string
	b.world.OnCommand(func(n *redistest.Node, args []string) {
		mu.Lock()
		defer mu.Unlock()
		if command := strings.ToUpper(strings.Join(args, " ")); strings.HasPrefix(command, words) {
			told = append(told, fmt.Sprintf("%d: %s", slices.Index(b.nodes, n), strings.Join(args, " ")))
		}
	})
	return &told
}

// Marks of a slot are put right at the destination first: there it stays importing, and bound to its owner.
func TestRepairSlots(t *testing.T) {
	b := owning(t)
	told := b.told("CLUSTER SETSLOT")
	b.must(plan.RepairSlots{Moves: []plan.Move{{From: b.targets[0], To: b.targets[2], Slots: slots.Of(7)}}})
	owner, destination := b.targets[0].NodeID, b.targets[2].NodeID
	want := []string{"2: CLUSTER SETSLOT 7 IMPORTING " + owner, "2: CLUSTER SETSLOT 7 NODE " + owner,
		"0: CLUSTER SETSLOT 7 MIGRATING " + destination}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if view := b.view(2); view.Importing[7] != owner {
		t.Errorf("the destination has %v", view.Importing)
	}
	b.must(plan.StabilizeSlots{Stabilizations: []plan.Stabilization{{On: b.targets[0], Slots: slots.Of(7)}}})
	if view := b.view(0); len(view.Migrating) > 0 {
		t.Errorf("the mark stays: %v", view.Migrating)
	}
}

// A master that has given slots away to one that does not know of it owns them again, with the epoch that it has; others still believe it.
func TestReclaimSlots(t *testing.T) {
	b := owning(t)
	owner := b.targets[0].NodeID
	session := b.pool.Node(b.nodes[0].Addr(), b.subject.Credentials)
	if err := session.SetSlots(t.Context(), slots.Of(7, 8), redis.SlotOwned, b.targets[2].NodeID); err != nil {
		t.Fatal(err)
	}
	b.world.Run(2 * time.Second)
	before := b.view(0)
	if before.Slots.Contains(7) || b.view(2).Slots.Contains(7) || !b.view(1).Slots.Complement().Contains(7) {
		t.Fatalf("slot 7 is claimed: %s, %s", before.Slots, b.view(2).Slots)
	}
	told := b.told("CLUSTER SETSLOT")
	owners := func(of ...uint16) map[string]slots.Set {
		return map[string]slots.Set{b.targets[2].NodeID: slots.Of(of...)}
	}
	for _, late := range []plan.Claim{
		{On: b.targets[0], Slots: slots.Of(9)},                              // it owns that one by now
		{On: b.targets[0], Slots: slots.Of(7, 8)},                           // nobody owned them
		{On: b.targets[0], Slots: slots.Of(9001), Owners: owners(9001)},     // another one owned it
		{On: b.targets[2], Slots: slots.Of(16000), Owners: owners(16000)},   // it owned it itself, as was thought
		{On: b.targets[1], Slots: slots.Of(9, 16000), Owners: owners(9, 7)}, // and more that was not so
	} {
		b.must(plan.ReclaimSlots{Claims: []plan.Claim{late}})
	}
	if len(*told) > 0 {
		t.Errorf("told although the owner is another one: %q", *told)
	}
	b.must(plan.ReclaimSlots{Claims: []plan.Claim{{On: b.targets[0], Slots: slots.Of(7, 8), Owners: owners(7, 8)}}})
	want := []string{"0: CLUSTER SETSLOT 7 NODE " + owner, "0: CLUSTER SETSLOT 8 NODE " + owner}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	b.world.Run(2 * time.Second)
	if after := b.view(0); !after.Slots.Equal(before.Slots.Union(slots.Of(7, 8))) || after.ConfigEpoch != before.ConfigEpoch {
		t.Errorf("it owns %s with epoch %d, and had epoch %d", after.Slots, after.ConfigEpoch, before.ConfigEpoch)
	}
}

// A slot that a master has begun to receive again is not claimed: it would take it with a new epoch from whoever has the keys.
func TestReclaimLeavesWhatIsReceived(t *testing.T) {
	b := owning(t)
	session := b.pool.Node(b.nodes[1].Addr(), b.subject.Credentials)
	if err := session.SetSlots(t.Context(), slots.Of(7), redis.SlotImporting, b.targets[0].NodeID); err != nil {
		t.Fatal(err)
	}
	told := b.told("CLUSTER SETSLOT")
	b.must(plan.ReclaimSlots{Claims: []plan.Claim{{On: b.targets[1], Slots: slots.Of(7),
		Owners: map[string]slots.Set{b.targets[0].NodeID: slots.Of(7)}}}})
	if len(*told) > 0 || b.view(1).Slots.Contains(7) {
		t.Errorf("told %q", *told)
	}
}

// A slot that has lost the owner that was seen is not claimed: it is given to a master otherwise.
func TestReclaimLeavesWhatNobodyOwns(t *testing.T) {
	b := world3(t, interceptor.Funcs{})
	told := b.told("CLUSTER SETSLOT")
	b.must(plan.ReclaimSlots{Claims: []plan.Claim{{On: b.targets[2], Slots: slots.Of(16383),
		Owners: map[string]slots.Set{b.targets[1].NodeID: slots.Of(16383)}}}})
	if len(*told) > 0 {
		t.Errorf("told %q", *told)
	}
}

// No end of a move is told anything by an end that is another node now, and the other moves go on.
func TestMovesBetweenThoseThatWereSeen(t *testing.T) {
	b := owning(t)
	another := b.targets[1]
	another.NodeID = b.targets[0].NodeID
	result, err := b.actor.Do(t.Context(), b.subject, plan.MoveSlots{Moves: []plan.Move{
		{From: another, To: b.targets[2], Slots: slots.Of(9001)}, {From: b.targets[0], To: b.targets[2], Slots: slots.Of(7)},
		{From: b.targets[0], To: another, Slots: slots.Of(8)}}})
	if err == nil || !strings.Contains(err.Error(), "c-1-0 at 10.0.0.2 is node") || !result.Acted {
		t.Errorf("got %+v, %v", result, err)
	}
	if got := b.view(2).Slots; !got.Equal(slots.Of(7)) {
		t.Errorf("slots %s moved, want 7", got)
	}
}

// Keys are sent to the port where their destination takes them.
func TestPortOfKeys(t *testing.T) {
	for second, port := range map[bool]int{false: 6379, true: 6380} {
		if got := end(nil, plan.Target{MovesBySecondPort: second}).Port; got != port {
			t.Errorf("by the second port: %t, and it is %d", second, got)
		}
	}
}

// What cannot be said to one node is an error that names it, and nothing else is said.
func TestCommandsThatFail(t *testing.T) {
	for name, step := range map[string]func(b *bench) plan.Step{
		"CLUSTER SETSLOT": func(b *bench) plan.Step {
			return plan.RepairSlots{Moves: []plan.Move{{From: b.targets[0], To: b.targets[2], Slots: slots.Of(7)}}}
		},
		"CLUSTER BUMPEPOCH": func(b *bench) plan.Step { return plan.BumpEpoch{On: b.targets[2]} },
		"CLUSTER FAILOVER":  func(b *bench) plan.Step { return plan.Promote{Replica: b.targets[2], Takeover: true} },
		"CLUSTER FORGET": func(b *bench) plan.Step {
			return plan.Forget{On: b.targets[2:], NodeIDs: []string{b.targets[1].NodeID}}
		},
		"CONFIG SET": func(b *bench) plan.Step { return plan.SetNodeTimeout{On: b.targets[2:], Timeout: time.Second} },
	} {
		t.Run(name, func(t *testing.T) {
			b := owning(t)
			b.world.FailNext(b.nodes[2], name, redistest.Failure{Kind: redistest.DropBefore})
			if err := b.do(step(b)); err == nil || !strings.Contains(err.Error(), "c-2-0") {
				t.Errorf("got %v, want an error about c-2-0", err)
			}
			if view := b.view(0); len(view.Migrating) > 0 {
				t.Errorf("the owner was told all the same: %v", view.Migrating)
			}
		})
	}
}

// New masters get the functions of another, and a node that is not the one that was seen gets none.
func TestCopyFunctions(t *testing.T) {
	b := owning(t)
	told := b.told("FUNCTION")
	b.must(plan.CopyFunctions{From: b.targets[0], To: b.targets[1:]})
	slices.Sort(*told)
	if len(*told) != 3 || !strings.HasPrefix((*told)[0], "0: FUNCTION DUMP") || !strings.HasPrefix((*told)[1], "1: FUNCTION RESTORE") ||
		!strings.HasPrefix((*told)[2], "2: FUNCTION RESTORE") {
		t.Errorf("told %q", *told)
	}
	for _, ends := range [][2]int{{0, 1}, {1, 0}} {
		targets := slices.Clone(b.targets)
		targets[ends[0]].NodeID = b.targets[2].NodeID
		told := b.told("FUNCTION RESTORE")
		if err := b.do(plan.CopyFunctions{From: targets[0], To: targets[1:2]}); err == nil || len(*told) > 0 {
			t.Errorf("node %d is another: %v after %q", ends[0], err, *told)
		}
	}
}

// A promotion is watched until the replica is a master, but not for ever.
func TestPromotionIsWatched(t *testing.T) {
	b := owning(t)
	b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}})
	b.actor.SwitchoverWithin = time.Minute
	b.world.Kill(b.nodes[0])
	b.must(plan.Promote{Replica: b.targets[2], Takeover: true}) // and does not take a minute
	if view := b.view(2); view.Role != redis.RoleMaster {
		t.Errorf("it is a %s", view.Role)
	}
}

// The engine moves the slots itself where the step says so; one that cannot says that.
func TestMoveSlotsAtomically(t *testing.T) {
	b := owning(t)
	moves := []plan.Move{{From: b.targets[0], To: b.targets[2], Slots: slots.Of(7)}}
	if err := b.do(plan.MoveSlots{Moves: moves, Atomic: true}); !errors.Is(err, reshard.ErrNotAtomic) {
		t.Errorf("error %v", err)
	}
	b.must(plan.MoveSlots{Moves: moves})
}
