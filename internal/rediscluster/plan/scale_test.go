// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// topologyOf is n shards of 2 instances.
func topologyOf(n int) v1alpha1.Topology { return slices.Repeat(v1alpha1.Topology{2}, n) }

// joined is the formed cluster with more shards, whose instances are members and own nothing.
func joined(shards int) *snapshot.Snapshot {
	s := formed()
	for shard := 3; shard < shards; shard++ {
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: 2})
		for ordinal := range 2 {
			in := snapshot.Instance{Name: fmt.Sprintf("c-%d-%d", shard, ordinal), Shard: shard, Ordinal: ordinal, IP: podIP(shard, ordinal),
				NodeName: "node0", Ready: true,
				Redis: &snapshot.Redis{NodeID: nodeID(shard, ordinal), Master: ordinal == 0, ClusterOK: true, Peers: map[string]snapshot.Peer{}}}
			if ordinal > 0 {
				in.Redis.MasterID, in.Redis.MasterLinkUp = nodeID(shard, 0), true
			}
			s.Instances = append(s.Instances, in)
		}
	}
	introduce(s)
	return s
}

// scaled is the cluster of that many shards with the slots spread over all of them.
func scaled(shards int) *snapshot.Snapshot {
	s := joined(shards)
	for shard, part := range slots.All().Split(shards) {
		s.Find(shard, 0).Redis.Slots = part
	}
	introduce(s)
	return s
}

// recorded notes the goal that the first reconciliation would record.
func recorded(d Desired, s *snapshot.Snapshot) *snapshot.Snapshot {
	s.Goal = decide(d, s, now).Goal
	return s
}

func with(topology v1alpha1.Topology) Desired {
	d := desired()
	d.Topology = topology
	return d
}

func backedUp(s *snapshot.Snapshot) *snapshot.Snapshot {
	s.Backup = snapshot.Backup{Name: "monday", UID: "b"}
	return s
}

func TestScaling(t *testing.T) {
	assign := func(n int, assignments ...SlotAssignment) Desired {
		d := with(topologyOf(n))
		d.AssignReceive, d.SlotAssignments = true, assignments
		return d
	}
	shard := func(n int) *int { return &n }
	assigned := func(s *snapshot.Snapshot) *snapshot.Snapshot { s.SlotsAssigned = true; return s }
	otherwise := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		s.Goal = &snapshot.Goal{For: "another", From: 3}
		return s
	}
	draft := func(d Desired) Desired { d.Paused = true; return d }
	uneven := func() *snapshot.Snapshot {
		s := formed()
		from, to := s.Find(0, 0).Redis, s.Find(1, 0).Redis
		part := from.Slots.Take(100)
		from.Slots, to.Slots = from.Slots.Subtract(part), to.Slots.Union(part)
		introduce(s)
		return s
	}
	for name, tt := range map[string]struct {
		desired   Desired
		snapshot  *snapshot.Snapshot
		situation Situation
		step, why string
	}{
		"a shard is asked for": {with(topologyOf(4)), formed(), ScalingOut, "Wait", "instance 0 of shard 3 has no pod yet"},
		"what is to move is recorded first": {with(topologyOf(4)), joined(4), ScalingOut, "RecordGoal",
			"4096 slots are to move, so that 4 shards own them: 1365 from c-0-0 to c-3-0, 1366 from c-1-0 to c-3-0, 1365 from c-2-0 to c-3-0"},
		"no scaling begins during a backup": {with(topologyOf(4)), backedUp(joined(4)), ScalingOut, "Wait",
			"slots are to move when RedisBackup monday has ended"},
		"a backup waits for a scaling": {with(topologyOf(4)), backedUp(recorded(with(topologyOf(4)), joined(4))), ScalingOut, "MoveSlots",
			"4096 slots are left to move"},
		"a backup waits for a scaling that is asked for otherwise meanwhile": {with(topologyOf(5)),
			backedUp(recorded(with(topologyOf(4)), joined(5))), ScalingOut, "RecordGoal", "slots are to move, so that 5 shards own them"},
		"new masters get the functions first": {with(topologyOf(4)), with4(func(s *snapshot.Snapshot) { s.Find(1, 0).Redis.Libraries = 2 }),
			ScalingOut, "CopyFunctions", "the 2 function libraries of c-1-0"},
		"slots move": {with(topologyOf(4)), recorded(with(topologyOf(4)), joined(4)), ScalingOut, "MoveSlots",
			"4096 slots are left to move"},
		"a master that has just received slots gives none": {with(topologyOf(4)), recorded(with(topologyOf(4)), received(joined(4), 9*time.Second)), ScalingOut, "Wait",
			"has received slots itself: it gives none for twice the node timeout, which is over in 1s"},
		"and does when nobody can hear of before any more": {with(topologyOf(4)), recorded(with(topologyOf(4)), received(joined(4), 10*time.Second)), ScalingOut, "MoveSlots", "4096 slots are left"},
		"no slot moves to a master that does not serve yet": {
			with(topologyOf(4)), recorded(with(topologyOf(4)), with4(func(s *snapshot.Snapshot) {
				s.Find(3, 0).Redis.ClusterOK = false
			})), ScalingOut, "Wait", "c-3-0 does not serve yet"},
		"no slot moves to a shard whose replica is not in sync": {
			with(topologyOf(4)), recorded(with(topologyOf(4)), with4(func(s *snapshot.Snapshot) {
				s.Find(3, 1).Redis.MasterLinkUp = false
			})), ScalingOut, "Wait", "c-3-1 is not in sync"},
		"no slot moves to a shard whose replica could not say whose it is": {
			with(topologyOf(4)), recorded(with(topologyOf(4)), with4(func(s *snapshot.Snapshot) {
				s.Find(3, 1).Redis.ClusterOK = false
			})), ScalingOut, "Wait", "c-3-1 does not know yet who owns which slots"},
		"no slot moves to a shard of which an instance does not know all owners": {
			with(topologyOf(4)), recorded(with(topologyOf(4)), with4(func(s *snapshot.Snapshot) {
				peer := s.Find(3, 1).Redis.Peers[nodeID(1, 0)]
				peer.Slots = slots.Set{}
				s.Find(3, 1).Redis.Peers[nodeID(1, 0)] = peer
			})), ScalingOut, "Wait", "c-3-1 does not know yet who owns which slots"},
		"no slot moves to a shard that lost an instance": {with(topologyOf(4)), lose(recorded(with(topologyOf(4)), joined(4)), 3, 1),
			ScalingOut, "Wait", "instance 1 of shard 3, which is to receive slots, does not answer"},
		"slots of other shards move on when a replica is lost": {with(topologyOf(4)), lose(recorded(with(topologyOf(4)), joined(4)), 0, 1),
			ScalingOut, "MoveSlots", "4096 slots are left"},
		"a shard is drained": {with(topologyOf(3)), recorded(with(topologyOf(3)), scaled(4)), ScalingIn, "MoveSlots",
			"4096 slots are left to move: 1366 from c-3-0 to c-0-0, 1365 from c-3-0 to c-1-0, 1365 from c-3-0 to c-2-0"},
		"a drained shard is forgotten": {with(topologyOf(3)), joined(4), ScalingIn, "Forget", "hold nothing: c-3-0, c-3-1"},
		"a drained shard that nobody knows goes": {with(topologyOf(3)), forgotten(joined(4), 3), ScalingIn, "RemoveShards",
			"shards [3]"},
		"nobody goes while an instance does not answer": {with(topologyOf(3)), lose(forgotten(joined(4), 3), 1, 1), ScalingIn, "Wait",
			"c-1-1 does not answer"},
		"a shard that never came up does not hinder": {with(topologyOf(3)), neverStarted(3), ScalingIn, "RemoveShards", "shards [3]"},
		"a shard that holds the only copy of a slot stays": {with(topologyOf(3)), lose(scaled(4), 3, 0), Healing, "Wait",
			"c-3-0 does not answer"},
		"keys without an owner are not thrown away": {
			with(topologyOf(3)), with4(func(s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 5 }), Failed, "Stall",
			"c-3-0 is to go, owns no slot and holds 5 keys"},
		"a master that is to go switches over": {with(v1alpha1.Topology{2, 1, 2}), swapped(formed(), 1), ScalingIn, "Switchover",
			"c-1-0 takes over"},
		"and does not to a replica that thinks it owns more": {with(v1alpha1.Topology{2, 1, 2}), outdated(swapped(formed(), 1), 1), ScalingIn,
			"Wait", "has not heard yet what c-1-1 is and owns"},
		"and does not without a replica in sync": {with(v1alpha1.Topology{2, 1, 2}), unsynced(swapped(formed(), 1), 1, 0), ScalingIn,
			"Wait", "c-1-0 is not in sync"},
		"a replica that is to go is forgotten": {with(v1alpha1.Topology{2, 1, 2}), formed(), ScalingIn, "Forget",
			"hold nothing: c-1-1"},
		"a pod that is to go is waited for": {with(v1alpha1.Topology{2, 1, 2}), stopping(1, 1), ScalingIn, "Wait",
			"c-1-1 is to go and is still there"},
		"a StatefulSet that is to go is waited for": {with(topologyOf(3)), deleted(formed(), 3), ScalingIn, "Wait",
			"StatefulSet c-3 is to go and is still there"},
		"entries are counted": {
			assign(5, SlotAssignment{Slots: 5, From: []string{nodeID(0, 0)}}, SlotAssignment{Slots: 6000, From: []string{nodeID(0, 0)},
				To: shard(1)}), joined(5),
			Failed, "Stall", "1 entries for 2 new masters"},
		"of one new master, too": {
			assign(4, SlotAssignment{Slots: 5, From: []string{nodeID(0, 0)}}, SlotAssignment{Slots: 5, From: []string{nodeID(0, 0)}}), joined(4),
			Failed, "Stall", "2 entries for 1 new masters"},
		"a running cluster's slots move to the shard that is named": {assign(3, SlotAssignment{Slots: 5471, From: []string{nodeID(0, 0), nodeID(2, 1)}, To: shard(1)}), formed(), ScalingOut, "RecordGoal",
			"9 slots are to move, so that 3 shards own them: 5 from c-0-0 to c-1-0, 4 from c-2-0 to c-1-0"},
		"a shard that has what the entry says needs no source": {assign(3, SlotAssignment{Slots: 5462, From: []string{nodeID(9, 9)},
			To: shard(1)}),
			formed(), Steady, "None", ""},
		"entries for new masters do nothing when none joins": {assign(3, SlotAssignment{Slots: 5, From: []string{nodeID(9, 9)}}), formed(),
			Steady, "None",
			""},
		"new masters and running ones receive together": {assign(4, SlotAssignment{Slots: 5472, From: []string{nodeID(0, 0)}, To: shard(1)}, SlotAssignment{Slots: 5, From: []string{nodeID(2, 0)}}), joined(4), ScalingOut, "RecordGoal", "10 from c-0-0 to c-1-0, 5 from c-2-0 to c-3-0"},
		"no shard gives and receives": {
			assign(3, SlotAssignment{Slots: 6000, From: []string{nodeID(0, 0)}, To: shard(1)}, SlotAssignment{Slots: 6000,
				From: []string{nodeID(1, 0)}, To: shard(0)}),
			formed(), Failed, "Stall", "assignStrategies[0].fromReplicas: " + nodeID(0, 0) + " is of shard 0, which receives slots by entry 1"},
		"a shard that joins is not named": {
			assign(4, SlotAssignment{Slots: 5, From: []string{nodeID(0, 0)}}, SlotAssignment{Slots: 5, From: []string{nodeID(0, 0)},
				To: shard(3)}), joined(4), Failed,
			"Stall", "assignStrategies[1].toShard: shard 3 owns no slots yet"},
		"back to AutoReceive the slots are balanced": {desired(), assigned(uneven()), ScalingOut, "RecordGoal",
			"100 slots are to move, so that 3 shards own them: 100 from c-1-0 to c-0-0"},
		"a shard that owns nothing, between others, gets its share": {desired(), changed(formed, func(s *snapshot.Snapshot) {
			giveShard(s, 1, 0)
			introduce(s)
		})(), ScalingOut, "RecordGoal", "so that 3 shards own them: 5461 from c-0-0 to c-1-0"},
		"what was begun otherwise is evened out": {desired(), otherwise(uneven()), ScalingOut, "RecordGoal", "100 from c-1-0 to c-0-0"},
		"shards are drained with assignments, too": {assign(3), scaled(4), ScalingIn, "RecordGoal",
			"4096 slots are to move, so that 3 shards own them"},
		"and when one of them has been": {assign(3), changed(func() *snapshot.Snapshot { return scaled(5) }, func(s *snapshot.Snapshot) {
			giveShard(s, 3, 0)
			introduce(s)
		})(), ScalingIn, "RecordGoal", "so that 3 shards own them"},
		"who moved slots by hand is left alone": {desired(), uneven(), Steady, "None", ""},
		"a draft of AssignReceive shows what it would move": {draft(assign(3, SlotAssignment{Slots: 5471, From: []string{nodeID(0, 0)},
			To: shard(1)})),
			formed(), Paused, "Hold", "spec.pause is true"},
		"sources must be known": {assign(4, SlotAssignment{Slots: 5, From: []string{nodeID(9, 9)}}), joined(4), Failed, "Stall",
			"spec.updateStrategy.assignStrategies[0].fromReplicas: " + nodeID(9, 9) + " is no instance of a shard that can give slots"},
		"who joins gives nothing": {assign(4, SlotAssignment{Slots: 5, From: []string{nodeID(3, 0)}}), joined(4), Failed, "Stall",
			nodeID(3, 0) + " is no instance of a shard that can give slots"},
		"sources must be known though the new master has enough by now": {assign(4, SlotAssignment{Slots: 5, From: []string{nodeID(9, 9)}}),
			otherwise(scaled(4)), Failed, "Stall", nodeID(9, 9) + " is no instance of a shard that can give slots"},
		"sources cannot give what they do not own": {assign(4, SlotAssignment{Slots: 6000, From: []string{nodeID(0, 0)}}), joined(4), Failed,
			"Stall",
			"assignStrategies[0]: the named masters own 5461 slots"},
		"a source is named by its replica too": {assign(4, SlotAssignment{Slots: 5, From: []string{nodeID(0, 1)}}), joined(4), ScalingOut,
			"RecordGoal",
			"5 from c-0-0 to c-3-0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tt.desired, tt.snapshot, now)
			if got.Situation != tt.situation || got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s in %s: %s\nwant %s in %s: %s", got.Step.Name(), got.Situation, got.Step.Why(), tt.step, tt.situation, tt.why)
			}
		})
	}
}

func with4(change func(*snapshot.Snapshot)) *snapshot.Snapshot {
	return changed(func() *snapshot.Snapshot { return joined(4) }, change)()
}

// received makes all masters have received slots a while ago.
func received(s *snapshot.Snapshot, ago time.Duration) *snapshot.Snapshot {
	for _, master := range s.Masters() {
		master.Redis.NodeTimeout, master.Redis.ReceivedAt = 5*time.Second, now.Add(-ago)
	}
	return s
}

// lose makes an instance's Redis not answer.
func lose(s *snapshot.Snapshot, shard, ordinal int) *snapshot.Snapshot {
	in := s.Find(shard, ordinal)
	in.Redis, in.Error = nil, "timeout"
	return s
}

// forgotten takes a shard out of the tables of all others.
func forgotten(s *snapshot.Snapshot, shard int) *snapshot.Snapshot {
	for _, in := range s.Reachable() {
		if in.Shard != shard {
			delete(in.Redis.Peers, nodeID(shard, 0))
			delete(in.Redis.Peers, nodeID(shard, 1))
		}
	}
	return s
}

// neverStarted is the formed cluster with a shard more, whose pods cannot be scheduled.
func neverStarted(shard int) *snapshot.Snapshot {
	s := formed()
	s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: "c", Replicas: 2})
	s.Instances = append(s.Instances, snapshot.Instance{Name: "c", Shard: shard, Waiting: "not scheduled"})
	return s
}

// swapped makes the second instance of a shard its master.
func swapped(s *snapshot.Snapshot, shard int) *snapshot.Snapshot {
	was, is := s.Find(shard, 0).Redis, s.Find(shard, 1).Redis
	is.Slots, is.Master, is.MasterID = was.Slots, true, ""
	was.Slots, was.Master, was.MasterID, was.MasterLinkUp = slots.Set{}, false, is.NodeID, true
	introduce(s)
	return s
}

func unsynced(s *snapshot.Snapshot, shard, ordinal int) *snapshot.Snapshot {
	s.Find(shard, ordinal).Redis.MasterLinkUp = false
	return s
}

// outdated makes the first instance of a shard think that its master, the second, owns a
// slot of shard 0 too.
func outdated(s *snapshot.Snapshot, shard int) *snapshot.Snapshot {
	peers := s.Find(shard, 0).Redis.Peers
	master := peers[nodeID(shard, 1)]
	master.Slots = master.Slots.Union(slots.Of(0))
	peers[nodeID(shard, 1)] = master
	return s
}

// stopping is the formed cluster of which an instance was let go and stops.
func stopping(shard, ordinal int) *snapshot.Snapshot {
	s := formed()
	forgetAll(s, nodeID(shard, ordinal))
	s.Shards[shard].Replicas--
	s.Find(shard, ordinal).Terminating = true
	return s
}

// An instance that comes back with an old claim may follow a node that nobody else has ever
// heard of: it follows its shard's master instead.
func TestReplicaOfANodeOfThePast(t *testing.T) {
	s := joined(4)
	s.Find(3, 1).Redis.MasterID, s.Find(3, 1).Redis.MasterLinkUp = nodeID(9, 9), false
	introduce(s)
	step, ok := decide(with(topologyOf(4)), s, now).Step.(Replicate)
	if !ok || step.Replications[0].MasterID != nodeID(3, 0) {
		t.Errorf("got %+v", decide(with(topologyOf(4)), s, now).Step)
	}
}

// Clients are led elsewhere before an instance goes: the Service first, and then as long as
// they ask it for slots that have moved, for a minute at most.
func TestClientsBeforeLeaving(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*snapshot.Instance)
		step, why string
	}{
		"in the Service": {func(in *snapshot.Instance) { in.InEndpoints = true }, "RemoveFromEndpoints", "c-1-1"},
		"just out of the Service": {func(in *snapshot.Instance) { in.RemovedFromEndpointsAt = now.Add(-time.Second) }, "Wait",
			"all of Kubernetes is to hear of it"},
		"still asked": {func(in *snapshot.Instance) {
			in.RemovedFromEndpointsAt, in.Redis.RedirectedAt = now.Add(-50*time.Second), now.Add(-4*time.Second)
		}, "Wait", "clients still ask c-1-1"},
		"asked for ever": {func(in *snapshot.Instance) {
			in.RemovedFromEndpointsAt, in.Redis.RedirectedAt = now.Add(-time.Minute), now
		}, "Forget", "c-1-1"},
		"not asked": {func(in *snapshot.Instance) {
			in.RemovedFromEndpointsAt, in.Redis.RedirectedAt = now.Add(-3*time.Second), now.Add(-6*time.Second)
		}, "Forget", "c-1-1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := formed()
			s.Find(1, 1).HasReadinessGate = true
			tt.change(s.Find(1, 1))
			got := decide(with(v1alpha1.Topology{2, 1, 2}), s, now).Step
			if got.Name() != tt.step || !strings.Contains(got.Why(), tt.why) {
				t.Errorf("got %s: %s", got.Name(), got.Why())
			}
		})
	}
}

// An instance is opened to clients when it knows the whole cluster.
func TestAdmit(t *testing.T) {
	s := joined(4)
	for i := range s.Instances {
		s.Instances[i].HasReadinessGate, s.Instances[i].InEndpoints = true, s.Instances[i].Shard < 3
	}
	s.Find(3, 1).Redis.Peers[nodeID(0, 0)] = snapshot.Peer{ID: nodeID(0, 0), IP: podIP(0, 0), Master: true, Connected: true}
	step, ok := decide(with(topologyOf(4)), s, now).Step.(AddToEndpoints)
	if diff := cmp.Diff([]string{"c-3-0"}, step.Pods); !ok || diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
}

// A master that came back and followed the destination of its last slot comes home.
func TestShardWithoutAMasterOfItsOwn(t *testing.T) {
	s := joined(4)
	unowned := s.Find(0, 1).Redis
	unowned.Master, unowned.MasterID, unowned.Slots = true, "", slots.Of(16383)
	s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Subtract(unowned.Slots)
	for ordinal := range 2 {
		r := s.Find(3, ordinal).Redis
		r.Master, r.MasterID, r.MasterLinkUp = false, nodeID(0, 1), true
	}
	introduce(s)
	step, ok := decide(with(topologyOf(4)), s, now).Step.(Switchover)
	if !ok || step.Replica.Pod != "c-3-0" {
		t.Errorf("got %+v", decide(with(topologyOf(4)), s, now).Step)
	}
}

// A shard that owns nothing and whose instances all follow others gets a master of its own again: an instance of it is made
// anew. Nothing else would come, and a scaling that needs the shard would wait for ever.
func TestShardWhoseInstancesFollowOthers(t *testing.T) {
	following := func(master string, change func(*snapshot.Snapshot)) *snapshot.Snapshot {
		s := joined(4)
		for ordinal := range 2 {
			r := s.Find(3, ordinal).Redis
			r.Master, r.MasterID, r.MasterLinkUp = false, master, true
		}
		if change != nil {
			change(s)
		}
		introduce(s)
		return s
	}
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		topology v1alpha1.Topology
		want     string // pod that is renewed; empty: another step
		step     string
	}{
		"the master of another shard": {snapshot: following(nodeID(0, 0), nil), topology: topologyOf(4), want: "c-3-0"},
		"the master of another shard, when one of each stays": {snapshot: following(nodeID(0, 0), nil), topology: v1alpha1.Topology{1, 1, 1, 1},
			want: "c-3-0"},
		"a node that is gone": {snapshot: following("gone", nil), topology: topologyOf(4), want: "c-3-0"},
		"an instance that does not answer may own something": {snapshot: following(nodeID(0, 0), func(s *snapshot.Snapshot) {
			s.Find(1, 1).Redis, s.Find(1, 1).Waiting = nil, "starting"
		}), topology: topologyOf(4), step: "Wait"},
		"a slot without an owner may be in the copy": {snapshot: following(nodeID(0, 0), func(s *snapshot.Snapshot) {
			r := s.Find(0, 0).Redis
			r.Slots = r.Slots.Subtract(slots.Of(5))
		}), topology: topologyOf(4), step: "Stall"},
		"nobody asks for the shard": {snapshot: following(nodeID(0, 0), nil), topology: topologyOf(3), step: "Forget"},
		"a master with unowned keys is a person's to give up": {snapshot: following(nodeID(3, 0), func(s *snapshot.Snapshot) {
			r := s.Find(3, 0).Redis
			r.Master, r.MasterID, r.Keys = true, "", 3
			s.Find(3, 1).Redis.MasterID = nodeID(0, 0)
		}), topology: v1alpha1.Topology{1, 1, 1, 1}, step: "Stall"},
	} {
		t.Run(name, func(t *testing.T) {
			d := with(tt.topology)
			d.Ephemeral = true
			step := decide(d, tt.snapshot, now).Step
			renew, renews := step.(Recreate)
			if renews != (tt.want != "") || renew.Pod != tt.want || tt.step != "" && step.Name() != tt.step {
				t.Errorf("got %s: %s", step.Name(), step.Why())
			}
		})
	}
}

// A table that names the dead master of a shard that has failed over does not make a shard.
func TestDeadMasterInATable(t *testing.T) {
	s := formed()
	s.Find(2, 0).Redis.Peers["dead"] = snapshot.Peer{ID: "dead", Master: true, Slots: slots.Of(5)}
	if got := ShapeOf(desired(), s, now).Topology; len(got) != 3 {
		t.Errorf("effective topology is %v", got)
	}
}

// deleted adds a StatefulSet that is being deleted and has no pods any more.
func deleted(s *snapshot.Snapshot, shard int) *snapshot.Snapshot {
	s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: 2, Terminating: true})
	return s
}

// A replica whose master is lost holds the only copy of its slots: it does not follow the
// empty instance that comes up in its master's place, whatever else is not known yet.
func TestOnlyCopyDoesNotFollowAnEmptyInstance(t *testing.T) {
	s := formed()
	comeBackEmpty(s, 0, 0)
	introduce(s)
	s.Find(2, 0).Redis, s.Find(2, 0).Waiting = nil, "starting"
	if step, replicates := decide(desired(), s, now).Step.(Replicate); replicates {
		t.Errorf("%+v", step.Replications)
	}
}

// What remains is decided from the recorded goal, wherever it was left.
func TestGoalIsKept(t *testing.T) {
	d := with(topologyOf(4))
	s := recorded(d, joined(4))
	first := decide(d, s, now).Moves
	moved := first[0].Slots.Take(1000)
	s.Find(0, 0).Redis.Slots = s.Find(0, 0).Redis.Slots.Subtract(moved)
	s.Find(3, 0).Redis.Slots = moved
	introduce(s)
	got := decide(d, s, now)
	want := slices.Clone(first)
	want[0].Slots = want[0].Slots.Subtract(moved)
	if diff := cmp.Diff(want, got.Moves, cmp.Comparer(slots.Set.Equal)); diff != "" {
		t.Errorf("left to move (-want +got):\n%s", diff)
	}
	back := decide(with(topologyOf(3)), s, now)
	if record, ok := back.Step.(RecordGoal); !ok || count(record.Moves) != 1000 || back.Situation != ScalingIn {
		t.Errorf("reversed in the middle: %s in %s: %s", back.Step.Name(), back.Situation, back.Step.Why())
	}
	if got := decide(d, recorded(d, scaled(4)), now); got.Goal != nil {
		t.Errorf("a goal that was reached is kept: %v", got.Goal)
	}
}
