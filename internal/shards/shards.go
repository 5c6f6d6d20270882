// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shards divides the custom resources among replicas of the operator that work at the same time. A namespace belongs to a shard, by
// a hash; a replica works on the objects of a shard while it has the shard's Lease. Which replica tries to get which Lease is decided
// without asking anybody: by a pure function of the replicas that live.
package shards

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
)

// Fewest is how many shards there are at least.
const Fewest = 2

// Most is how many shards there may be.
const Most = 32

// Of is the shard of a namespace, of so many. The names of Leases and what replicas of other versions work on depend on it: it never
// changes.
func Of(namespace string, shards int) int {
	sum := sha256.Sum256([]byte(namespace))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(shards)) //nolint:gosec // there are a few shards
}

// Assign says which member is to have which shard: the index is the shard's, the value the member's. live says by slot which members live;
// with none, every value is -1. The numbers of shards of any two members differ by one at the most, and few shards change hands when a
// member comes or goes: each shard likes members in an order of its own.
func Assign(live []bool) []int {
	type wish struct {
		shard, member int
		weight        uint64
	}
	var wishes []wish
	members := 0
	assigned := make([]int, len(live))
	for member, lives := range live {
		assigned[member] = -1
		if !lives {
			continue
		}
		members++
		for shard := range live {
			wishes = append(wishes, wish{shard, member, weights()[shard][member]})
		}
	}
	if members == 0 {
		return assigned
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.shard, b.shard), cmp.Compare(a.member, b.member))
	})
	each, more := len(live)/members, len(live)%members
	has := make([]int, len(live))
	for _, w := range wishes {
		full := has[w.member] > each || has[w.member] == each && more == 0
		if assigned[w.shard] >= 0 || full {
			continue
		}
		if has[w.member] == each {
			more--
		}
		has[w.member]++
		assigned[w.shard] = w.member
	}
	return assigned
}

// weights are how much each shard likes each member.
var weights = sync.OnceValue(func() *[Most][Most]uint64 {
	var all [Most][Most]uint64
	for shard := range all {
		for member := range all[shard] {
			sum := sha256.Sum256([]byte{byte(shard), byte(member)})
			all[shard][member] = binary.BigEndian.Uint64(sum[:8])
		}
	}
	return &all
})
