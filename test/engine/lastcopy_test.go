// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

const manyKeys = 300

// eachWay runs a test with instances that come back where they were, and at other addresses.
func eachWay(t *testing.T, test func(t *testing.T, e engine, moved bool)) {
	t.Helper()
	t.Parallel()
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved %t", moved), func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, e engine) { test(t, e, moved) })
		})
	}
}

// An instance that has lost its nodes.conf and has the only copy of its shard keeps its keys: the others forget who it was
// before they are told who it is.
func TestLastCopyIsKept(t *testing.T) {
	eachWay(t, func(t *testing.T, e engine, moved bool) {
		for _, lost := range [][]int{{0}, {0, 1}, {0, 1, 2}} {
			o := operate(t, e, 1, 1, 1)
			o.fill(manyKeys)
			for _, shard := range lost {
				o.stop(o.named(shard, 0))
			}
			for _, shard := range lost {
				o.again(o.named(shard, 0), moved, true)
			}
			o.converge()
			if kept := o.kept(manyKeys); kept != manyKeys {
				t.Errorf("%d of %d keys after shards %v lost their nodes.conf:\n%v", kept, manyKeys, lost, o.steps)
			}
		}
	})
}

// Why that order: in the other one the engines delete the keys. (Where the address has not changed they do not: nodes tell
// nobody of one at whose address another one answers. It is not theirs either, until the former one is forgotten.)
func TestLastCopyIsLostInTheWrongOrder(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 1, 1, 1)
		o.fill(manyKeys)
		lost, other := o.named(0, 0), o.named(1, 0)
		o.stop(lost)
		o.again(lost, true, true)
		had := o.view(lost).Keys
		must(t, o.node(other).Meet(t.Context(), lost.pod.Status.PodIP, 6379, 16379))
		eventually(t, func() error {
			left := o.view(lost).Keys
			return want(had > 0 && left == 0, "%d of %d keys are left", left, had)
		})
	})
}

// A master that lost its nodes.conf gives way to a replica that had all of its data.
func TestReplicaInSyncSucceedsAMasterWithoutNodesConf(t *testing.T) {
	eachWay(t, func(t *testing.T, e engine, moved bool) {
		o := operate(t, e, 2, 1, 1)
		o.fill(manyKeys)
		lost := o.master(0)
		o.stop(lost)
		o.again(lost, moved, true)
		o.converge()
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys:\n%v", kept, manyKeys, o.steps)
		}
	})
}

// A replica that is not known to have had all of its master's data does not succeed one that has its data, and lost its
// nodes.conf. A person says which copy counts.
func TestPersonChoosesBetweenCopies(t *testing.T) {
	eachWay(t, func(t *testing.T, e engine, moved bool) {
		for _, all := range []bool{false, true} {
			o := operate(t, e, 2, 1, 1)
			o.fill(manyKeys)
			lost := o.master(0)
			replica := o.named(0, 0)
			if replica == lost {
				replica = o.named(0, 1)
			}
			o.stop(lost, replica)
			o.again(replica, true, all)
			o.again(lost, moved, true)
			stall, stalled := o.until("Stall", "None").(plan.Stall)
			if !stalled && !moved && !all {
				// The replica found its master's process at the address that it knew, and copied all of it before anybody looked.
				if kept := o.kept(manyKeys); kept != manyKeys {
					t.Errorf("%d of %d keys of a replica that was in sync again:\n%v", kept, manyKeys, o.steps)
				}
				continue
			}
			if stall.Cause != "AmbiguousOwner" || stall.BlockedBy != plan.ClaimsUndisputed {
				t.Errorf("it stalls for %s (%s): %s", stall.Cause, stall.BlockedBy, stall.Why())
			}
			o.giveUp(replica)
			o.converge()
			if kept := o.kept(manyKeys); kept != manyKeys {
				t.Errorf("%d of %d keys, all lost nodes.conf %t:\n%v", kept, manyKeys, all, o.steps)
			}
		}
	})
}

// A former master that comes back with its nodes.conf, when its successor has lost everything, keeps the only copy that is left:
// the successor's ID has the newer epoch, and is forgotten first.
func TestFormerMasterOutlivesItsSuccessor(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2, 1, 1)
		o.fill(manyKeys)
		former := o.master(0)
		successor := o.named(0, 0)
		if successor == former {
			successor = o.named(0, 1)
		}
		o.stop(former)
		must(t, o.node(successor).Failover(t.Context(), redis.FailoverForce))
		eventually(t, func() error {
			view, err := o.node(o.named(1, 0)).Describe(t.Context())
			peer, _ := view.Peer(mustIdentify(t, o.node(successor)))
			return want(err == nil && !peer.Slots.IsEmpty(), "nobody has heard of it yet")
		})
		o.stop(successor)
		successor.server.dir = t.TempDir()
		o.again(successor, true, false)
		o.again(former, true, false)
		o.converge()
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys:\n%v", kept, manyKeys, o.steps)
		}
	})
}
