// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// unwilling tells instances whether they may be elected.
func unwilling(s *snapshot.Snapshot, names ...string) *snapshot.Snapshot {
	for i := range s.Instances {
		pod := &s.Instances[i]
		if pod.Redis != nil {
			pod.Redis.Settings = map[string]string{redisconf.NoFailover: map[bool]string{true: "yes", false: "no"}[slices.Contains(names,
				pod.Name)]}
		}
	}
	return s
}

// ended is an instance whose process has ended.
func ended(s *snapshot.Snapshot, shard, ordinal int) *snapshot.Snapshot {
	pod := s.Find(shard, ordinal)
	fail(s, pod.Redis.NodeID)
	for _, replica := range s.Reachable() {
		replica.Redis.MasterLinkLost = replica.Redis.MasterLinkLost || replica.Redis.MasterID == pod.Redis.NodeID
	}
	pod.StoppedAt = now.Add(-3 * time.Second)
	pod.Redis, pod.Ready, pod.Error, pod.Waiting, pod.Stopped, pod.Failing = nil, false, "refused", "CrashLoopBackOff", true, true
	return s
}

func TestFence(t *testing.T) {
	gated := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		for i := range s.Instances {
			s.Instances[i].HasReadinessGate, s.Instances[i].InEndpoints = true, true
		}
		return s
	}
	out := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		s.Find(0, 1).InEndpoints, s.Find(0, 1).Ready = false, false
		return s
	}
	for name, tt := range map[string]struct {
		snapshot  *snapshot.Snapshot
		names     string
		desired   func(*Desired)
		step, why string
		inForce   []string
		waits     string
	}{
		"nobody":    {snapshot: unwilling(formed()), step: "None"},
		"a replica": {snapshot: unwilling(gated(formed())), names: "c-0-1", step: "SetConfig", inForce: []string{"c-0-1"}},
		"one that was told": {snapshot: unwilling(gated(formed()), "c-0-1"), names: "c-0-1", step: "RemoveFromEndpoints",
			inForce: []string{"c-0-1"}},
		"one that the Service is away from": {snapshot: unwilling(out(gated(formed())), "c-0-1"), names: "c-0-1", step: "None",
			inForce: []string{"c-0-1"}},
		"not any more":  {snapshot: unwilling(out(gated(formed())), "c-0-1"), step: "AddToEndpoints"},
		"and it serves": {snapshot: unwilling(gated(formed()), "c-0-1"), step: "SetConfig", why: "may be elected again"},
		"a master": {snapshot: unwilling(formed()), names: "c-0-0", step: "Switchover",
			why:   "c-0-0 is to be fenced and is the master of shard 0: c-0-1",
			waits: "it is the master of shard 0, and another instance is to take over"},
		"a master without a replica in sync": {snapshot: unsynced(unwilling(formed()), 0, 1), names: "c-0-0", step: "Wait",
			waits: "the instances do not agree yet"},
		"a master while a backup is taken": {snapshot: changed(func() *snapshot.Snapshot { return unwilling(formed()) },
			func(s *snapshot.Snapshot) { s.Backup.UID, s.Backup.Name = "uid", "monday" })(), names: "c-0-0", step: "None",
			waits: "when RedisBackup monday has ended"},
		"a master whose replica is fenced": {snapshot: unwilling(formed(), "c-0-1"), names: "c-0-1,c-0-0", step: "None",
			inForce: []string{"c-0-1"}, waits: "shard 0 has no other instance that is not fenced"},
		"all of a shard": {snapshot: unwilling(formed()), names: "c-0-0,c-0-1", step: "Switchover", waits: "another instance is to take over"},
		"all instances": {snapshot: unwilling(swapped(formed(), 0), "c-0-0", "c-1-1", "c-2-1"),
			names: "c-0-0,c-0-1,c-1-1,c-1-0,c-2-1,c-2-0", step: "None", inForce: []string{"c-0-0", "c-1-1", "c-2-1"}, waits: "no other instance"},
		"no pod":        {snapshot: unwilling(formed()), names: "c-7-0", step: "None", waits: "it has no pod"},
		"a new cluster": {snapshot: fresh(), names: "c-0-1", step: "AssignSlots", waits: "the cluster has not formed"},
		"the last copy": {snapshot: ended(unwilling(formed()), 0, 0), names: "c-0-1", step: "Promote",
			waits: "it may be what has the data"},
		"its master has gone since": {snapshot: ended(unwilling(formed(), "c-0-1"), 0, 0), names: "c-0-1", step: "Wait",
			inForce: []string{"c-0-1"}},
		"one that does not run": {snapshot: ended(unwilling(formed()), 0, 1), names: "c-0-1", step: "None", inForce: []string{"c-0-1"}},
		"one of few": {snapshot: unwilling(formed()), names: "c-0-0", desired: func(d *Desired) { d.Paused = true }, step: "Hold",
			why: "spec.pause is true", waits: "another instance is to take over"},
		"of a cluster that goes": {snapshot: unwilling(formed()), names: "c-0-1", desired: func(d *Desired) { d.Deleting = true },
			step: "DeleteChildren"},
		"the master of another shard": {snapshot: unwilling(formed()), names: "c-1-0", step: "Switchover",
			why:   "c-1-0 is to be fenced and is the master of shard 1: c-1-1 takes over",
			waits: "it is the master of shard 1, and another instance is to take over"},
		"a master one of whose replicas is fenced": {snapshot: unwilling(small(2), "c-0-1"), names: "c-0-1,c-0-0",
			desired: func(d *Desired) { d.Topology = v1alpha1.Topology{3, 3} }, step: "Switchover", why: "c-0-2 takes over",
			inForce: []string{"c-0-1"}, waits: "another instance is to take over"},
		"a master whose only replica that is not fenced is not ready": {snapshot: changed(
			func() *snapshot.Snapshot { return unwilling(small(2), "c-0-1") },
			func(s *snapshot.Snapshot) { s.Find(0, 2).Ready, s.Find(0, 2).Redis.Offset = false, 200 })(), names: "c-0-1,c-0-0",
			desired: func(d *Desired) { d.Topology = v1alpha1.Topology{3, 3} }, step: "Wait", inForce: []string{"c-0-1"},
			waits: "c-0-2 is to take over from c-0-0, and its pod is not ready"},
		"a master of a cluster that has not formed": {snapshot: unwilling(changed(formed, func(s *snapshot.Snapshot) { s.Formed = false })()),
			names: "c-0-0", step: "None", waits: "the cluster has not formed"},
		"a master while slots move": {snapshot: unwilling(recorded(with(topologyOf(4)), joined(4))), names: "c-0-0",
			desired: func(d *Desired) { d.Topology = topologyOf(4) }, step: "MoveSlots", waits: "slots are to move first"},
		"a master while a slot has no owner": {snapshot: unwilling(changed(formed, func(s *snapshot.Snapshot) {
			r := s.Find(1, 0).Redis
			r.Slots = r.Slots.Subtract(slots.Of(6000))
			introduce(s)
		})()), names: "c-0-0", step: "AssignSlots", waits: "the instances do not agree yet"},
		"one that stops": {snapshot: changed(func() *snapshot.Snapshot { return unwilling(gated(formed())) },
			func(s *snapshot.Snapshot) { s.Find(0, 1).Terminating = true })(), names: "c-0-1", step: "None", inForce: []string{"c-0-1"}},
		"one whose readiness says nothing of the Service": {snapshot: changed(
			func() *snapshot.Snapshot { return unwilling(formed(), "c-0-1") },
			func(s *snapshot.Snapshot) { s.Find(0, 1).InEndpoints = true })(), names: "c-0-1", step: "None", inForce: []string{"c-0-1"}},
	} {
		d := desired()
		if tt.names != "" {
			d.Fenced = strings.Split(tt.names, ",")
		}
		if tt.desired != nil {
			tt.desired(&d)
		}
		is := decide(d, tt.snapshot, now)
		var inForce []string
		var waits string
		for _, fence := range is.Fences {
			if fence.InForce {
				inForce = append(inForce, fence.Pod)
			} else {
				waits += fence.Waits
			}
			if fence.InForce != (fence.Waits == "") {
				t.Errorf("%s: %s is left alone: %t, and waits: %q", name, fence.Pod, fence.InForce, fence.Waits)
			}
		}
		if slices.ContainsFunc(tt.snapshot.Instances, func(pod snapshot.Instance) bool { return pod.Fenced }) {
			t.Errorf("%s: what was seen is changed", name)
		}
		if is.Step.Name() != tt.step || !strings.Contains(is.Step.Why(), tt.why) || !strings.Contains(waits, tt.waits) ||
			(waits == "") != (tt.waits == "") {
			t.Errorf("%s: %s: %s; waits: %q", name, is.Step.Name(), is.Step.Why(), waits)
		}
		if diff := cmp.Diff(tt.inForce, inForce); diff != "" {
			t.Errorf("%s: in force (-want +got):\n%s", name, diff)
		}
	}
}

// What others need goes on without an instance that is fenced; what needs it waits, and says so; nothing is done to it.
func TestWhatIsFencedIsPassedOver(t *testing.T) {
	damaged := func(s *snapshot.Snapshot, at ...int) *snapshot.Snapshot {
		for _, shard := range at {
			ended(s, shard, 1).Find(shard, 1).TerminationMessage = "Bad file format reading the append only file"
		}
		return s
	}
	unfollowed := func(s *snapshot.Snapshot, shard int) *snapshot.Snapshot {
		r := s.Find(shard, 1).Redis
		r.Master, r.MasterID, r.MasterLinkUp = true, "", false
		introduce(s)
		return s
	}
	for name, tt := range map[string]struct {
		snapshot  *snapshot.Snapshot
		desired   func(*Desired)
		step      string
		pods      []string
		blockedBy Predicate
	}{
		"damaged files":               {snapshot: damaged(stored(formed()), 0), step: "None"},
		"others' too":                 {snapshot: damaged(stored(formed()), 0, 1), step: "Recreate", pods: []string{"c-1-1"}},
		"it follows nobody":           {snapshot: unfollowed(formed(), 0), step: "None"},
		"two follow nobody":           {snapshot: unfollowed(unfollowed(formed(), 0), 1), step: "Replicate", pods: []string{"c-1-1"}},
		"a new template":              {snapshot: outmoded(), step: "Wait", blockedBy: NotFenced}, // the budget lets no other go
		"others have it":              {snapshot: outmoded("c-0-0", "c-1-0", "c-1-1", "c-2-0", "c-2-1"), step: "None"},
		"others are not prepared":     {snapshot: outmoded("c-1-1", "c-2-1"), step: "Wait", blockedBy: NotFenced},
		"its master does not restart": {snapshot: outmoded("c-1-0", "c-1-1", "c-2-0", "c-2-1"), step: "Wait", blockedBy: NotFenced},
		"it is to go":                 {snapshot: formed(), desired: func(d *Desired) { d.Topology[0] = 1 }, step: "Wait", blockedBy: NotFenced},
		"it is to go, and does not answer": {snapshot: ended(formed(), 0, 1), desired: func(d *Desired) { d.Topology[0] = 1 }, step: "Wait",
			blockedBy: NotFenced},
		"slots are to move, and it does not answer": {snapshot: ended(scaledOut(), 0, 1),
			desired: func(d *Desired) { d.Topology = v1alpha1.Topology{2, 2, 2, 2} }, step: "Wait", blockedBy: NotFenced},
		"the cluster is to be hibernated": {snapshot: formed(), desired: func(d *Desired) { d.Hibernate = true },
			step: "Wait", blockedBy: NotFenced},
		"it is asked to take over": {snapshot: formed(), desired: func(d *Desired) { d.Switchover = "c-0-1" }, step: "EndSwitchover"},
		"another one is to go":     {snapshot: formed(), desired: func(d *Desired) { d.Topology[2] = 1 }, step: "Forget"},
		"another master is lost":   {snapshot: ended(ended(formed(), 0, 1), 1, 0), step: "Promote", pods: []string{"c-1-1"}},
		"the spec is not valid": {snapshot: damaged(stored(formed()), 0), desired: func(d *Desired) { d.Problems = []string{"spec.x: is wrong"} },
			step: "Stall"},
	} {
		d := desired()
		if d.Fenced = []string{"c-0-1"}; tt.desired != nil {
			tt.desired(&d)
		}
		for i := range tt.snapshot.Instances { // the Service was taken away from it
			if pod := &tt.snapshot.Instances[i]; pod.Name == "c-0-1" {
				pod.InEndpoints, pod.Ready = false, false
			}
		}
		is := decide(d, tt.snapshot, now)
		wait, _ := is.Step.(Wait)
		if is.Step.Name() != tt.step || wait.BlockedBy != tt.blockedBy || wait.After != 0 && tt.blockedBy == NotFenced {
			t.Errorf("%s: %s: %s (%s, %s)", name, is.Step.Name(), is.Step.Why(), wait.BlockedBy, wait.After)
		}
		if diff := cmp.Diff(tt.pods, Pods(is.Step)); diff != "" && tt.pods != nil {
			t.Errorf("%s: on (-want +got):\n%s", name, diff)
		}
		if tt.step == "None" && !is.Healthy {
			t.Errorf("%s: it is not healthy", name)
		}
	}
}

// scaledOut is a cluster with a shard more, which has joined and owns nothing.
func scaledOut() *snapshot.Snapshot {
	s := formed()
	s.Shards = append(s.Shards, snapshot.Shard{Index: 3, Name: "c-3", Replicas: 2})
	for ordinal := range 2 {
		pod := snapshot.Instance{Name: "c-3-" + string(rune('0'+ordinal)), Shard: 3, Ordinal: ordinal, IP: podIP(3, ordinal), Ready: true,
			Redis: &snapshot.Redis{NodeID: nodeID(3, ordinal), Master: ordinal == 0, ClusterOK: true, Peers: map[string]snapshot.Peer{}}}
		if ordinal == 1 {
			pod.Redis.MasterID, pod.Redis.MasterLinkUp = nodeID(3, 0), true
		}
		s.Instances = append(s.Instances, pod)
	}
	introduce(s)
	return s
}

// Whatever is wrong with a cluster, and whoever is fenced: no step is carried out on an instance that is left alone but those that tell it
// what all have to know.
func TestNothingIsDoneToWhatIsFenced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := rapid.IntRange(3, 5).Draw(t, "from"), rapid.IntRange(3, 6).Draw(t, "to")
		s := anyCluster(t, have, want)
		d := anyDesired(t, s, have, want)
		s.Goal = decide(d, s, now).Goal
		impair(t, s)
		for _, at := range rapid.SliceOfN(rapid.IntRange(0, len(s.Instances)-1), 1, 4).Draw(t, "fenced") {
			d.Fenced = append(d.Fenced, s.Instances[at].Name)
		}
		is := decide(d, s, now)
		alone := map[string]bool{}
		for _, fence := range is.Fences {
			alone[fence.Pod] = fence.InForce
		}
		var touched []string
		switch step := is.Step.(type) {
		case Restart, Recreate, ForceDelete, Promote, Replicate, Meet, AddToEndpoints:
			touched = Pods(step)
		case Switchover:
			touched = []string{step.Replica.Pod}
		case RemoveShards:
			for _, pod := range s.Instances {
				if step.Shards[pod.Shard] != "" {
					touched = append(touched, pod.Name)
				}
			}
		default:
		}
		if slices.ContainsFunc(touched, func(pod string) bool { return alone[pod] }) {
			t.Fatalf("%s: %s, of %v", is.Step.Name(), is.Step.Why(), d.Fenced)
		}
		for shard := range s.Shards { // somebody of each shard is not fenced
			of := func(pod snapshot.Instance) bool { return pod.Shard == shard }
			if slices.ContainsFunc(s.Instances, of) && !slices.ContainsFunc(s.Instances, func(pod snapshot.Instance) bool {
				return of(pod) && !alone[pod.Name]
			}) {
				t.Fatalf("all instances of shard %d are fenced: %v", shard, d.Fenced)
			}
		}
		for _, pod := range s.Reachable() {
			if alone[pod.Name] && !pod.Redis.Slots.Equal(slots.Set{}) && len(disputes(s)) == 0 {
				t.Fatalf("%s is fenced and owns slots", pod.Name)
			}
		}
	})
}

// A step that names an instance that is left alone loses that, or is none.
func TestSpare(t *testing.T) {
	s := &snapshot.Snapshot{Instances: []snapshot.Instance{{Name: "a", Shard: 0, Fenced: true}, {Name: "b", Shard: 1}}}
	in := input{snap: s.Indexed(), asked: []Fence{{Pod: "a", InForce: true}}}
	a, b := Target{Pod: "a"}, Target{Pod: "b"}
	for _, tt := range []struct{ step, want Step }{
		{nil, nil},
		{Restart{Pod: "a"}, nil},
		{Restart{Pod: "b"}, Restart{Pod: "b"}},
		{Recreate{Pod: "a"}, nil},
		{ForceDelete{Pod: "a"}, nil},
		{Promote{Replica: a}, nil},
		{Switchover{Master: b, Replica: a}, nil},
		{Switchover{Master: a, Replica: b}, Switchover{Master: a, Replica: b}},
		{Replicate{Replications: []Replication{{Replica: a}, {Replica: b}}}, Replicate{Replications: []Replication{{Replica: b}}}},
		{Replicate{Replications: []Replication{{Replica: a}}}, nil},
		{Meet{Meetings: []Meeting{{From: a, To: b}, {From: b, To: b}}}, Meet{Meetings: []Meeting{{From: b, To: b}}}},
		{Meet{Meetings: []Meeting{{From: b, To: a}}}, nil},
		{AddToEndpoints{Pods: []string{"a", "b"}}, AddToEndpoints{Pods: []string{"b"}}},
		{AddToEndpoints{Pods: []string{"a"}}, nil},
		{RemoveShards{Shards: map[int]string{0: "1", 1: "1"}}, nil},
		{RemoveShards{Shards: map[int]string{1: "1"}}, RemoveShards{Shards: map[int]string{1: "1"}}},
		{Forget{On: []Target{a}}, Forget{On: []Target{a}}},
	} {
		if diff := cmp.Diff(tt.want, in.spare(tt.step), cmp.AllowUnexported(Restart{}, Switchover{}, Replicate{}, Meet{}, AddToEndpoints{},
			RemoveShards{}, Forget{}, base{})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.step, diff)
		}
	}
}

// What the annotation holds may be anything: names of others are not repeated, and a long one is not followed.
func TestWhoIsAskedToBeLeftAlone(t *testing.T) {
	for value, tt := range map[string]struct {
		names   []string
		problem string
	}{
		"":                   {},
		" , ":                {},
		"c-0-1":              {names: []string{"c-0-1"}},
		"c-1-0, c-0-1,c-1-0": {names: []string{"c-1-0", "c-0-1"}},
		"other-0-1,c-0-1,c-00-1,c-0-1\x1b[2J": {names: []string{"c-0-1"}, problem: "3 names of the annotation " +
			"redis.middleware.hc.cn/fenced are of no " +
			"instance of this cluster, which are called such as c-0-0"},
		strings.Repeat("c-0-1,", 200_000): {problem: "the annotation redis.middleware.hc.cn/fenced has more than 4096 characters, and " +
			"nothing of it is followed"},
	} {
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c",
			Annotations: map[string]string{v1alpha1.AnnotationFenced: value}}}
		names, problem := cluster.Fenced()
		if diff := cmp.Diff(tt.names, names); diff != "" || problem != tt.problem {
			t.Errorf("%.40q: %q, names (-want +got):\n%s", value, problem, diff)
		}
	}
}
