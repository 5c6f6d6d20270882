// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// toStop is a healthy cluster whose data is in claims, and that is asked to hibernate.
func toStop() (Desired, *snapshot.Snapshot) {
	d, s := desired(), stored(formed())
	d.Hibernate, d.ClaimBytes = true, 1<<30
	for i := range s.Claims {
		s.Claims[i].Requested = 1 << 30
	}
	s.Settings = map[string]string{"appendonly": "yes"}
	for i := range s.Instances {
		s.Instances[i].Redis.Settings = map[string]string{"appendonly": "yes"}
	}
	return d, s
}

// keep tells instances that they are not elected, as before they are stopped.
func keep(s *snapshot.Snapshot, value string) {
	for i := range s.Instances {
		s.Instances[i].Redis.Settings[redisconf.NoFailover] = value
	}
}

// stop leaves nothing of a cluster but StatefulSets that ask for no instance, and its claims.
func stop(s *snapshot.Snapshot) *snapshot.Snapshot {
	s.Hibernated, s.Instances = v1alpha1.Topology{2, 2, 2}, nil
	for i := range s.Shards {
		s.Shards[i].Replicas, s.Shards[i].Hibernated = 0, 2
	}
	return s
}

// rendered decides with children that are not as rendered.
func rendered(d Desired, s *snapshot.Snapshot) (Decision, Shape) {
	shape := ShapeOf(d, s, now)
	var pending Pending
	if len(s.Shards) == 0 || slices.ContainsFunc(s.Shards, func(shard snapshot.Shard) bool {
		return (shard.Hibernated > 0) != shape.Dormant || (shard.Replicas == 0) != shape.Dormant
	}) {
		pending.Children = []string{"StatefulSet c-0"}
	}
	return shape.Next(pending), shape
}

func TestHibernation(t *testing.T) {
	asleep := func(_ *Desired, s *snapshot.Snapshot) { stop(s) }
	waking := func(d *Desired, s *snapshot.Snapshot) { stop(s); d.Hibernate = false }
	scaled := func(d *Desired, s *snapshot.Snapshot) {
		d.Topology = v1alpha1.Topology{1, 1, 1}
		for i := range s.Shards {
			s.Shards[i].Replicas = 1
		}
	}
	unscheduled := func(s *snapshot.Snapshot) {
		id := s.Find(1, 1).Redis.NodeID
		s.Find(1, 1).Redis, s.Find(1, 1).Waiting, s.Find(1, 1).Ready = nil, "no room", false
		fail(s, id)
	}
	recorded := func(s *snapshot.Snapshot) { s.Hibernated = v1alpha1.Topology{2, 2, 2} }
	ready := func(_ *Desired, s *snapshot.Snapshot) { recorded(s); keep(s, "yes") }
	for name, tt := range map[string]struct {
		change    func(*Desired, *snapshot.Snapshot)
		step      string
		situation Situation
		why       string
		blockedBy Predicate
		dormant   bool
	}{
		"what there is is written down first": {func(*Desired, *snapshot.Snapshot) {},
			"RecordHibernation", Healing, "6 instances in 3 shards", "",
			false},
		"another topology is written down anew": {func(_ *Desired, s *snapshot.Snapshot) { s.Hibernated = v1alpha1.Topology{1, 1, 1} },
			"RecordHibernation", Healing, "", "", false},
		"also one with an instance less": {func(_ *Desired, s *snapshot.Snapshot) { s.Hibernated = v1alpha1.Topology{2, 2, 1} },
			"RecordHibernation", Healing, "6 instances in 3 shards", "", false},
		"nobody is kept before that is written down": {func(_ *Desired, s *snapshot.Snapshot) { keep(s, "yes") },
			"SetConfig", Healing, "may be elected again", "", false},
		"then nobody is elected": {func(_ *Desired, s *snapshot.Snapshot) { recorded(s) },
			"SetConfig", Healing, "no instance is to be elected", "", false},
		"then all stop": {ready, "Hibernate", Hibernating, "each master as the last of its shard", "", true},
		"not in the middle of a scaling": {func(_ *Desired, s *snapshot.Snapshot) {
			recorded(s)
			s.Goal = &snapshot.Goal{From: 3}
		}, "Wait", ScalingOut, "slots are to move first", OwnershipSettled, false},
		"not while a backup is taken": {func(d *Desired, s *snapshot.Snapshot) {
			s.Backup = snapshot.Backup{Name: "monday", UID: "b"}
		}, "Wait", Healing, "RedisBackup monday", NoBackup, false},
		"not while an instance is away": {func(d *Desired, s *snapshot.Snapshot) { ready(d, s); kill(s, 1, 1) }, "SetConfig", Healing,
			"may be elected again", "", false},
		"not while an instance is not ready": {func(d *Desired, s *snapshot.Snapshot) { ready(d, s); s.Find(1, 1).Ready = false }, "SetConfig",
			Healing, "may be elected again", "", false},
		"not while a backup is taken, and so nobody is kept": {func(d *Desired, s *snapshot.Snapshot) {
			ready(d, s)
			s.Backup = snapshot.Backup{Name: "monday", UID: "b"}
		}, "SetConfig", Healing, "may be elected again", "", false},
		"not without a file": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Settings["appendonly"] = "no" },
			"Wait", Healing,
			"appendonly is not yes on c-1-0", DataOnDisk, false},
		"not when settings are not known": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Settings = nil },
			"Wait", Healing,
			"appendonly", DataOnDisk, false},
		"not when redis.conf may lack the file": {func(_ *Desired, s *snapshot.Snapshot) { s.Settings = nil },
			"Wait", Healing, "redis.conf", DataOnDisk, false},
		"not before the file is whole": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Unsaved = true }, "Wait", Healing,
			"c-1-0 writes its append-only file anew", DataOnDisk, false},
		"a master that has nothing has nothing to lose": {func(d *Desired, s *snapshot.Snapshot) {
			ready(d, s)
			first := s.Find(0, 0).Redis
			first.Slots, s.Find(1, 0).Redis.Slots = slots.Set{}, s.Find(1, 0).Redis.Slots.Union(first.Slots)
			for _, pod := range s.Reachable() {
				for id, peer := range pod.Redis.Peers {
					peer.Slots = s.ByNodeID(id).Redis.Slots
					pod.Redis.Peers[id] = peer
				}
			}
			delete(s.DataVolumes, "c-0-0")
		}, "Hibernate", Hibernating, "", "", true},
		"not with data in a volume nobody noted": {func(_ *Desired, s *snapshot.Snapshot) { delete(s.DataVolumes, "c-2-1") },
			"Wait", Healing,
			"c-2-1", DataOnDisk, false},
		"not before it was formed": {func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false }, "None", Steady, "", "", false},
		"half of it has been stopped": {func(d *Desired, s *snapshot.Snapshot) {
			ready(d, s)
			s.Shards[0].Replicas, s.Shards[0].Hibernated = 0, 2
		},
			"Hibernate", Hibernating, "", "", true},
		"pods are stopping": {func(d *Desired, s *snapshot.Snapshot) {
			pods := s.Instances
			stop(s)
			s.Instances = pods
		}, "Wait", Hibernating, "6 pods are still stopping", PodsGone, true},
		"one pod is stopping": {func(_ *Desired, s *snapshot.Snapshot) {
			pods := s.Instances[:1]
			stop(s).Instances = pods
		}, "Wait", Hibernating, "1 pods are still stopping", PodsGone, true},
		"it sleeps": {asleep, "Sleep", Hibernated, "set spec.hibernate to false", "", true},
		"it sleeps with other wishes": {func(d *Desired, s *snapshot.Snapshot) {
			stop(s)
			d.Topology = v1alpha1.Topology{3, 3, 3, 3}
		}, "Sleep", Hibernated, "", "", true},
		"it sleeps without StatefulSets": {func(_ *Desired, s *snapshot.Snapshot) { stop(s); s.Shards = nil },
			"ApplyChildren", Hibernating, "", "", true},
		"it wakes": {waking, "Wake", Waking, "the 6 instances that there were", "", false},
		"it wakes as it was": {func(d *Desired, s *snapshot.Snapshot) {
			waking(d, s)
			d.Topology = v1alpha1.Topology{1, 1, 1, 1}
		}, "Wake", Waking, "the 6 instances that there were", "", false},
		"half of it has been started": {func(d *Desired, s *snapshot.Snapshot) {
			waking(d, s)
			s.Shards[2].Replicas, s.Shards[2].Hibernated = 2, 0
		},
			"Wake", Waking, "", "",
			false},
		"some of it was told to stop, still runs, and is to": {func(d *Desired, s *snapshot.Snapshot) {
			recorded(s)
			d.Hibernate, s.Shards[0].Replicas, s.Shards[0].Hibernated = false, 0, 2
		}, "Wake", Waking, "the 6 instances that there were", "", false},
		"half of it has been started, and a claim is gone": {func(d *Desired, s *snapshot.Snapshot) {
			waking(d, s)
			s.Shards[2].Replicas, s.Shards[2].Hibernated, s.Claims = 2, 0, s.Claims[1:]
		}, "Wake", Waking, "", "", false},
		"somebody has made it larger in its sleep": {func(_ *Desired, s *snapshot.Snapshot) {
			stop(s)
			for i := range s.Shards {
				s.Shards[i].Replicas = 3
			}
		}, "Hibernate", Hibernating, "", "", true},
		"somebody has scaled it in its sleep": {func(d *Desired, s *snapshot.Snapshot) { stop(s); scaled(d, s) },
			"Hibernate", Hibernating, "", "", true},
		"somebody has scaled it, and it wakes as it was": {func(d *Desired, s *snapshot.Snapshot) { waking(d, s); scaled(d, s) },
			"Wake", Waking, "the 6 instances that there were", "", false},
		"a claim is gone in its sleep": {func(_ *Desired, s *snapshot.Snapshot) { stop(s); s.Claims = s.Claims[1:] },
			"Sleep", Hibernated, "", "",
			true},
		"a claim is gone, and it stays asleep": {func(d *Desired, s *snapshot.Snapshot) { waking(d, s); s.Claims = s.Claims[1:] },
			"Sleep", Failed,
			"", "", true},
		"another claim has its name": {func(d *Desired, s *snapshot.Snapshot) { waking(d, s); renewClaim(s, "c-1-0") },
			"Sleep", Failed, "", "",
			true},
		"a claim is being deleted": {func(d *Desired, s *snapshot.Snapshot) { waking(d, s); s.Claims[2].Terminating = true },
			"Sleep", Failed, "", "", true},
		"what was in no claim, and whose instance is not asked for, is not missed": {func(d *Desired, s *snapshot.Snapshot) {
			waking(d, s)
			s.DataVolumes["c-0-0"], s.DataVolumes["c-0-1"], s.DataVolumes["c-7-0"] = notItsOwn, onNode+"node1", "uid-c-7-0"
		}, "Wake", Waking, "", "", false},
		"without claims none is missed": {func(d *Desired, s *snapshot.Snapshot) {
			waking(d, s)
			d.ClaimBytes, s.Claims = 0, s.Claims[1:]
		}, "Wake", Waking, "", "", false},
		"the spec is invalid": {func(d *Desired, s *snapshot.Snapshot) { waking(d, s); d.Problems = []string{"spec.version: no"} },
			"Stall", Failed,
			"spec.version", "", true},
		"half of it has been stopped, and the spec is invalid": {func(d *Desired, s *snapshot.Snapshot) {
			ready(d, s)
			s.Shards[0].Replicas, s.Shards[0].Hibernated, d.Problems = 0, 2, []string{"spec.version: no"}
		}, "Stall", Failed, "spec.version", "", true},
		"an instance has no room, and is not asked for any more": {func(d *Desired, s *snapshot.Snapshot) {
			recorded(s)
			d.Hibernate, d.Topology = false, v1alpha1.Topology{1, 1, 1}
			unscheduled(s)
		}, "Forget", ScalingIn, "", "", false},
		"an instance has no room, and a shard more is asked for instead": {func(d *Desired, s *snapshot.Snapshot) {
			recorded(s)
			d.Hibernate, d.Topology = false, v1alpha1.Topology{1, 1, 1, 1}
			unscheduled(s)
		}, "Wait", ScalingIn, "instance 0 of shard 3 has no pod yet", SnapshotComplete, false},
		"an instance has no room, and is asked for": {func(d *Desired, s *snapshot.Snapshot) {
			recorded(s)
			d.Hibernate = false
			unscheduled(s)
		}, "Wait", Waking, "no room", SnapshotComplete, false},
		"it is not to be stopped after all": {func(d *Desired, s *snapshot.Snapshot) { ready(d, s); d.Hibernate = false },
			"SetConfig", Waking,
			"may be elected again", "", false},
		"nobody knows that it was to be stopped": {func(d *Desired, s *snapshot.Snapshot) { keep(s, "yes"); d.Hibernate = false },
			"SetConfig", Healing, "may be elected again", "", false},
		"a container is stopped by its kubelet": {func(d *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Settings[redisconf.NoFailover], s.Find(1, 1).Ready, d.Hibernate = "yes", false, false
		}, "Wait", Healing, "c-1-1 is not ready", PodsReady, false},
		"a pod that keeps itself from being elected stops": {func(d *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Settings[redisconf.NoFailover], s.Find(1, 1).Terminating, d.Hibernate = "yes", true, false
		}, "None", Steady, "", "", false},
		"it is awake": {func(d *Desired, s *snapshot.Snapshot) { recorded(s); d.Hibernate = false }, "None", Steady, "", "", false},
		"awake, it is scaled": {func(d *Desired, s *snapshot.Snapshot) {
			recorded(s)
			d.Hibernate, d.Topology = false, v1alpha1.Topology{3, 3, 3}
		}, "Wait", ScalingOut, "has no pod yet", SnapshotComplete, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := toStop()
			tt.change(&d, s)
			got, shape := rendered(d, s)
			if got.Step.Name() != tt.step || got.Situation != tt.situation || !strings.Contains(got.Step.Why(), tt.why) ||
				blockedBy(got.Step) != tt.blockedBy || shape.Dormant != tt.dormant {
				t.Errorf("%s (%s), blocked by %q, %s, dormant %t", got.Step.Name(), got.Step.Why(), blockedBy(got.Step), got.Situation, shape.Dormant)
			}
		})
	}
}

// What is known of how many there were stays until all are back and may be elected.
func TestHibernatedIsRemembered(t *testing.T) {
	was := v1alpha1.Topology{2, 2, 2}
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		kept   bool
	}{
		"asleep":               {func(_ *Desired, s *snapshot.Snapshot) { stop(s) }, true},
		"waking":               {func(d *Desired, s *snapshot.Snapshot) { stop(s); d.Hibernate = false }, true},
		"being deleted":        {func(d *Desired, s *snapshot.Snapshot) { stop(s); d.Deleting = true }, true},
		"paused":               {func(d *Desired, s *snapshot.Snapshot) { s.Hibernated, d.Hibernate, d.Paused = was, false, true }, true},
		"one is not back":      {func(d *Desired, s *snapshot.Snapshot) { s.Hibernated, d.Hibernate = was, false; kill(s, 0, 1) }, true},
		"one is not electable": {func(d *Desired, s *snapshot.Snapshot) { s.Hibernated, d.Hibernate = was, false; keep(s, "yes") }, true},
		"awake":                {func(d *Desired, s *snapshot.Snapshot) { s.Hibernated, d.Hibernate = was, false }, false},
		"never asked for":      {func(d *Desired, s *snapshot.Snapshot) { d.Hibernate = false }, false},
		"scaled down by somebody": {func(d *Desired, s *snapshot.Snapshot) {
			s.Hibernated, d.Topology = was, v1alpha1.Topology{1, 1, 1}
			kill(s, 1, 1)
			s.Shards[1].Replicas = 1
		}, true},
		"written down just now":                  {func(*Desired, *snapshot.Snapshot) {}, true},
		"paused before anything is written down": {func(d *Desired, _ *snapshot.Snapshot) { d.Paused = true }, false},
		"a StatefulSet is gone":                  {func(_ *Desired, s *snapshot.Snapshot) { s.Hibernated, s.Shards = was, s.Shards[:2] }, true},
		"one is not back, and somebody asks for more": {func(d *Desired, s *snapshot.Snapshot) {
			s.Hibernated, d.Hibernate, s.Shards[0].Replicas = was, false, 3
			kill(s, 0, 1)
		}, true},
		"all are back, and one that was added has no room": {func(d *Desired, s *snapshot.Snapshot) {
			s.Hibernated, d.Hibernate, d.Topology, s.Shards[0].Replicas = was, false, v1alpha1.Topology{3, 2, 2}, 3
			s.Instances = append(s.Instances, snapshot.Instance{Name: "c-0-2", Ordinal: 2, Waiting: "no room"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := toStop()
			tt.change(&d, s)
			got, _ := rendered(d, s)
			if want := map[bool]v1alpha1.Topology{true: was}[tt.kept]; !slices.Equal(got.Hibernated, want) {
				t.Errorf("%v, want %v", got.Hibernated, want)
			}
		})
	}
}

// One StatefulSet that was told to stop, and stays, makes the cluster one that is stopped; it is asleep when none asks for an instance.
func TestStopped(t *testing.T) {
	half := func() (Desired, *snapshot.Snapshot) {
		d, s := toStop()
		s.Hibernated = v1alpha1.Topology{2, 2, 2}
		s.Shards[0].Replicas, s.Shards[0].Hibernated = 0, 2
		return d, s
	}
	proven(t, half, func(in input) bool { return in.stopped() }, changes{
		"nothing was written down": func(_ *Desired, s *snapshot.Snapshot) { s.Hibernated = nil },
		"it is being deleted":      func(_ *Desired, s *snapshot.Snapshot) { s.Shards[0].Terminating = true },
		"another shard than those that were written down has none": func(_ *Desired, s *snapshot.Snapshot) {
			s.Shards[0].Replicas, s.Shards[0].Hibernated = 2, 0
			s.Shards = append(s.Shards, snapshot.Shard{Index: 3, Name: "c-3"})
		},
	}, changes{
		"it does not say how many it had": func(_ *Desired, s *snapshot.Snapshot) { s.Shards[0].Hibernated = 0 },
		"somebody has scaled it":          func(_ *Desired, s *snapshot.Snapshot) { s.Shards[0].Replicas, s.Shards[0].Hibernated = 1, 1 },
		"all are being deleted": func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Shards {
				s.Shards[i].Terminating = true
			}
		},
	})
	all := func() (Desired, *snapshot.Snapshot) { d, s := toStop(); return d, stop(s) }
	proven(t, all, func(in input) bool { return in.asleep() }, changes{
		"nothing was written down": func(_ *Desired, s *snapshot.Snapshot) { s.Hibernated = nil },
		"one asks for an instance": func(_ *Desired, s *snapshot.Snapshot) { s.Shards[1].Replicas = 1 },
	}, changes{
		"one that asks for some is being deleted": func(_ *Desired, s *snapshot.Snapshot) {
			s.Shards[1].Replicas, s.Shards[1].Terminating = 2, true
		},
	})
}

// Nobody stops an instance whose data is not known to be in a file, in a volume that is there when it starts again.
func TestDataOnDisk(t *testing.T) {
	rule := func(in input) bool { return dataOnDisk(in).Holds }
	proven(t, toStop, rule, changes{
		"it could not be written": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.PersistenceError = snapshot.AppendOnlyError
		},
		"nobody noted the volume":          func(_ *Desired, s *snapshot.Snapshot) { delete(s.DataVolumes, "c-1-1") },
		"another volume was noted":         func(_ *Desired, s *snapshot.Snapshot) { renewClaim(s, "c-1-1") },
		"it is in no volume, as was noted": func(d *Desired, s *snapshot.Snapshot) { d.Ephemeral, s.DataVolumes = true, nil },
	}, nil)
	idle := func() (Desired, *snapshot.Snapshot) {
		d, s := toStop()
		s.Find(0, 0).Redis.Slots = slots.Set{}
		delete(s.DataVolumes, "c-0-0")
		return d, s
	}
	proven(t, idle, rule, changes{
		"a master that owns nothing holds a key": func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Keys = 1 },
	}, nil)
}

// StatefulSets that are about to ask for instances again, as they were not seen to yet, are waited for: the cluster does not sleep.
func TestAboutToWake(t *testing.T) {
	for _, pods := range []int{0, 2} {
		d, s := toStop()
		left := s.Instances[:pods]
		stop(s).Instances, d.Hibernate = left, false
		got := ShapeOf(d, s, now).Next(Pending{})
		if !Is[Wait](got.Step) || blockedBy(got.Step) != SnapshotComplete || got.Situation != Waking {
			t.Errorf("%d pods: %s in %s: %s", pods, got.Step.Name(), got.Situation, got.Step.Why())
		}
	}
}

// A word of a person is about the claims that it names, and is remembered.
func TestLostClaimsAreGivenUp(t *testing.T) {
	d, s := toStop()
	stop(s)
	d.Hibernate = false
	renewClaim(s, "c-1-0", "c-1-1")
	got, _ := rendered(d, s)
	if got.Stalled == nil || got.Stalled.Cause != "DataLost" || !strings.Contains(got.Stalled.Why(), "those of c-1-0, c-1-1") {
		t.Fatalf("%+v", got.Stalled)
	}
	_, d.GiveUp, _ = strings.Cut(got.Stalled.Why(), v1alpha1.AnnotationGiveUpData+" to ")
	got, _ = rendered(d, s)
	if give, is := got.Step.(GiveUp); !is || !slices.Equal(give.Pods, []string{"c-1-0", "c-1-1"}) || got.DataVolumes["c-1-0"] != "" ||
		got.DataVolumes["c-0-0"] != "uid-c-0-0" {
		t.Fatalf("%s: %s, %v", got.Step.Name(), got.Step.Why(), got.DataVolumes)
	}
	s.DataVolumes = got.DataVolumes
	if got, _ = rendered(d, s); !Is[Wake](got.Step) {
		t.Errorf("then it wakes: %s: %s", got.Step.Name(), got.Step.Why())
	}
	renewClaim(s, "c-0-0")
	if got, _ = rendered(d, s); got.Stalled == nil {
		t.Error("the word was about other claims")
	}
}

// redis.conf stays as it was until all instances are back: with appendonly no they would not look for their data.
func TestSettingsStayInHibernation(t *testing.T) {
	for name, tt := range map[string]struct {
		known map[string]string
		hz    string
	}{
		"known":       {map[string]string{"appendonly": "yes", "hz": "10"}, "10"},
		"lost":        {nil, "20"},
		"partly lost": {map[string]string{"hz": "10"}, "10"},
		"damaged":     {map[string]string{"appendonly": "no"}, "20"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := toStop()
			stop(s)
			d.Hibernate, s.Settings = false, tt.known
			d.Settings = redisconf.Settings(map[string]string{"appendonly": "no", "hz": "20"}, nil)
			holds := map[string]string{}
			for _, setting := range ShapeOf(d, s, now).Settings {
				holds[setting.Name] = setting.Value()
			}
			if holds["appendonly"] != "yes" || holds["hz"] != tt.hz {
				t.Errorf("appendonly is %q, hz is %q", holds["appendonly"], holds["hz"])
			}
		})
	}
}

// StatefulSets that may not be written stop nobody, and nobody is kept from being elected meanwhile.
func TestWithheldHibernation(t *testing.T) {
	d, s := toStop()
	s.Hibernated = v1alpha1.Topology{2, 2, 2}
	pending := Pending{Children: []string{"Deployment c-archive"}, Withheld: &snapshot.Withheld{Cause: "PasswordUnavailable", Message: "no"}}
	for _, told := range []string{"yes", "no"} {
		keep(s, told)
		shape := ShapeOf(d, s, now)
		if shape.Dormant != (told == "yes") {
			t.Fatalf("told %s, it is dormant: %t", told, shape.Dormant)
		}
		if !shape.Dormant {
			pending.Children = nil
		}
		step := shape.Next(pending).Step
		if want := map[string]string{"yes": "SetConfig", "no": "Stall"}[told]; step.Name() != want {
			t.Errorf("told %s: %s: %s", told, step.Name(), step.Why())
		}
	}
}

// A setting that an engine does not start with may be corrected while a cluster wakes; appendonly stays.
func TestSettingThatPreventsWaking(t *testing.T) {
	for line, hz := range map[string]string{"hz 10": "20", "appendonly yes": "10", "port 1": "10"} {
		d, s := toStop()
		s.Hibernated, d.Hibernate = v1alpha1.Topology{2, 2, 2}, false
		s.Settings = map[string]string{"appendonly": "yes", "hz": "10"}
		d.Settings = redisconf.Settings(map[string]string{"appendonly": "no", "hz": "20"}, nil)
		for i := range s.Instances {
			in := &s.Instances[i]
			in.Redis, in.Failing, in.Waiting = nil, true, "container redis: CrashLoopBackOff"
			in.TerminationMessage = "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line 9\n>>> '" + line +
				"'\nBad directive\n"
		}
		for _, setting := range ShapeOf(d, s, now).Settings {
			if setting.Name == "hz" && setting.Value() != hz || setting.Name == "appendonly" && setting.Value() != "yes" {
				t.Errorf("does not start with %q: %s is %s", line, setting.Name, setting.Value())
			}
		}
	}
}
