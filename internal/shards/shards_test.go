// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Replicas of two versions work beside each other while the operator is upgraded: they must agree.
func TestOfNeverChanges(t *testing.T) {
	got := map[string]int{}
	for _, namespace := range []string{"", "default", "shop", "kube-system"} {
		got[namespace] = Of(namespace, Most)
	}
	if diff := cmp.Diff(map[string]int{"": 20, "default": 29, "shop": 29, "kube-system": 1}, got); diff != "" {
		t.Errorf("shards of namespaces (-want +got):\n%s", diff)
	}
}

func TestNamespacesAreSpread(t *testing.T) {
	const namespaces = 4000
	for _, shards := range []int{2, 3, 8, Most} {
		counts := make([]int, shards)
		for i := range namespaces {
			counts[Of(fmt.Sprintf("team-%d", i), shards)]++
		}
		for shard, n := range counts {
			if want := namespaces / shards; n < want/2 || n > want*3/2 {
				t.Errorf("shard %d of %d has %d of %d namespaces", shard, shards, n, namespaces)
			}
		}
	}
}

// sets are sets of live members: all of them for few shards, and many by chance.
func sets(shards int) [][]bool {
	var all [][]bool
	random := rand.New(rand.NewPCG(1, uint64(shards)))
	for i := range uint64(1) << min(shards, 7) {
		set := i
		if shards > 7 {
			set = random.Uint64()
			if random.IntN(2) == 0 { // few members are what there is most of the time
				set &= random.Uint64() & random.Uint64()
			}
		}
		live := make([]bool, shards)
		for member := range live {
			live[member] = set>>member&1 == 1
		}
		all = append(all, live)
	}
	return all
}

func count(live []bool) int {
	n := 0
	for _, lives := range live {
		if lives {
			n++
		}
	}
	return n
}

func TestAssignIsTotalAndBalanced(t *testing.T) {
	for shards := Fewest; shards <= Most; shards++ {
		for _, live := range sets(shards) {
			has := map[int]int{}
			for shard, member := range Assign(live) {
				if count(live) == 0 {
					if member != -1 {
						t.Fatalf("%v: shard %d is %d's", live, shard, member)
					}
					continue
				}
				if member < 0 || !live[member] {
					t.Fatalf("%v: shard %d is %d's, who does not live", live, shard, member)
				}
				has[member]++
			}
			for member, lives := range live {
				each := shards / max(1, count(live))
				if lives && (has[member] < each || has[member] > each+1) {
					t.Fatalf("%v: member %d has %d of %d shards", live, member, has[member], shards)
				}
			}
		}
	}
}

// When a member comes or goes, its own shards have to move. Of the others few do: less than a quarter in the worst case.
func TestFewShardsMove(t *testing.T) {
	moved, had := 0, 0
	for _, shards := range []int{4, 8, 16, Most} {
		for _, live := range sets(shards) {
			for member := range live {
				if live[member] || count(live) == 0 {
					continue
				}
				before := Assign(live)
				with := append([]bool{}, live...)
				with[member] = true
				others := 0
				for shard, after := range Assign(with) {
					if after != before[shard] && after != member {
						others++
					}
				}
				if others > 1+shards/3 {
					t.Errorf("%d shards, %v and %d: %d shards move between members that stay", shards, live, member, others)
				}
				moved, had = moved+others, had+shards
			}
		}
	}
	if moved*10 > had {
		t.Errorf("%d of %d shards move between members that stay", moved, had)
	}
}

func TestDecide(t *testing.T) {
	both := []bool{true, true, false, false}
	assigned := Assign(both)
	if bits.OnesCount(uint(assigned[0]+assigned[1]*2+assigned[2]*4+assigned[3]*8)) != 2 {
		t.Fatalf("assigned: %v", assigned)
	}
	mine, theirs := -1, -1
	for shard, member := range assigned {
		if member == 0 && mine < 0 {
			mine = shard
		} else if member == 1 && theirs < 0 {
			theirs = shard
		}
	}
	for name, tt := range map[string]struct {
		member int
		live   []bool
		stand  bool
		stages map[int]Stage
		want   map[int]Do
	}{
		"what is assigned is tried": {live: both, stages: map[int]Stage{mine: Idle, theirs: Idle},
			want: map[int]Do{mine: Try}},
		"what is another's is not tried any more": {live: both, stages: map[int]Stage{mine: Trying, theirs: Trying},
			want: map[int]Do{theirs: Leave}},
		"what is another's is let go": {live: both, stages: map[int]Stage{mine: Held, theirs: Held},
			want: map[int]Do{theirs: Drain}},
		"what is drained is not tried before it is": {live: both, stages: map[int]Stage{mine: Draining, theirs: Draining}},
		"without a slot nothing is tried": {member: -1, live: both, stages: map[int]Stage{mine: Idle, theirs: Trying},
			want: map[int]Do{theirs: Leave}},
		"without a slot all is let go for those with": {member: -1, live: both, stages: map[int]Stage{mine: Held},
			want: map[int]Do{mine: Drain}},
		"what is nobody's is kept": {member: -1, live: make([]bool, 4), stages: map[int]Stage{mine: Held}},
		"who may work on nothing lets go of everything": {live: both, stand: true, stages: map[int]Stage{mine: Held, theirs: Trying},
			want: map[int]Do{mine: Drain, theirs: Leave}},
		"and begins nothing": {live: both, stand: true, stages: map[int]Stage{mine: Idle}},
	} {
		t.Run(name, func(t *testing.T) {
			v := View{Member: tt.member, Live: tt.live, Stand: tt.stand, Stages: []Stage{Draining, Draining, Draining, Draining}}
			for shard, stage := range tt.stages {
				v.Stages[shard] = stage
			}
			got := map[int]Do{}
			for _, step := range v.Decide() {
				got[step.Shard] = step.Do
			}
			if tt.want == nil {
				tt.want = map[int]Do{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreeSlot(t *testing.T) {
	for _, tt := range []struct {
		live       []bool
		from, want int
	}{
		{[]bool{false, false, false}, 1, 1}, {[]bool{true, false, true}, 2, 1}, {[]bool{true, true, true}, 0, -1},
	} {
		if got := FreeSlot(tt.live, tt.from); got != tt.want {
			t.Errorf("%v from %d: %d, want %d", tt.live, tt.from, got, tt.want)
		}
	}
}
