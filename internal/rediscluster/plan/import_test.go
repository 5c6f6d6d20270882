// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var outsideID = (&v1alpha1.RedisCluster{}).ImportMasterID()

// importer is a cluster of 3 shards of 2 instances that takes the data of a server outside.
func importer() Desired {
	d := desired()
	d.ImportMasterID = outsideID
	d.Import = &DesiredImport{Address: "redis.example.com:6379", MasterID: outsideID, Pause: 30 * time.Second}
	return d
}

// prepared is such a cluster whose first instance is prepared, and of which nothing runs yet.
func prepared() *snapshot.Snapshot {
	return &snapshot.Snapshot{Auth: snapshot.Auth{Known: true},
		Import: &snapshot.Import{Relay: &snapshot.RestoreJob{Name: "c-import", UID: "relay"},
			Prepared: &snapshot.RestoreJob{Name: "c-0-restore", UID: "job", Done: true}},
		Claims: []snapshot.Claim{{Name: "data-c-0-0", ToRestore: true, Job: "job"}}}
}

// following is such a cluster whose first instance follows the server, with all that was written there.
func following() *snapshot.Snapshot {
	s := fresh()
	s.Shards, s.Instances = s.Shards[:1], s.Instances[:2]
	s.Import = &snapshot.Import{RelayIP: "10.9.9.9", Relay: &snapshot.RestoreJob{Name: "c-import"},
		Source: &snapshot.Source{Engine: "redis", Version: "7.0.15", Master: true, History: "aa", Offset: 1000}}
	first := s.Instances[0].Redis
	first.Master, first.MasterID, first.MasterLinkUp, first.Offset, first.Keys = false, outsideID, true, 1000, 7
	first.Peers = map[string]snapshot.Peer{outsideID: {ID: outsideID, IP: "10.96.0.7", Master: true, Suspected: true, Slots: slots.All()}}
	return s
}

// tookOver is such a cluster that has taken over, which nobody was told yet.
func tookOver() *snapshot.Snapshot {
	s := following()
	first := s.Instances[0].Redis
	first.Master, first.MasterID, first.MasterLinkUp, first.Slots = true, "", false, slots.All()
	first.FormerHistory, first.FormerOffset, first.ClusterOK, first.Epoch, first.Peers = "aa", 1000, true, 1026, map[string]snapshot.Peer{}
	return s
}

// Nothing starts before the first instance is prepared, and nothing is brought over a claim that was there.
func TestImportIsPrepared(t *testing.T) {
	for name, tt := range map[string]struct {
		change       func(*snapshot.Snapshot)
		step, reason string
	}{
		"nothing is there": {func(s *snapshot.Snapshot) { *s = snapshot.Snapshot{Auth: s.Auth, Import: &snapshot.Import{}} },
			"PrepareImport", "is to follow"},
		"only the relay is": {func(s *snapshot.Snapshot) { s.Import.Prepared, s.Claims = nil, nil }, "PrepareImport", ""},
		"the relay is gone": {func(s *snapshot.Snapshot) { s.Import.Relay = nil }, "PrepareImport", ""},
		"a Secret is not for": {func(s *snapshot.Snapshot) { s.Import.Relay, s.Import.Withheld = nil, "lacks the label" }, "Stall",
			"lacks the label"},
		"a claim of before": {func(s *snapshot.Snapshot) { s.Claims[0].ToRestore = false }, "Stall",
			"claims exist, and no server is imported over"},
		"another's claim":   {func(s *snapshot.Snapshot) { s.Claims[0].Job = "former" }, "Wait", "former attempt"},
		"a Job goes":        {func(s *snapshot.Snapshot) { s.Import.Prepared.Terminating = true }, "Wait", "former attempt"},
		"the relay goes":    {func(s *snapshot.Snapshot) { s.Import.Relay.Terminating = true }, "Wait", "former attempt"},
		"the claim is gone": {func(s *snapshot.Snapshot) { s.Claims = nil }, "Wait", "is gone; delete Job c-0-restore"},
		"the server is refused": {func(s *snapshot.Snapshot) {
			s.Import.Prepared.Done, s.Import.Prepared.Failed, s.Import.Prepared.Message = false, true, "it is in cluster mode"
		}, "Stall", "it is in cluster mode; delete Job c-0-restore to try again"},
		"it is being prepared": {func(s *snapshot.Snapshot) { s.Import.Prepared.Done, s.Import.Prepared.Message = false, "no node" }, "Wait",
			": no node"},
		"only the Job is":                    {func(s *snapshot.Snapshot) { s.Import.Relay, s.Claims, s.Import.Prepared.Done = nil, nil, false }, "PrepareImport", ""},
		"the claim is there, and no Job":     {func(s *snapshot.Snapshot) { s.Import.Prepared, s.Claims[0].Job = nil, "" }, "PrepareImport", ""},
		"the claim of a Job that is gone":    {func(s *snapshot.Snapshot) { s.Import.Prepared = nil }, "Wait", "former attempt"},
		"a claim is made, and its Job runs":  {func(s *snapshot.Snapshot) { s.Claims, s.Import.Prepared.Done = nil, false }, "PrepareImport", ""},
		"a Secret is gone, and all is there": {func(s *snapshot.Snapshot) { s.Import.Withheld = "lacks the label" }, "KeepFollower", ""},
		"it is being prepared, and says nothing": {func(s *snapshot.Snapshot) { s.Import.Prepared.Done = false }, "Wait",
			"at redis.example.com:6379"},
		"it took over, and nothing is left of it": {func(s *snapshot.Snapshot) {
			*s = snapshot.Snapshot{Auth: s.Auth, Import: &snapshot.Import{CutOver: true}}
		}, "ApplyChildren", ""},
		"it is prepared":       {func(*snapshot.Snapshot) {}, "KeepFollower", ""},
		"the claim stays":      {func(s *snapshot.Snapshot) { s.Claims[0].Job = "" }, "KeepFollower", ""},
		"it is known":          {func(s *snapshot.Snapshot) { s.Claims[0].Job, s.Import.Following = "", true }, "ApplyChildren", ""},
		"it is known too soon": {func(s *snapshot.Snapshot) { s.Import.Following = true }, "KeepFollower", ""},
	} {
		s := prepared()
		tt.change(s)
		d := ShapeOf(importer(), s, now).Next(Pending{Children: []string{"StatefulSet c-0"}})
		if d.Step.Name() != tt.step || !strings.Contains(d.Step.Why(), tt.reason) || strings.HasSuffix(d.Step.Why(), ": ") ||
			d.Situation != Forming && d.Situation != Failed {
			t.Errorf("%s: %s in %s: %s", name, d.Step.Name(), d.Situation, d.Step.Why())
		}
		if len(d.Topology) != 1 || d.Topology[0] != 2 {
			t.Errorf("%s: topology %v", name, d.Topology)
		}
	}
	withheld := Pending{Withheld: &snapshot.Withheld{Cause: "CertificateUnavailable", Message: "label it"}}
	nothing := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Import: &snapshot.Import{}}
	if step := ShapeOf(importer(), nothing, now).Next(withheld).Step; step.Name() != "Stall" || step.Why() != "label it" {
		t.Errorf("instances may not mount a Secret: %s: %s", step.Name(), step.Why())
	}
	d := importer()
	d.Topology = d.Topology[:2]
	if shape := ShapeOf(d, prepared(), now); len(shape.Topology) != 1 {
		t.Errorf("of two shards it begins with %v", shape.Topology)
	}
	d = importer()
	d.Import = nil
	if step := ShapeOf(d, prepared(), now).Next(Pending{}).Step; step.Name() != "Stall" || !strings.Contains(step.Why(), "put it back") {
		t.Errorf("spec.bootstrap is gone: %s: %s", step.Name(), step.Why())
	}
}

// An instance that follows a server outside is left alone until somebody asks for the cut-over, and it has what the server has.
func TestFollowing(t *testing.T) {
	for name, tt := range map[string]struct {
		change          func(*Desired, *snapshot.Snapshot)
		step, blockedBy string
		reason          string
	}{
		"nobody asks": {func(d *Desired, _ *snapshot.Snapshot) { d.Import.CutOver = false }, "Wait", string(CutOverAsked),
			"set spec.bootstrap.import.cutOver"},
		"all is there": {func(*Desired, *snapshot.Snapshot) {}, "CutOver", "", ""},
		"it copies": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.MasterLinkUp = false }, "Wait",
			string(SourceFollowed), "copies"},
		"it has in no file what it copied": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.Unsaved = true }, "Wait",
			string(SourceFollowed), "to its disk"},
		"it is of a former cluster of the name": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances[0].Redis.MasterID = (&v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{UID: "former"}}).ImportMasterID()
		}, "Stall", string(SourceFollowed), "former RedisCluster"},
		"nobody imports, and it follows": {func(d *Desired, s *snapshot.Snapshot) {
			d.Import, s.Import = nil, nil
			s.Instances[0].Redis.MasterID = (&v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{UID: "former"}}).ImportMasterID()
		}, "Stall", string(SourceFollowed), "delete its claim"},
		"it took over, and its volume is of before": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Import = &snapshot.Import{CutOver: true}
		}, "Stall",
			string(SourceFollowed), "its volume is of then"},
		"it loads": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.Loading = true }, "Wait",
			string(SourceFollowed), "loads"},
		"it lags": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Source.Offset += mostLag + 1 }, "Wait",
			string(SourceFollowed), "lacks"},
		"the server is unknown": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Source, s.Import.Error = nil, "refused" }, "Wait",
			string(SourceFollowed), "does not answer: refused"},
		"the relay is down": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.RelayIP = "" }, "Wait", string(SourceFollowed), "relay"},
		"the server is demoted": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Source.Master = false }, "Wait", string(SourceFollowed),
			"is a replica now"},
		"commands were refused": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.LoadErrors = 1 }, "Stall",
			string(SourceFollowed), "could not carry out 1"},
		"other databases": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Source.Others = true }, "Stall", string(SourceFollowed),
			"other databases"},
		"the relay is gone": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Relay = nil }, "PrepareImport", "", "is gone"},
		"the relay is gone, and may not be": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Import.Relay, s.Import.RelayIP, s.Import.Withheld = nil, "", "lacks the label"
		}, "Wait", string(SourceFollowed), "relay"},
		"the spec is changed": {func(d *Desired, _ *snapshot.Snapshot) { d.Import = nil }, "Stall", string(SourceFollowed), "put it back"},
		"the status is lost": {func(d *Desired, s *snapshot.Snapshot) { d.Import, s.Import = nil, nil }, "Stall", string(SourceFollowed),
			"put it back"},
		"the spec is changed, and the relay is gone": {func(d *Desired, s *snapshot.Snapshot) { d.Import, s.Import.Relay = nil, nil }, "Stall",
			string(SourceFollowed), "put it back"},
		"the status alone is lost": {func(_ *Desired, s *snapshot.Snapshot) { s.Import = nil }, "Stall", string(SourceFollowed),
			"put it back"},
		"it lags as much as it may":    {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Source.Offset += mostLag }, "CutOver", "", ""},
		"it is ahead of what was said": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Source.Offset = 10 }, "CutOver", "", ""},
		"it has formed, and its volume is of before": {func(_ *Desired, s *snapshot.Snapshot) { s.Formed, s.Import = true, nil }, "Stall",
			string(SourceFollowed), "its volume is of then"},
		"the link is long down": {func(_ *Desired, s *snapshot.Snapshot) {
			r := s.Instances[0].Redis
			r.MasterLinkUp, r.MasterLinkLost, r.MasterLinkDownFor = false, true, time.Hour
		}, "Wait", string(SourceFollowed), "has lost it"},
	} {
		d, s := importer(), following()
		d.Import.CutOver = true
		tt.change(&d, s)
		decision := ShapeOf(d, s, now).Next(Pending{})
		var blockedBy Predicate
		switch step := decision.Step.(type) {
		case Wait:
			blockedBy = step.BlockedBy
		case Stall:
			blockedBy = step.BlockedBy
		}
		if decision.Step.Name() != tt.step || string(blockedBy) != tt.blockedBy || !strings.Contains(decision.Step.Why(), tt.reason) {
			t.Errorf("%s: %s by %s: %s", name, decision.Step.Name(), blockedBy, decision.Step.Why())
		}
		if cut, is := decision.Step.(CutOver); is && (cut.Relay != "10.9.9.9" || cut.MasterID != outsideID || cut.Follower.Pod != "c-0-0" ||
			cut.Pause != d.Import.Pause || !slices.Equal(Pods(cut), []string{"c-0-0"})) {
			t.Errorf("%s: %+v", name, cut)
		}
	}
}

// What was taken over is written down once, with what the server has got since; then the relay goes, and one shard forms before there
// are others.
func TestTakingOver(t *testing.T) {
	missed := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		step   string
		missed *int64
	}{
		"nobody wrote since":    {func(*snapshot.Snapshot) {}, "RecordCutOver", missed(0)},
		"somebody wrote a byte": {func(s *snapshot.Snapshot) { s.Import.Source.Offset++ }, "RecordCutOver", missed(1)},
		"somebody wrote since":  {func(s *snapshot.Snapshot) { s.Import.Source.Offset += 40 }, "RecordCutOver", missed(40)},
		"the server is unknown": {func(s *snapshot.Snapshot) { s.Import.Source = nil }, "RecordCutOver", nil},
		"it restarted since":    {func(s *snapshot.Snapshot) { s.Instances[0].Redis.FormerHistory = "" }, "RecordCutOver", nil},
		"the server is another": {func(s *snapshot.Snapshot) { s.Import.Source.History = "bb" }, "RecordCutOver", nil},
		"the status is older": {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Slots = slots.Range(0, 100); introduce(s) },
			"RecordCutOver", missed(0)},
		"it forgets later": {func(s *snapshot.Snapshot) {
			s.Instances[0].Redis.Peers[outsideID] = snapshot.Peer{ID: outsideID, Master: true}
		}, "RecordCutOver", missed(0)},
		"its volume is lost": {func(s *snapshot.Snapshot) { s.Instances[0].Redis = &snapshot.Redis{NodeID: nodeID(0, 0), Master: true} },
			"Stall", nil},
		"it is not reached": {func(s *snapshot.Snapshot) { s.Instances[0].Redis = nil }, "Wait", nil},
		"it loads":          {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Loading = true }, "Wait", nil},
		"only its Job is left": {func(s *snapshot.Snapshot) {
			s.Import.CutOver, s.Import.Relay, s.Import.Prepared = true, nil, &snapshot.RestoreJob{Name: "c-0-restore"}
		}, "EndImport", nil},
		"its first instance has no pod": {func(s *snapshot.Snapshot) { s.Instances = s.Instances[1:] }, "Wait", nil},
		"it is known":                   {func(s *snapshot.Snapshot) { s.Import.CutOver = true }, "EndImport", nil},
		"the relay is being gone": {func(s *snapshot.Snapshot) { s.Import.CutOver, s.Import.Relay.Terminating = true, true },
			"AssignSlots", nil},
	} {
		s := tookOver()
		tt.change(s)
		decision := ShapeOf(importer(), s, now).Next(Pending{})
		if decision.Step.Name() != tt.step || len(decision.Topology) != 1 {
			t.Errorf("%s: %s: %s, topology %v", name, decision.Step.Name(), decision.Step.Why(), decision.Topology)
		}
		if step, is := decision.Step.(RecordCutOver); is && tt.missed != nil &&
			(step.Missed == nil || *step.Missed != *tt.missed) {
			t.Errorf("%s: %+v", name, step)
		}
		if step, is := decision.Step.(RecordCutOver); is && (tt.missed == nil && step.Missed != nil ||
			strings.Contains(step.Why(), "bytes came") != (tt.missed != nil && *tt.missed > 0)) {
			t.Errorf("%s: %+v", name, step)
		}
		if step, is := decision.Step.(AssignSlots); is && !step.Assignments[0].Slots.IsEmpty() {
			t.Errorf("%s: slots are handed out: %+v", name, step)
		}
	}
	s := tookOver()
	s.Formed, s.Import.CutOver = true, true
	if step := decide(importer(), s, now).Step; Is[EndImport](step) || Is[RecordCutOver](step) {
		t.Errorf("of a cluster that has formed: %s", step.Name())
	}
	if d := ShapeOf(importer(), s, now); len(d.Topology) != 3 {
		t.Errorf("a cluster that has formed is not scaled: %v", d.Topology)
	}
}

// Slots that the instance has lost with its volume after it took over are not handed out empty.
func TestWhatWasTakenOverIsNotAssigned(t *testing.T) {
	s := tookOver()
	s.Import = &snapshot.Import{CutOver: true}
	s.Instances[0].Redis = &snapshot.Redis{NodeID: nodeID(0, 0), Master: true, Peers: map[string]snapshot.Peer{}}
	s.Instances[0].Redis.Epoch, s.Instances[1].Redis.Epoch = 1, 2
	introduce(s)
	for _, pod := range s.Reachable() {
		pod.Redis.ClusterOK = true
	}
	if step := ShapeOf(importer(), s, now).Next(Pending{}).Step; step.Name() != "Wait" {
		t.Errorf("%s: %s", step.Name(), step.Why())
	}
}

// A cluster that has formed around what it took over is not there yet: it is not said to be Ready before it has the shards of the spec.
func TestImportedClusterIsScaledBeforeItIsReady(t *testing.T) {
	for shards, want := range map[int]Situation{1: Steady, 3: ScalingOut} {
		d, s := importer(), formed()
		d.Topology = d.Topology[:shards]
		s.Formed, s.Import = false, &snapshot.Import{CutOver: true}
		s.Shards, s.Instances = s.Shards[:1], s.Instances[:2]
		for i := range s.Instances {
			redis := s.Instances[i].Redis
			for id := range redis.Peers {
				if id != s.Instances[0].Redis.NodeID && id != s.Instances[1].Redis.NodeID {
					delete(redis.Peers, id)
				}
			}
		}
		s.Instances[0].Redis.Slots = slots.All()
		introduce(s)
		if got := ShapeOf(d, s, now).Next(Pending{}); got.Situation != want || !Is[None](got.Step) {
			t.Errorf("%d shards: %s, %s: %s", shards, got.Situation, got.Step.Name(), got.Step.Why())
		}
	}
}

// How far the first instance is behind is told as long as both ends are known, and it follows.
func TestLag(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		lag    int64
		known  bool
	}{
		"it follows":            {func(s *snapshot.Snapshot) { s.Import.Source.Offset += 40 }, 40, true},
		"it has all":            {func(*snapshot.Snapshot) {}, 0, true},
		"nothing is imported":   {func(s *snapshot.Snapshot) { s.Import = nil }, 0, false},
		"the server is unknown": {func(s *snapshot.Snapshot) { s.Import.Source = nil }, 0, false},
		"it has no pod":         {func(s *snapshot.Snapshot) { s.Instances = nil }, 0, false},
		"it does not answer":    {func(s *snapshot.Snapshot) { s.Instances[0].Redis = nil }, 0, false},
		"its link is down": {func(s *snapshot.Snapshot) {
			s.Import.Source.Offset += 40
			s.Instances[0].Redis.MasterLinkUp = false
		}, 0, false},
	} {
		s := following()
		tt.change(s)
		if lag, known := Lag(s.Indexed()); lag != tt.lag || known != tt.known {
			t.Errorf("%s: %d, %t", name, lag, known)
		}
	}
}

// A replica whose volume is of before the cut-over is taken in again, as long as its shard has a master with all slots.
func TestFollowerOfBeforeTheCutOver(t *testing.T) {
	for _, covered := range []bool{true, false} {
		s := tookOver()
		s.Formed, s.Import = true, nil
		late := s.Instances[1].Redis
		late.Master, late.MasterID = false, outsideID
		if !covered {
			s.Instances[0].Redis.Slots = slots.Range(0, 16382)
		}
		step := planFollow(ShapeOf(importer(), s, now).in)
		if (step == nil) != covered {
			t.Errorf("covered %t: %+v", covered, step)
		}
	}
}
