// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var outsideID = v1alpha1.ImportMasterID("", 0)

// importer is a cluster of 3 shards of 2 instances that takes the data of a server outside.
func importer() Desired {
	d := desired()
	d.Import = &DesiredImport{Address: "redis.example.com:6379", Pause: 30 * time.Second}
	return d
}

// job is a Job that has prepared the first instance of a shard of so many.
func job(shard, shards int, set slots.Set) snapshot.ImportShard {
	return snapshot.ImportShard{Service: true, Told: "10.96.0.7", At: "10.96.0.7",
		Prepared: &snapshot.RestoreJob{Name: fmt.Sprintf("c-%d-restore", shard),
			UID: fmt.Sprintf("job-%d", shard), Done: true}, Said: &report.Following{Slots: set.String(), Shards: shards}}
}

// prepared is such a cluster whose first instances are prepared, and of which nothing runs yet: of a server whose masters own these slots.
func prepared(owned ...slots.Set) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Import: &snapshot.Import{}}
	for shard, set := range owned {
		of := job(shard, len(owned), set)
		s.Import.Shards = append(s.Import.Shards, of)
		s.Claims = append(s.Claims, snapshot.Claim{Name: fmt.Sprintf("data-c-%d-0", shard), Shard: shard, ToRestore: true, Job: of.Prepared.UID})
	}
	return s
}

// following is such a cluster whose first instances follow the server, with all that was written there: of one whose masters own these
// slots, or of one that is in no cluster.
func following(owned ...slots.Set) *snapshot.Snapshot {
	if len(owned) == 0 {
		owned = []slots.Set{slots.All()}
	}
	s := fresh()
	s.Shards, s.Instances = s.Shards[:len(owned)], s.Instances[:2*len(owned)]
	s.Import = &snapshot.Import{Slots: owned, Following: true}
	for shard, set := range owned {
		s.Import.Shards = append(s.Import.Shards, snapshot.ImportShard{RelayIP: fmt.Sprintf("10.9.9.%d", 9-shard), Service: true,
			Relay:  &snapshot.RestoreJob{Name: fmt.Sprintf("c-%d-import", shard)},
			Source: &snapshot.Source{Engine: "redis", Version: "7.0.15", Master: true, History: "aa", Offset: 1000, Slots: set}})
		id := v1alpha1.ImportMasterID("", shard)
		first := s.Instances[2*shard].Redis
		first.Master, first.MasterID, first.MasterLinkUp, first.Offset, first.Keys = false, id, true, 1000, 7
		first.Peers = map[string]snapshot.Peer{id: {ID: id, IP: "10.96.0.7", Master: true, Suspected: true, Slots: set}}
	}
	return s
}

// takeOver makes the first instance of a shard one that has taken over.
func takeOver(s *snapshot.Snapshot, shard int) {
	first := s.Instances[2*shard].Redis
	first.Master, first.MasterID, first.MasterLinkUp, first.Slots = true, "", false, s.Import.Slots[shard]
	first.FormerHistory, first.FormerOffset, first.ClusterOK, first.Epoch = "aa", 1000, true, uint64(1026+shard)
	first.Peers = map[string]snapshot.Peer{}
}

// tookOver is such a cluster that has taken over, which nobody was told yet.
func tookOver() *snapshot.Snapshot {
	s := following()
	takeOver(s, 0)
	return s
}

// Nothing starts before the first instances are prepared, and nothing is brought over a claim that was there.
func TestImportIsPrepared(t *testing.T) {
	type shot = snapshot.Snapshot
	for name, tt := range map[string]struct {
		change       func(*shot)
		step, reason string
	}{
		"nothing is there": {func(s *shot) {
			*s = shot{Auth: s.Auth, Import: &snapshot.Import{Shards: make([]snapshot.ImportShard, 1)}}
		}, "PrepareImport", "of shards [0] are to follow"},
		"the Job is gone":     {func(s *shot) { s.Import.Shards[0].Prepared, s.Claims = nil, nil }, "PrepareImport", ""},
		"the Service is gone": {func(s *shot) { s.Import.Shards[0].Service = false }, "PrepareImport", "shards [0]"},
		"a Secret is not for": {func(s *shot) {
			s.Import.Shards[0].Prepared, s.Import.Withheld, s.Claims = nil, "lacks the label", nil
		}, "Stall", "lacks the label"},
		"a claim of before": {func(s *shot) { s.Claims[0].ToRestore = false }, "Stall", "claims exist, and no server is imported over"},
		"another's claim":   {func(s *shot) { s.Claims[0].Job = "former" }, "Wait", "former attempt"},
		"a Job goes":        {func(s *shot) { s.Import.Shards[0].Prepared.Terminating = true }, "Wait", "former attempt"},
		"the relay goes": {func(s *shot) { s.Import.Shards[0].Relay = &snapshot.RestoreJob{Terminating: true} }, "Wait",
			"former attempt"},
		"the claim is gone": {func(s *shot) { s.Claims = nil }, "Wait", "is gone; delete Job c-0-restore"},
		"the server is refused": {func(s *shot) {
			j := s.Import.Shards[0].Prepared
			j.Done, j.Failed, j.Message = false, true, "it is a replica"
		}, "Stall", "it is a replica; delete Job c-0-restore to try again"},
		"it is being prepared": {func(s *shot) {
			s.Import.Shards[0].Prepared.Done, s.Import.Shards[0].Prepared.Message = false, "no node"
		}, "Wait", ": no node"},
		"nobody knows what it did": {func(s *shot) { s.Import.Shards[0].Said = nil }, "Stall", "did not say"},
		"slots are missing": {func(s *shot) { s.Import.Shards[0].Said.Slots = "0-16382" }, "Stall",
			"slots 16383 have no master"},
		"the claim is there, and no Job":     {func(s *shot) { s.Import.Shards[0].Prepared, s.Claims[0].Job = nil, "" }, "PrepareImport", ""},
		"the claim of a Job that is gone":    {func(s *shot) { s.Import.Shards[0].Prepared = nil }, "Wait", "former attempt"},
		"a claim is made, and its Job runs":  {func(s *shot) { s.Claims, s.Import.Shards[0].Prepared.Done = nil, false }, "PrepareImport", ""},
		"a Secret is gone, and all is there": {func(s *shot) { s.Import.Withheld = "lacks the label" }, "KeepFollower", ""},
		"it is being prepared, and says nothing": {func(s *shot) { s.Import.Shards[0].Prepared.Done = false }, "Wait",
			"at redis.example.com:6379"},
		"it took over, and nothing is left of it": {func(s *shot) {
			*s = shot{Auth: s.Auth, Import: &snapshot.Import{CutOver: true}}
		}, "ApplyChildren", ""},
		"it is prepared":  {func(*shot) {}, "KeepFollower", ""},
		"the claim stays": {func(s *shot) { s.Claims[0].Job = "" }, "KeepFollower", ""},
		"it is known": {func(s *shot) {
			s.Claims[0].Job, s.Import.Following, s.Import.Slots = "", true, []slots.Set{slots.All()}
		},
			"PrepareImport", "relays"},
		"the relay is there": {func(s *shot) {
			s.Claims[0].Job, s.Import.Following, s.Import.Slots = "", true, []slots.Set{slots.All()}
			s.Import.Shards[0].Relay = &snapshot.RestoreJob{}
		}, "ApplyChildren", ""},
		"its relay is elsewhere": {func(s *shot) {
			s.Claims[0].Job, s.Import.Following, s.Import.Slots = "", true, []slots.Set{slots.All()}
			s.Import.Shards[0].At = "10.96.0.8"
		}, "Stall", "prepared to follow 10.96.0.7, and its relay is at 10.96.0.8: delete Job c-0-restore"},
		"its relay is nowhere": {func(s *shot) {
			s.Claims[0].Job, s.Import.Following, s.Import.Slots = "", true, []slots.Set{slots.All()}
			s.Import.Shards[0].Relay, s.Import.Shards[0].At = &snapshot.RestoreJob{}, ""
		}, "Wait", "shard 0 has no address"},
		"it is known too soon": {func(s *shot) { s.Import.Following = true }, "KeepFollower", ""},
	} {
		s := prepared(slots.All())
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
	d := importer()
	d.Import = nil
	step := ShapeOf(d, prepared(slots.All()), now).Next(Pending{}).Step
	if step.Name() != "Stall" || !strings.Contains(step.Why(), "put it back") {
		t.Errorf("spec.bootstrap is gone: %s: %s", step.Name(), step.Why())
	}
}

// A shard that has not started is looked at also when others have, and those that have are not.
func TestRelayOfTheNextShardIsElsewhere(t *testing.T) {
	for at, want := range map[string]string{"10.96.0.7": "ApplyChildren", "10.96.0.8": "Stall", "": "Wait", "gone": "PrepareImport",
		"gone for good": "Stall"} {
		s := following(slots.All().Split(3)...)
		for shard := range s.Import.Shards {
			s.Import.Shards[shard].Prepared, s.Import.Shards[shard].Told = &snapshot.RestoreJob{Done: true}, "10.96.0.7"
		}
		s.Shards, s.Instances = s.Shards[:2], s.Instances[:4]
		if s.Import.Shards[2].At = at; strings.HasPrefix(at, "gone") {
			s.Import.Shards[2].Service, s.Import.Shards[2].At = false, ""
		}
		if at == "gone for good" {
			s.Import.Withheld = "there is no Secret"
		}
		step := ShapeOf(importer(), s, now).Next(Pending{Children: []string{"StatefulSet c-2"}}).Step
		if step.Name() != want || at == "10.96.0.8" && !strings.Contains(step.Why(), "at 10.96.0.8: delete the relay's Service") {
			t.Errorf("%q: %s: %s", at, step.Name(), step.Why())
		}
	}
}

// A server's cluster is prepared for shard by shard, all of them with what it was at one time.
func TestClusterIsPreparedFor(t *testing.T) {
	type shot = snapshot.Snapshot
	four := slots.All().Split(4)
	for name, tt := range map[string]struct {
		change       func(*shot)
		step, reason string
	}{
		"the first says how many": {func(s *shot) {
			s.Claims = s.Claims[:1]
			s.Import.Shards = append(s.Import.Shards[:1], make([]snapshot.ImportShard, 3)...)
		},
			"PrepareImport", "shards [1 2 3]"},
		"all are prepared": {func(*shot) {}, "KeepFollower", ""},
		"one is not":       {func(s *shot) { s.Import.Shards[2].Prepared.Done = false }, "Wait", "are being prepared"},
		"one was refused": {func(s *shot) {
			s.Import.Shards[3].Prepared.Failed, s.Import.Shards[3].Prepared.Message = true, "not reached"
		}, "Stall",
			"not reached; delete Job c-3-restore"},
		"slots moved meanwhile": {func(s *shot) { s.Import.Shards[2].Said.Slots = "0-9" }, "Stall", "delete the Jobs c-0-restore"},
		"a master came":         {func(s *shot) { s.Import.Shards[2].Said.Shards = 5 }, "Stall", "slots moved"},
		"a master went":         {func(s *shot) { s.Import.Beyond = "c-4-restore" }, "Stall", "Job c-4-restore"},
		"and its Job": {func(s *shot) { s.Claims = append(s.Claims, snapshot.Claim{Shard: 4, ToRestore: true, Job: "gone"}) }, "Wait",
			"former attempt"},
		"another one is known": {func(s *shot) {
			s.Import.Following, s.Import.Slots = true, slots.All().Split(4)
			s.Import.Slots[0] = slots.Of(1)
		},
			"Stall", "slots moved"},
		"it is known": {func(s *shot) {
			s.Import.Following, s.Import.Slots = true, four
			for i := range s.Claims {
				s.Claims[i].Job = ""
			}
		}, "PrepareImport", "relays"},
	} {
		s := prepared(four...)
		tt.change(s)
		d := ShapeOf(importer(), s, now).Next(Pending{Children: []string{"StatefulSet c-0"}})
		if d.Step.Name() != tt.step || !strings.Contains(d.Step.Why(), tt.reason) {
			t.Errorf("%s: %s: %s", name, d.Step.Name(), d.Step.Why())
		}
		if len(d.Topology) != 4 || d.Topology[2] != 2 || d.Topology[3] != 1 {
			t.Errorf("%s: topology %v", name, d.Topology)
		}
		switch step := d.Step.(type) {
		case KeepFollower:
			if len(step.Claims) != 4 || len(step.Slots) != 4 || !step.Slots[3].Equal(four[3]) {
				t.Errorf("%s: %+v", name, step)
			}
		case PrepareImport:
			if len(step.Instances) > 0 && step.Shards != 4 || len(step.Instances) == 0 && len(step.Relays) != 4 {
				t.Errorf("%s: %+v", name, step)
			}
		}
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
			s.Instances[0].Redis.MasterID = v1alpha1.ImportMasterID("former", 0)
		}, "Stall", string(SourceFollowed), "former RedisCluster"},
		"nobody imports, and it follows": {func(d *Desired, s *snapshot.Snapshot) {
			d.Import, s.Import = nil, nil
			s.Instances[0].Redis.MasterID = v1alpha1.ImportMasterID("former", 0)
		}, "Stall", string(SourceFollowed), "delete its claim"},
		"it took over, and its volume is of before": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Import = &snapshot.Import{CutOver: true}
		}, "Stall",
			string(SourceFollowed), "its volume is of then"},
		"it loads": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.Loading = true }, "Wait",
			string(SourceFollowed), "loads"},
		"it lags": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Source.Offset += mostLag + 1 }, "Wait",
			string(SourceFollowed), "lacks"},
		"the server is unknown": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Import.Shards[0].Source, s.Import.Shards[0].Error = nil, "refused"
		}, "Wait",
			string(SourceFollowed), "does not answer: refused"},
		"the relay is down": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].RelayIP = "" }, "Wait", string(SourceFollowed),
			"relay"},
		"the server is demoted": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Source.Master = false }, "Wait",
			string(SourceFollowed), "is a replica now"},
		"commands were refused": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.LoadErrors = 1 }, "Stall",
			string(SourceFollowed), "could not carry out 1"},
		"other databases": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Source.Others = true }, "Stall", string(SourceFollowed),
			"other databases"},
		"the relay is gone":   {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Relay = nil }, "PrepareImport", "", "missing"},
		"its Service is gone": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Service = false }, "PrepareImport", "", "missing"},
		"slots move": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Source.Open = 2 }, "Wait", string(SourceFollowed),
			"2 slots move"},
		"slots have moved": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Source.Slots = slots.Range(1, 16383) }, "Stall",
			string(SourceFollowed), "has slots 1-16383, and had 0-16383"},
		"it may not be followed": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances[0].Redis.MasterLinkUp, s.Import.Shards[0].Source.Held = false, "it sent ACL"
		}, "Wait", string(SourceFollowed), "it sent ACL"},
		"the relay is gone, and may not be": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Import.Shards[0].Relay, s.Import.Shards[0].RelayIP, s.Import.Withheld = nil, "", "lacks the label"
		}, "Wait", string(SourceFollowed), "relay"},
		"the spec is changed": {func(d *Desired, _ *snapshot.Snapshot) { d.Import = nil }, "Stall", string(SourceFollowed), "put it back"},
		"the status is lost": {func(d *Desired, s *snapshot.Snapshot) { d.Import, s.Import = nil, nil }, "Stall", string(SourceFollowed),
			"put it back"},
		"it lags a little": {func(_ *Desired, s *snapshot.Snapshot) { s.Import.Shards[0].Source.Offset += mostLag }, "CutOver", "", ""},
		"a slot moves, and another has moved": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Import.Shards[0].Source.Open, s.Import.Shards[0].Source.Slots = 1, slots.Range(1, 16383)
		}, "Wait", string(SourceFollowed), "1 slots move"},
		"nobody knows with what it began": {func(d *Desired, s *snapshot.Snapshot) { d.Import.CutOver, s.Import.Slots = false, nil }, "Wait",
			string(CutOverAsked), ""},
		"nothing runs yet": {func(_ *Desired, s *snapshot.Snapshot) { s.Instances = nil }, "Wait", string(SnapshotComplete),
			"has no pod yet"},
		"it has taken over, and a replica is of a former cluster of the name": {func(_ *Desired, s *snapshot.Snapshot) {
			takeOver(s, 0)
			s.Instances[1].Redis.Master, s.Instances[1].Redis.MasterID = false, v1alpha1.ImportMasterID("former", 0)
		}, "Stall", string(SourceFollowed), "c-0-1 follows a server outside"},
		"it has formed since": {func(_ *Desired, s *snapshot.Snapshot) {
			was := s.Import
			*s = *formed()
			s.Import = was
		}, "None", "", ""},
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
		if cut, is := decision.Step.(CutOver); is && (len(cut.Followers) != 1 || cut.Followers[0].Relay != "10.9.9.9" ||
			cut.Followers[0].MasterID != outsideID || cut.Followers[0].On.Pod != "c-0-0" || cut.Pause != d.Import.Pause || cut.Resume ||
			!slices.Equal(Pods(cut), []string{"c-0-0"})) {
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
		"somebody wrote a byte": {func(s *snapshot.Snapshot) { s.Import.Shards[0].Source.Offset++ }, "RecordCutOver", missed(1)},
		"somebody wrote since":  {func(s *snapshot.Snapshot) { s.Import.Shards[0].Source.Offset += 40 }, "RecordCutOver", missed(40)},
		"the server is unknown": {func(s *snapshot.Snapshot) { s.Import.Shards[0].Source = nil }, "RecordCutOver", nil},
		"it restarted since":    {func(s *snapshot.Snapshot) { s.Instances[0].Redis.FormerHistory = "" }, "RecordCutOver", nil},
		"the server is another": {func(s *snapshot.Snapshot) { s.Import.Shards[0].Source.History = "bb" }, "RecordCutOver", nil},
		"the status is older": {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Slots = slots.Range(0, 100); introduce(s) },
			"RecordCutOver", missed(0)},
		"it has other slots, and knows nobody": {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Slots = slots.Range(0, 100) },
			"Stall", nil},
		"nobody knows with what it began": {func(s *snapshot.Snapshot) { s.Import.Slots = nil }, "RecordCutOver", missed(0)},
		"nor that, and its volume is lost": {func(s *snapshot.Snapshot) {
			s.Import.Slots, s.Instances[0].Redis = nil, &snapshot.Redis{NodeID: nodeID(0, 0), Master: true}
		}, "Stall", nil},
		"it forgets later": {func(s *snapshot.Snapshot) {
			s.Instances[0].Redis.Peers[outsideID] = snapshot.Peer{ID: outsideID, Master: true}
		}, "RecordCutOver", missed(0)},
		"its volume is lost": {func(s *snapshot.Snapshot) { s.Instances[0].Redis = &snapshot.Redis{NodeID: nodeID(0, 0), Master: true} },
			"Stall", nil},
		"it is not reached": {func(s *snapshot.Snapshot) { s.Instances[0].Redis = nil }, "Wait", nil},
		"it loads":          {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Loading = true }, "Wait", nil},
		"it is known":       {func(s *snapshot.Snapshot) { s.Import.CutOver = true }, "EndImport", nil},
		"it is known, and it is not reached": {func(s *snapshot.Snapshot) { s.Import.CutOver, s.Instances[0].Redis = true, nil },
			"EndImport", nil},
		"it is known, and its pod is gone": {func(s *snapshot.Snapshot) { s.Import.CutOver, s.Instances = true, s.Instances[1:] },
			"EndImport", nil},
		"the pause is not over": {func(s *snapshot.Snapshot) { s.Import.CutOver, s.Import.CutOverAt = true, now.Add(-31*time.Second) },
			"AssignSlots", nil},
		"the relay is being gone": {func(s *snapshot.Snapshot) {
			s.Import.CutOver, s.Import.Shards[0].Relay.Terminating, s.Import.Shards[0].Service = true, true, false
		}, "AssignSlots", nil},
		"its Service came late": {func(s *snapshot.Snapshot) {
			s.Import.CutOver, s.Import.Shards[0] = true, snapshot.ImportShard{Service: true}
		}, "EndImport", nil},
	} {
		s := tookOver()
		tt.change(s)
		decision := ShapeOf(importer(), s, now).Next(Pending{})
		if decision.Step.Name() != tt.step || len(decision.Topology) != 1 {
			t.Errorf("%s: %s: %s, topology %v", name, decision.Step.Name(), decision.Step.Why(), decision.Topology)
		}
		if step, is := decision.Step.(RecordCutOver); is && ((step.Missed == nil) != (tt.missed == nil) ||
			tt.missed != nil && *step.Missed != *tt.missed ||
			strings.Contains(step.Reason, "bytes came") != (tt.missed != nil && *tt.missed > 0)) {
			t.Errorf("%s: %+v", name, step)
		}
		if step, is := decision.Step.(AssignSlots); is && !step.Assignments[0].Slots.IsEmpty() {
			t.Errorf("%s: slots are handed out: %+v", name, step)
		}
	}
	s := tookOver()
	s.Formed = true
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

// A cluster is taken over when all of it is followed. Where some shards have been taken over, the others follow, whatever the spec says by
// then; what moved meanwhile is told.
func TestShardsAreTakenOver(t *testing.T) {
	type shot = snapshot.Snapshot
	for name, tt := range map[string]struct {
		change       func(*Desired, *shot)
		step, reason string
		followers    int
	}{
		"all is there": {func(*Desired, *shot) {}, "CutOver", "3 instances follow", 3},
		"nobody asks":  {func(d *Desired, _ *shot) { d.Import.CutOver = false }, "Wait", "set spec.bootstrap.import.cutOver", 0},
		"one copies":   {func(_ *Desired, s *shot) { s.Instances[4].Redis.MasterLinkUp = false }, "Wait", "c-2-0 copies", 0},
		"one does not answer": {func(_ *Desired, s *shot) { s.Instances[2].Redis = nil }, "Wait",
			"first instance of shard 1 does not answer", 0},
		"one has taken over": {func(d *Desired, s *shot) { d.Import.CutOver = false; takeOver(s, 1) }, "CutOver",
			"2 instances follow the server at redis.example.com:6379, and take over while writes are paused there; 1 have taken over before", 2},
		"one has no pod": {func(_ *Desired, s *shot) { s.Instances = s.Instances[:4] }, "Wait",
			"first instance of shard 2 does not answer", 0},
		"one has, and could not carry out what its clients asked for": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			s.Instances[2].Redis.LoadErrors = 1
		}, "CutOver", "", 2},
		"of one it is not known what it is to follow": {func(_ *Desired, s *shot) {
			s.Import.Shards, s.Import.Slots = s.Import.Shards[:2], nil
		}, "Wait", "c-2-0 is of a shard that the server's cluster does not have", 0},
		"two have, and one copies": {func(_ *Desired, s *shot) {
			takeOver(s, 0)
			takeOver(s, 1)
			s.Instances[4].Redis.MasterLinkUp = false
		}, "Wait", "c-2-0 copies", 0},
		"one has, and its server has other slots by now": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			s.Import.Shards[1].Source.Slots = slots.Of(5461)
		}, "Stall", "move slots back", 0},
		"one has, and its server is gone": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			s.Import.Shards[1].Source, s.Import.Shards[1].RelayIP = nil, ""
		}, "CutOver", "", 2},
		"one has lost its volume": {func(_ *Desired, s *shot) { s.Instances[2].Redis = &snapshot.Redis{NodeID: nodeID(1, 0), Master: true} },
			"Stall", "c-1-0 neither follows", 0},
		"one follows for another shard": {func(_ *Desired, s *shot) { s.Instances[2].Redis.MasterID = outsideID }, "Stall", "c-1-0 follows", 0},
		"all have": {func(_ *Desired, s *shot) {
			for shard := range 3 {
				takeOver(s, shard)
				s.Import.Shards[shard].Source.Offset += int64(shard)
			}
		}, "RecordCutOver", ": 3 bytes came", 0},
		"a clone":                {func(d *Desired, _ *shot) { d.Import.Clone = true }, "CutOver", "", 3},
		"a clone of two moments": {func(d *Desired, s *shot) { d.Import.Clone = true; takeOver(s, 1) }, "Stall", "of two moments", 0},
		"a clone is over": {func(d *Desired, s *shot) {
			d.Import.Clone = true
			for shard := range 3 {
				takeOver(s, shard)
			}
		}, "RecordCutOver", "at one moment", 0},
		"all is over, and it has not formed": {func(d *Desired, s *shot) {
			d.Import.Clone = true
			for shard := range 3 {
				takeOver(s, shard)
			}
			s.Import = &snapshot.Import{CutOver: true, Slots: s.Import.Slots}
		}, "AssignSlots", "epochs", 0},
		"and nobody knows with what it began": {func(_ *Desired, s *shot) {
			for shard := range 3 {
				takeOver(s, shard)
			}
			s.Import = &snapshot.Import{CutOver: true}
		}, "AssignSlots", "epochs", 0},
		"the children of a clone are ended at once": {func(d *Desired, s *shot) {
			d.Import.Clone, s.Import.CutOver, s.Import.CutOverAt = true, true, now
			for shard := range 3 {
				takeOver(s, shard)
			}
		}, "EndImport", "", 0},
	} {
		d, s := importer(), following(slots.All().Split(3)...)
		d.Import.CutOver = true
		tt.change(&d, s)
		shape := ShapeOf(d, s, now)
		if n := len(shape.in.desired.Topology); n != 3 {
			t.Errorf("%s: %d shards stay", name, n)
		}
		decision := shape.Next(Pending{})
		if step, is := decision.Step.(AssignSlots); is && !step.Assignments[0].Slots.IsEmpty() {
			t.Errorf("%s: slots are handed out: %+v", name, step)
		}
		if decision.Step.Name() != tt.step || !strings.Contains(decision.Step.Why(), tt.reason) || len(decision.Topology) != 3 {
			t.Errorf("%s: %s: %s, topology %v", name, decision.Step.Name(), decision.Step.Why(), decision.Topology)
		}
		if cut, is := decision.Step.(CutOver); is && (len(cut.Followers) != tt.followers || cut.Resume != d.Import.Clone ||
			!cut.Followers[0].Slots.Equal(s.Import.Slots[0])) {
			t.Errorf("%s: %+v", name, cut)
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
		"it follows":            {func(s *snapshot.Snapshot) { s.Import.Shards[0].Source.Offset += 40 }, 40, true},
		"it has all":            {func(*snapshot.Snapshot) {}, 0, true},
		"nothing is imported":   {func(s *snapshot.Snapshot) { s.Import = nil }, 0, false},
		"no shard is known":     {func(s *snapshot.Snapshot) { s.Import.Shards = nil }, 0, false},
		"the server is unknown": {func(s *snapshot.Snapshot) { s.Import.Shards[0].Source = nil }, 0, false},
		"it has no pod":         {func(s *snapshot.Snapshot) { s.Instances = nil }, 0, false},
		"it does not answer":    {func(s *snapshot.Snapshot) { s.Instances[0].Redis = nil }, 0, false},
		"its link is down": {func(s *snapshot.Snapshot) {
			s.Import.Shards[0].Source.Offset += 40
			s.Instances[0].Redis.MasterLinkUp = false
		}, 0, false},
	} {
		s := following(slots.All())
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
