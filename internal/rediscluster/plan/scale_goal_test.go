// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// anyOwned deals all slots to n shards in runs, so that ownership is as scattered as it gets. Each shard owns something.
func anyOwned(t *rapid.T, n int) []slots.Set {
	owned := make([]slots.Set, n)
	next := uint16(0)
	for i := 0; next < slots.Count; i++ {
		length := rapid.SampledFrom([]uint16{1, 2, 63, 1000, 5461}).Draw(t, "length of run")
		end := min(next+length, slots.Count) - 1
		if i == 24+n { // few shards, long runs, or many shards, short ones: whoever is last gets the rest
			end = slots.Count - 1
		}
		shard := i // everybody once, then anybody
		if i >= n {
			shard = rapid.IntRange(0, n-1).Draw(t, "owner of run")
		}
		owned[shard] = owned[shard].Union(slots.Range(next, end))
		next = end + 1
	}
	for i := range owned { // long runs may have been used up by few shards
		if owned[i].IsEmpty() {
			rich := slices.IndexFunc(owned, func(s slots.Set) bool { return s.Len() > 1 })
			owned[i] = owned[rich].Take(1)
			owned[rich] = owned[rich].Subtract(owned[i])
		}
	}
	return owned
}

func lengths(sets []slots.Set) []int {
	n := make([]int, len(sets))
	for i, set := range sets {
		n[i] = set.Len()
	}
	return n
}

// checkGoal checks what every goal must be: each slot has one owner, and no shard both gives slots away and receives some,
// so that no slot moves that need not.
func checkGoal(t *rapid.T, owned, goal []slots.Set) (moved int) {
	t.Helper()
	var all slots.Set
	for i, set := range goal {
		if both := all.Intersect(set); !both.IsEmpty() {
			t.Fatalf("slots %s have two owners", both)
		}
		all = all.Union(set)
		var before slots.Set
		if i < len(owned) {
			before = owned[i]
		}
		given, received := before.Subtract(set).Len(), set.Subtract(before).Len()
		if given > 0 && received > 0 {
			t.Fatalf("shard %d gives %d slots away and receives %d", i, given, received)
		}
		moved += given
	}
	if all.Len() != slots.Count {
		t.Fatalf("%d slots have an owner", all.Len())
	}
	return moved
}

// fewestMoves is the least number of slots that must move to balance: those above the share of each shard, where the
// richest shards may have one slot more.
func fewestMoves(owned []slots.Set, want int) int {
	share, more, moves := slots.Count/want, slots.Count%want, 0
	for i, set := range owned {
		switch n := set.Len(); {
		case i >= want:
			moves += n
		case n > share:
			moves += n - share
			if more > 0 {
				more--
				moves--
			}
		}
	}
	return moves
}

func TestBalanceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owned := anyOwned(t, rapid.IntRange(1, 9).Draw(t, "shards"))
		want := rapid.IntRange(1, 12).Draw(t, "wanted")
		goal := balance(owned, want)
		moved := checkGoal(t, owned, goal)
		staying := lengths(goal[:want])
		if slices.Max(staying)-slices.Min(staying) > 1 || slices.ContainsFunc(lengths(goal)[want:], func(n int) bool { return n > 0 }) {
			t.Fatalf("%d shards own %v", want, lengths(goal))
		}
		if fewest := fewestMoves(owned, want); moved != fewest {
			t.Fatalf("%d slots move, %d are enough", moved, fewest)
		}
		if diff := cmp.Diff(goal, balance(goal, want)); diff != "" {
			t.Fatalf("what is balanced is balanced again: %s", diff)
		}
	})
}

func TestDrainProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.IntRange(2, 9).Draw(t, "shards")
		want := rapid.IntRange(1, have).Draw(t, "wanted")
		owned := anyOwned(t, have)
		goal := drain(owned, want)
		moved := checkGoal(t, owned, goal)
		leaving := 0
		for _, set := range owned[want:] {
			leaving += set.Len()
		}
		if moved != leaving {
			t.Fatalf("%d slots move, the leaving shards own %d", moved, leaving)
		}
		for i := range want {
			for j := range want {
				if received := goal[i].Len() > owned[i].Len(); received && goal[i].Len() > goal[j].Len()+1 {
					t.Fatalf("shard %d was filled up to %d, and shard %d owns %d", i, goal[i].Len(), j, goal[j].Len())
				}
			}
		}
	})
}

func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(1, 6).Draw(t, "shards")
		owned := anyOwned(t, first)
		shares := make([]share, rapid.IntRange(1, 3).Draw(t, "new masters"))
		for i := range shares {
			var all []int
			for shard := range first {
				all = append(all, shard)
			}
			from := rapid.Permutation(all).Draw(t, "sources")[:rapid.IntRange(1, first).Draw(t, "number of sources")]
			most := 0
			for _, shard := range from {
				most += owned[shard].Len()
			}
			shares[i] = share{entry: i, slots: rapid.IntRange(1, most+2).Draw(t, "slots"), to: first + i, from: from}
		}
		goal, err := assign(owned, shares)
		if err != nil {
			checkRefusal(t, owned, shares, err)
			return
		}
		checkGoal(t, owned, goal)
		for i, s := range shares {
			if got := goal[first+i].Len(); got != s.slots {
				t.Fatalf("new master %d receives %d slots, want %d", i, got, s.slots)
			}
		}
		for shard := range first {
			named := slices.ContainsFunc(shares, func(s share) bool { return slices.Contains(s.from, shard) })
			if n := goal[shard].Len(); n < 1 || !named && n != owned[shard].Len() {
				t.Fatalf("shard %d (named: %t) keeps %d of %d slots", shard, named, n, owned[shard].Len())
			}
		}
	})
}

// checkRefusal: shares are refused when they exceed what the sources can spare, by the name of the entry, and the entries
// before it are all right.
func checkRefusal(t *rapid.T, owned []slots.Set, shares []share, err error) {
	for i := range shares {
		if !strings.Contains(err.Error(), fmt.Sprintf("spec.updateStrategy.assignStrategies[%d]:", i)) {
			continue
		}
		goal, err := assign(owned, shares[:i])
		if err != nil {
			t.Fatalf("entry %d is named, and the entries before it are refused: %v", i, err)
		}
		spare := 0
		for _, shard := range shares[i].from {
			spare += goal[shard].Len() - 1
		}
		if spare >= shares[i].slots {
			t.Fatalf("entry %d asks for %d slots of the %d that can be given, and is refused", i, shares[i].slots, spare)
		}
		return
	}
	t.Fatalf("no entry is named: %v", err)
}

func TestProportionalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(1, 6000), 1, 6).Draw(t, "counts")
		total := 0
		for _, c := range counts {
			total += c
		}
		n := rapid.IntRange(0, total-len(counts)).Draw(t, "n")
		parts, sum, squeezed := proportional(n, counts), 0, false
		for i, part := range parts {
			sum += part
			if part < n*counts[i]/total || part >= counts[i] {
				t.Fatalf("%d of %v: source %d gives %d", n, counts, i, part)
			}
			// A source that must keep its last slot leaves its part to the others.
			squeezed = squeezed || n*counts[i]/total+1 >= counts[i]
		}
		for i, part := range parts {
			if !squeezed && part > n*counts[i]/total+1 {
				t.Fatalf("%d of %v: source %d gives %d, more than one above its part", n, counts, i, part)
			}
		}
		if sum != n {
			t.Fatalf("%d of %v: %d are given", n, counts, sum)
		}
	})
}

// anyCluster is a formed cluster in which have shards own everything, and the StatefulSets of all shards up to want are
// there and known to everyone.
func anyCluster(t *rapid.T, have, want int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Formed: true, Seen: map[string]bool{}}
	owned := anyOwned(t, have)
	for shard := range max(have, want) {
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: 2})
		master := rapid.IntRange(0, 1).Draw(t, "ordinal of the master")
		for ordinal := range 2 {
			r := &snapshot.Redis{NodeID: nodeID(shard, ordinal), ClusterOK: true, Master: ordinal == master, Peers: map[string]snapshot.Peer{}}
			switch {
			case ordinal != master:
				r.MasterID, r.MasterLinkUp = nodeID(shard, master), true
			case shard < have:
				r.Slots, r.Keys = owned[shard], 100
			}
			s.Instances = append(s.Instances, snapshot.Instance{Name: fmt.Sprintf("c-%d-%d", shard, ordinal), Shard: shard, Ordinal: ordinal,
				IP: podIP(shard, ordinal), NodeName: fmt.Sprintf("node%d", ordinal), Ready: true, Redis: r})
		}
	}
	introduce(s)
	return s
}

// anyDesired asks for want shards, by either strategy, also the one after the other. Assignments that cannot be made are not drawn.
func anyDesired(t *rapid.T, s *snapshot.Snapshot, have, want int) Desired {
	d := Desired{Policy: v1alpha1.DeletionForeground, HasFinalizer: true, Topology: make(v1alpha1.Topology, want)}
	for i := range d.Topology {
		d.Topology[i] = 2
	}
	s.SlotsAssigned = rapid.Bool().Draw(t, "slots are assigned")
	if d.AssignReceive = rapid.Bool().Draw(t, "AssignReceive"); !d.AssignReceive {
		return d
	}
	sources := have
	if want >= have && rapid.Bool().Draw(t, "the last shard receives") {
		sources--
	}
	var from []string
	spare := 0
	for shard := range sources {
		from = append(from, nodeID(shard, rapid.IntRange(0, 1).Draw(t, "named instance")))
		spare += s.Masters()[shard].Redis.Slots.Len() - 1
	}
	for range want - have {
		assignment := SlotAssignment{Slots: rapid.IntRange(1, max(1, min(1000, spare/4))).Draw(t, "slots"), From: from}
		spare -= assignment.Slots
		d.SlotAssignments = append(d.SlotAssignments, assignment)
	}
	if sources < have && spare >= 0 {
		to := have - 1
		owns := s.Masters()[to].Redis.Slots.Len()
		d.SlotAssignments = append(d.SlotAssignments, SlotAssignment{Slots: max(1, owns+rapid.IntRange(-100, spare).Draw(t, "slots more")),
			From: from, To: &to})
	}
	return d
}

// hand makes the slots of a move the destination's, and everybody know.
func hand(s *snapshot.Snapshot, move Move, set slots.Set) {
	from, to := s.ByNodeID(move.From.NodeID).Redis, s.ByNodeID(move.To.NodeID).Redis
	from.Slots, to.Slots = from.Slots.Subtract(set), to.Slots.Union(set)
	if from.Slots.IsEmpty() {
		from.Keys = 0
	}
	introduce(s)
}

// Slots move once, straight to their final owners, however often the moving is interrupted, and the fewest of them.
func TestScalingMovesEachSlotOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := rapid.IntRange(3, 6).Draw(t, "from"), rapid.IntRange(3, 7).Draw(t, "to")
		s := anyCluster(t, have, want)
		d := anyDesired(t, s, have, want)
		before := make([]slots.Set, max(have, want))
		for shard, master := range s.Masters() {
			before[shard] = master.Redis.Slots
		}
		var first *snapshot.Goal
		var moved slots.Set
		for pass := 0; ; pass++ {
			decision := decide(d, s, now)
			switch step := decision.Step.(type) {
			case RecordGoal:
				if first != nil && cmp.Diff(first, decision.Goal) != "" {
					t.Fatalf("the goal is another one after a crash before it was written down")
				}
				first = decision.Goal
				if rapid.Bool().Draw(t, "written down") {
					s.Goal = decision.Goal
				}
			case MoveSlots:
				for _, move := range step.Moves {
					part := move.Slots
					if pass < 8 { // any of them, not only the first ones
						part = rapid.SampledFrom([]slots.Set{part, part.Take(1), last(part, (part.Len()+1)/2)}).Draw(t, "moved")
					}
					if twice := moved.Intersect(part); !twice.IsEmpty() {
						t.Fatalf("slots %s move twice", twice)
					}
					moved = moved.Union(part)
					hand(s, move, part)
				}
			default:
				checkScaled(t, d, s, before, moved, have)
				return
			}
			if decision.Goal == nil {
				t.Fatalf("%s has no goal", decision.Step.Name())
			}
		}
	})
}

// checkScaled: the spec is fulfilled and nothing asks for more slots to move.
func checkScaled(t *rapid.T, d Desired, s *snapshot.Snapshot, before []slots.Set, moved slots.Set, have int) {
	want := len(d.Topology)
	after := make([]slots.Set, max(have, want))
	for shard, master := range s.Masters() {
		after[shard] = master.Redis.Slots
	}
	if n := checkGoal(t, before, after); n != moved.Len() {
		t.Fatalf("%d slots were moved, and %d are elsewhere", moved.Len(), n)
	}
	switch counts := lengths(after); {
	case !d.AssignReceive && (want != have || s.SlotsAssigned):
		if fewest := fewestMoves(before, want); moved.Len() != fewest {
			t.Fatalf("%d slots moved, %d are enough", moved.Len(), fewest)
		}
		if slices.Max(counts[:want])-slices.Min(counts[:want]) > 1 {
			t.Fatalf("shards own %v", counts)
		}
	case want == have && len(d.SlotAssignments) == 0 && !moved.IsEmpty():
		t.Fatalf("nothing was to change, and slots %s moved", moved)
	case want >= have:
		for i, assignment := range d.SlotAssignments {
			to, slots := have+i, assignment.Slots
			if assignment.To != nil {
				to, slots = *assignment.To, max(assignment.Slots, before[*assignment.To].Len())
			}
			if counts[to] != slots {
				t.Fatalf("shard %d owns %d slots, want %d", to, counts[to], slots)
			}
		}
	}
	s.Goal = nil
	in := input{desired: d, snap: s, topology: ShapeOf(d, s, now).Topology, now: now}
	if goal, err := in.goal(); goal != nil || err != nil {
		t.Fatalf("the goal is reached, and there is another one: %v, %v", goal, err)
	}
	if in.slotsAssigned() != d.AssignReceive {
		t.Fatalf("the slots are assigned: %t, want %t", in.slotsAssigned(), d.AssignReceive)
	}
}

// A goal is kept until it is reached and every slot has an owner; also then, while what is asked for is not known. A paused cluster records
// none, and shows what would move.
func TestGoalIsKeptUntilItIsReached(t *testing.T) {
	d := with(topologyOf(4))
	reach := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		for shard, part := range s.Goal.Shards {
			s.Find(shard, 0).Redis.Slots = part
		}
		introduce(s)
		return s
	}
	reached := func() *snapshot.Snapshot { return reach(recorded(d, joined(4))) }
	for name, tt := range map[string]struct {
		snapshot     *snapshot.Snapshot
		change       func(*Desired)
		kept, moving bool
	}{
		"it is recorded":        {snapshot: joined(4), kept: true, moving: true},
		"it is not, in a pause": {snapshot: joined(4), change: func(d *Desired) { d.Paused = true }, moving: true},
		"slots move":            {snapshot: recorded(d, joined(4)), kept: true, moving: true},
		"slots move, and a pause": {snapshot: recorded(d, joined(4)), change: func(d *Desired) { d.Paused = true }, kept: true,
			moving: true},
		"slots move, and a mistake": {snapshot: recorded(d, joined(4)), change: func(d *Desired) { d.Problems = []string{"a"} }, kept: true,
			moving: true},
		"it is reached": {snapshot: reached()},
		"it is reached, and a shard is left with nothing": {snapshot: reach(recorded(with(topologyOf(3)), scaled(4))),
			change: func(d *Desired) { d.Topology = topologyOf(3) }},
		"it is reached, and a mistake": {snapshot: reached(), change: func(d *Desired) { d.Problems = []string{"a"} }, kept: true},
		"it is reached, and a slot has no owner": {snapshot: changed(reached, func(s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Slots = s.Find(0, 0).Redis.Slots.Subtract(slots.Of(0))
			introduce(s)
		})(), kept: true},
		"there is none":                {snapshot: formed(), change: func(d *Desired) { d.Topology = topologyOf(3) }},
		"there is none, and a mistake": {snapshot: formed(), change: func(d *Desired) { d.Problems = []string{"a"} }},
	} {
		asked := with(topologyOf(4))
		if tt.change != nil {
			tt.change(&asked)
		}
		got := decide(asked, tt.snapshot, now)
		if (got.Goal != nil) != tt.kept || (len(got.Moves) > 0) != tt.moving {
			t.Errorf("%s: %s: goal %v, moves %v", name, got.Step.Name(), got.Goal, got.Moves)
		}
	}
}

// Slots count as assigned from when they are until they are balanced; what is not in force, or not known, changes nothing of that.
func TestSlotsAreAssignedUntilTheyAreBalanced(t *testing.T) {
	receive := func() Desired { d := desired(); d.AssignReceive = true; return d }
	but := func(change func(*Desired)) Desired { d := receive(); change(&d); return d }
	apart := func() *snapshot.Snapshot {
		s := formed()
		for shard, part := range uneven() {
			s.Find(shard, 0).Redis.Slots = part
		}
		introduce(s)
		return s
	}
	sleepy := lose(formed(), 0, 1)
	sleepy.Hibernated = topologyOf(3)
	for name, tt := range map[string]struct {
		desired  Desired
		snapshot *snapshot.Snapshot
		were, is bool
	}{
		"they are to be":                    {receive(), formed(), false, true},
		"they stay so":                      {receive(), formed(), true, true},
		"they never were":                   {with(topologyOf(4)), joined(4), false, false},
		"they are to be balanced":           {desired(), apart(), true, true},
		"they are balanced":                 {desired(), formed(), true, false},
		"it is not certain who owns what":   {desired(), lose(apart(), 1, 0), true, true},
		"while the spec is not valid":       {but(func(d *Desired) { d.Problems = []string{"a"} }), formed(), false, false},
		"in a pause":                        {but(func(d *Desired) { d.Paused = true }), formed(), false, false},
		"before the cluster is awake again": {receive(), sleepy, false, false},
	} {
		tt.snapshot.SlotsAssigned = tt.were
		if got := decide(tt.desired, tt.snapshot, now); got.SlotsAssigned != tt.is {
			t.Errorf("%s: %s: they are assigned: %t", name, got.Step.Name(), got.SlotsAssigned)
		}
	}
	in := ShapeOf(with(topologyOf(4)), joined(4), now).in
	in.snap.Hibernated = topologyOf(3)
	if goal, err := in.goal(); goal != nil || err != nil {
		t.Errorf("slots are to move before the cluster is awake: %v, %v", goal, err)
	}
}

// A person who names sources that cannot give is told who can, in order.
func TestMastersThatCanGive(t *testing.T) {
	var want []string
	for shard := range 7 {
		want = append(want, nodeID(shard, 0))
	}
	if diff := cmp.Diff(want, ShapeOf(with(topologyOf(8)), scaled(8), now).in.masterIDs(7)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
