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
	kslots "middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// restoring is a new cluster of 3 shards of 2 instances all of whose shards lie in their claims.
func restoring() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true},
		Restore: &snapshot.Restore{From: v1alpha1.BackupLocation{Name: "monday"}, Jobs: map[int]snapshot.RestoreJob{}}}
	for shard, part := range kslots.All().Split(3) {
		uid := fmt.Sprintf("job-%d", shard)
		s.Restore.Jobs[shard] = snapshot.RestoreJob{Name: fmt.Sprintf("c-%d-restore", shard), UID: uid, Done: true,
			Report: &report.Report{Manifest: strings.Repeat("a", 64), Count: 3, Marked: now.Add(-time.Hour), Restored: part.String(), Bytes: 7}}
		s.Claims = append(s.Claims, snapshot.Claim{Name: fmt.Sprintf("data-c-%d-0", shard), Shard: shard, ToRestore: true, Job: uid})
	}
	return s
}

func withJob(s *snapshot.Snapshot, shard int, change func(*snapshot.RestoreJob)) {
	job := s.Restore.Jobs[shard]
	change(&job)
	s.Restore.Jobs[shard] = job
}

// Nothing is restored over a claim that was there, nothing starts before all shards lie in their claims, and nothing stays of a Job and its
// claim that are not each other's.
func TestRestoring(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		step   string
		reason string
	}{
		"nothing is there": {func(s *snapshot.Snapshot) { s.Claims, s.Restore.Jobs = nil, nil }, "RestoreShards", "shards [0 1 2]"},
		"a Secret lacks its label": {func(s *snapshot.Snapshot) { s.Claims, s.Restore.Jobs, s.Restore.Withheld = nil, nil, "lacks the label" },
			"Stall", "lacks the label"},
		"a claim of before": {func(s *snapshot.Snapshot) {
			s.Restore.Jobs, s.Claims = nil, s.Claims[1:2]
			s.Claims[0].ToRestore = false
		}, "Stall",
			"nothing is restored over, or beside, what may be in them: data-c-1-0"},
		"a claim was not made yet": {func(s *snapshot.Snapshot) {
			s.Claims = s.Claims[:2]
			withJob(s, 2, func(j *snapshot.RestoreJob) { j.Done = false })
		}, "RestoreShards", "shards [2]"},
		"a Job is gone, and its claim stays": {func(s *snapshot.Snapshot) { delete(s.Restore.Jobs, 1); s.Claims[1].Job = "" }, "RestoreShards",
			"shards [1]"},
		"a Job is gone, and its claim goes with it": {func(s *snapshot.Snapshot) { delete(s.Restore.Jobs, 1) }, "Wait", "are being deleted"},
		"a claim goes with a former Job":            {func(s *snapshot.Snapshot) { s.Claims[1].Job = "former" }, "Wait", "are being deleted"},
		"a claim is being deleted":                  {func(s *snapshot.Snapshot) { s.Claims[1].Terminating = true }, "Wait", "is being deleted"},
		"a claim was deleted after its restore": {func(s *snapshot.Snapshot) { s.Claims = s.Claims[1:] }, "Wait",
			"delete Job c-0-restore to try again"},
		"a Job failed": {func(s *snapshot.Snapshot) {
			withJob(s, 2, func(j *snapshot.RestoreJob) {
				j.Done, j.Failed, j.Message, j.Report = false, true, "access denied", nil
			})
		}, "Stall", "access denied; delete Job c-2-restore to try again"},
		"a Job runs": {func(s *snapshot.Snapshot) { withJob(s, 2, func(j *snapshot.RestoreJob) { j.Done = false }) }, "Wait",
			"2 of 3 shards are restored"},
		"a Job runs again": {func(s *snapshot.Snapshot) {
			withJob(s, 2, func(j *snapshot.RestoreJob) { j.Done, j.Message = false, "timed out" })
		}, "Wait", "2 of 3 shards are restored; shard 2: timed out"},
		"a Job ends": {func(s *snapshot.Snapshot) { withJob(s, 2, func(j *snapshot.RestoreJob) { j.Terminating = true }) }, "Wait",
			"the former Job of shard 2"},
		"two Jobs run": {func(s *snapshot.Snapshot) {
			withJob(s, 1, func(j *snapshot.RestoreJob) { j.Done, j.Message = false, "one" })
			withJob(s, 2, func(j *snapshot.RestoreJob) { j.Done, j.Message = false, "two" })
		}, "Wait", "1 of 3 shards are restored; shard 1: one"},
		"two Jobs run, and one says why": {func(s *snapshot.Snapshot) {
			withJob(s, 1, func(j *snapshot.RestoreJob) { j.Done = false })
			withJob(s, 2, func(j *snapshot.RestoreJob) { j.Done, j.Message = false, "two" })
		}, "Wait", "1 of 3 shards are restored; shard 2: two"},
		"a Secret lacks its label, and a shard is missing": {func(s *snapshot.Snapshot) {
			delete(s.Restore.Jobs, 1)
			s.Claims[1].Job, s.Restore.Withheld = "", "lacks the label"
		}, "Stall", "lacks the label"},
		"a Job said that it restored nothing": {func(s *snapshot.Snapshot) { s.Restore.Jobs[1].Report.Restored = "" }, "Stall",
			"Job c-1-restore did not say what it restored"},
		"a Job said nonsense": {func(s *snapshot.Snapshot) { s.Restore.Jobs[1].Report.Restored = "all of them" }, "Stall",
			"Job c-1-restore: "},
		"a backup of another number of shards": {func(s *snapshot.Snapshot) { s.Restore.Jobs[1].Report.Count = 4 }, "Stall", "another backup"},
		"the spec is another by now, and it is told": {func(s *snapshot.Snapshot) {
			s.Restored = &v1alpha1.RestoredData{Slots: make([]string, 3)}
			for i := range s.Claims {
				s.Claims[i].Job = ""
			}
		}, "DeleteRestoreJobs", ""},
		"one StatefulSet is there": {func(s *snapshot.Snapshot) { s.Shards, s.Claims[1].Job = fresh().Shards[:1], "former" }, "", ""},
		"it is told, and a claim is gone": {func(s *snapshot.Snapshot) {
			s.Restored, s.Claims = &v1alpha1.RestoredData{Slots: make([]string, 3)}, nil
		}, "DeleteRestoreJobs", ""},
		"its Jobs go": {func(s *snapshot.Snapshot) {
			s.Restored = &v1alpha1.RestoredData{Slots: make([]string, 3)}
			for shard := range 3 {
				s.Claims[shard].Job = ""
				withJob(s, shard, func(j *snapshot.RestoreJob) { j.Terminating = true })
			}
		}, "Wait", "is being deleted"},
		"its Jobs are gone, and no claim goes with one": {func(s *snapshot.Snapshot) {
			s.Restored, s.Restore.Jobs = &v1alpha1.RestoredData{Slots: make([]string, 3)}, nil
			for shard := range 3 {
				s.Claims[shard].Job = ""
			}
			s.Claims = append(s.Claims, snapshot.Claim{Name: "data-c-0-1", Ordinal: 1, Job: "of-somebody"})
		}, "", ""},
		"a replica's claim goes with something": {func(s *snapshot.Snapshot) {
			s.Claims = append([]snapshot.Claim{{Name: "data-c-0-1", Ordinal: 1, ToRestore: true, Job: "job-9"}}, s.Claims...)
		}, "KeepRestored", ""},
		"a Job said nothing": {func(s *snapshot.Snapshot) { withJob(s, 0, func(j *snapshot.RestoreJob) { j.Report = nil }) }, "Stall",
			"Job c-0-restore did not say what it restored"},
		"a backup was replaced meanwhile": {func(s *snapshot.Snapshot) { s.Restore.Jobs[1].Report.Manifest = strings.Repeat("b", 64) }, "Stall",
			"another backup"},
		"a manifest that has slots twice": {func(s *snapshot.Snapshot) { s.Restore.Jobs[1].Report.Restored = "0-10" }, "Stall", "twice"},
		"a manifest that lacks slots": {func(s *snapshot.Snapshot) { s.Restore.Jobs[2].Report.Restored = "16383" }, "Stall",
			"no shard of slots"},
		"all is there": {func(*snapshot.Snapshot) {}, "KeepRestored", ""},
		"the claims stay, and nobody was told": {func(s *snapshot.Snapshot) {
			for i := range s.Claims {
				s.Claims[i].Job = ""
			}
		}, "KeepRestored", ""},
		"it is told": {func(s *snapshot.Snapshot) {
			for i := range s.Claims {
				s.Claims[i].Job = ""
			}
			s.Restored = &v1alpha1.RestoredData{Slots: make([]string, 3)}
		}, "DeleteRestoreJobs", ""},

		"the cluster is to have fewer shards": {func(s *snapshot.Snapshot) {
			s.Restore.Jobs[3] = snapshot.RestoreJob{Name: "c-3-restore", UID: "job-3", Failed: true}
		}, "DeleteRestoreJobs", ""},
		"a claim of a shard that is not to be": {func(s *snapshot.Snapshot) {
			s.Claims = append(s.Claims, snapshot.Claim{Name: "data-c-3-0", Shard: 3, ToRestore: true, Job: "job-3"})
		}, "Wait", "claim data-c-3-0 goes with a Job that is gone"},
		"it is told, a claim goes with its Job": {func(s *snapshot.Snapshot) {
			s.Restored = &v1alpha1.RestoredData{Slots: make([]string, 3)}
		}, "Wait",
			"claim data-c-0-0 goes with a Job"},
		"it is not asked for any more": {func(*snapshot.Snapshot) {}, "Stall", "spec.bootstrap was removed"},
		"a Secret is gone, and all Jobs have begun": {func(s *snapshot.Snapshot) {
			s.Restore.Withheld = "there is no Secret"
		}, "KeepRestored", ""},
		"a claim of a replica of before": {func(s *snapshot.Snapshot) {
			s.Claims = append(s.Claims, snapshot.Claim{Name: "data-c-0-1", Ordinal: 1})
		}, "Stall", "data-c-0-1"},
		"the status was lost": {func(s *snapshot.Snapshot) { s.Shards = fresh().Shards }, "", ""},
	} {
		s := restoring()
		tt.change(s)
		asked := desired()
		asked.Restore = name != "it is not asked for any more" && name != "the spec is another by now, and it is told"
		in := ShapeOf(asked, s, now).in
		step := planRestore(in)
		if step == nil {
			if tt.step != "" {
				t.Errorf("%s: nothing, want %s", name, tt.step)
			}
			continue
		}
		if step.Name() != tt.step || !strings.Contains(step.Why(), tt.reason) {
			t.Errorf("%s: %s: %s; want %s: %s", name, step.Name(), step.Why(), tt.step, tt.reason)
		}
		if kept, is := step.(KeepRestored); is && (strings.Join(kept.Claims, " ") != "data-c-0-0 data-c-1-0 data-c-2-0" ||
			strings.Join(kept.Restored.Slots, " ") != "0-5460 5461-10922 10923-16383") {
			t.Errorf("%s: %+v", name, kept)
		}
		if jobs, is := step.(DeleteRestoreJobs); is && !slices.IsSorted(jobs.Shards) {
			t.Errorf("%s: %v", name, jobs.Shards)
		}
		if d := decide(asked, s, now); d.Step.Name() != step.Name() || d.Situation != Forming && d.Situation != Failed {
			t.Errorf("%s: what is decided is %s: %s", name, d.Step.Name(), d.Step.Why())
		}
	}
}

// Nothing is restored while its instances may not mount what they need.
func TestRestoringWaitsForSecrets(t *testing.T) {
	s := restoring()
	s.Claims, s.Restore.Jobs = nil, nil
	asked := desired()
	asked.Restore = true
	pending := Pending{Withheld: &snapshot.Withheld{Cause: "CertificateUnavailable", Message: "label it"}}
	if step := ShapeOf(asked, s, now).Next(pending).Step; step.Name() != "Stall" || step.Why() != "label it" {
		t.Errorf("%s: %s", step.Name(), step.Why())
	}
}

// started is a restored cluster whose instances have started, and know nobody yet.
func started() *snapshot.Snapshot {
	s := fresh()
	s.Restored = &v1alpha1.RestoredData{Keys: &v1alpha1.KeyCount{Total: 30}}
	for shard, part := range kslots.All().Split(3) {
		s.Restored.Slots = append(s.Restored.Slots, part.String())
		master := s.Find(shard, 0).Redis
		master.Slots, master.Epoch, master.Keys = part, uint64(1025+shard), 10
	}
	return s
}

// Keys are counted once, of all masters, before any of them meets another.
func TestRestoredKeysAreCounted(t *testing.T) {
	uncounted := func(change func(*snapshot.Snapshot)) Step {
		s := started()
		s.Restored.Keys = nil
		s.Find(2, 0).Redis.KeysWithTTL, s.Find(1, 0).Redis.KeysWithFieldTTL = 4, 1
		change(s)
		return decide(desired(), s, now).Step
	}
	step, ok := uncounted(func(*snapshot.Snapshot) {}).(RecordKeys)
	if want := (v1alpha1.KeyCount{Total: 30, WithTTL: 4, WithFieldTTL: 1}); !ok || step.Keys != want {
		t.Errorf("%+v", step)
	}
	for name, change := range map[string]func(*snapshot.Snapshot){
		"one loads its data":    func(s *snapshot.Snapshot) { s.Find(1, 0).Redis.Loading = true },
		"one does not answer":   func(s *snapshot.Snapshot) { s.Find(1, 0).Redis, s.Find(1, 0).Error = nil, "starts" },
		"one began with errors": func(s *snapshot.Snapshot) { s.Find(1, 0).Redis.LoadErrors = 1 },
		"one lost its slots":    func(s *snapshot.Snapshot) { s.Find(1, 0).Redis.Slots = kslots.Set{} },
		"two have met": func(s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Peers = map[string]snapshot.Peer{nodeID(1, 0): {ID: nodeID(1, 0), Master: true, Connected: true}}
		},
		"it has formed":        func(s *snapshot.Snapshot) { s.Formed = true },
		"nothing was restored": func(s *snapshot.Snapshot) { s.Restored = nil },
		"they are counted":     func(s *snapshot.Snapshot) { s.Restored.Keys = &v1alpha1.KeyCount{} },
		"of an older status":   func(s *snapshot.Snapshot) { s.Restored.Slots = nil },
		"a master has no pod": func(s *snapshot.Snapshot) {
			s.Instances = slices.DeleteFunc(s.Instances, func(i snapshot.Instance) bool { return i.Shard == 1 && i.Ordinal == 0 })
		},
		"another instance has the slots of one": func(s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Slots, s.Find(1, 0).Redis.Slots = s.Find(1, 0).Redis.Slots, kslots.Set{}
		},
	} {
		if step := uncounted(change); Is[RecordKeys](step) {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// Restored masters meet nobody before each owns what it was restored with and carried out all of it; and slots whose data is missing are
// not handed out.
func TestRestoredMastersAreLookedAt(t *testing.T) {
	step, ok := decide(desired(), started(), now).Step.(AssignSlots)
	if !ok || len(step.Assignments) != 3 {
		t.Fatalf("empty instances of a restored cluster have no epochs: %+v", step)
	}
	for _, a := range step.Assignments {
		if !a.Slots.IsEmpty() || a.Epoch == 0 || a.Epoch > 6 || !strings.HasSuffix(a.To.Pod, "-1") {
			t.Errorf("%+v", a)
		}
	}
	s := started()
	for shard := range 3 {
		s.Find(shard, 1).Redis.Epoch = uint64(shard + 1)
	}
	if _, ok := decide(desired(), s, now).Step.(Meet); !ok {
		t.Errorf("a restored cluster does not meet: %+v", decide(desired(), s, now).Step)
	}
	s = started()
	s.Shards, s.Instances = s.Shards[:1], s.Instances[:2]
	asked := desired()
	asked.Topology = v1alpha1.Topology{2, 2, 2, 2, 2, 2}
	if d := decide(asked, s, now); len(d.Topology) != 3 || d.Topology.Instances() != 6 {
		t.Errorf("not all StatefulSets were made, and the spec asks for more by now: the topology is %v", d.Topology)
	}
	s = started()
	s.Find(1, 0).Redis.Loading = true
	if d := decide(desired(), s, now); !Is[Wait](d.Step) {
		t.Errorf("a restored master loads its data, and %s is done", d.Step.Name())
	}
	for reason, change := range map[string]func(*snapshot.Redis){
		"could not carry out 4 commands": func(r *snapshot.Redis) { r.LoadErrors = 4 },
		"and owns 5462-10922:":           func(r *snapshot.Redis) { r.Slots = r.Slots.Subtract(kslots.Of(5461)) },
		"and owns :":                     func(r *snapshot.Redis) { r.Slots, r.Keys, r.Epoch = kslots.Set{}, 0, 0 },
		"and owns 0,5461-10922:":         func(r *snapshot.Redis) { r.Slots = r.Slots.Union(kslots.Of(0)) },
	} {
		s := started()
		change(s.Find(1, 0).Redis)
		d := decide(desired(), s, now)
		stall, ok := d.Step.(Stall)
		twice := strings.Contains(reason, "0,5461") && stall.Cause == "Conflict" // which is told first
		if !ok || !twice && (stall.Cause != "CannotRestore" || !strings.Contains(stall.Reason, reason)) {
			t.Errorf("%s: %s: %s", reason, d.Step.Name(), d.Step.Why())
		}
	}
	s = started()
	s.Find(1, 0).Redis, s.Find(1, 0).Error = nil, "starts"
	if d := decide(desired(), s, now); len(Pods(d.Step)) > 0 {
		t.Errorf("a restored master does not answer, and %s is done", d.Step.Name())
	}
	for _, empty := range []bool{false, true} {
		s = started()
		s.Restored.Slots[1] = "nonsense"
		if empty {
			s.Find(1, 0).Redis.Slots = kslots.Set{}
		}
		if d := decide(desired(), s, now); !strings.Contains(d.Step.Why(), "status.restored.slots of shard 1") {
			t.Errorf("a status that somebody wrote: %s: %s", d.Step.Name(), d.Step.Why())
		}
	}
	s = started()
	another := s.Find(1, 1).Redis // took over, and the first instance has lost its volume
	another.Slots, s.Find(1, 0).Redis.Slots = s.Find(1, 0).Redis.Slots, kslots.Set{}
	if step := planRestored(ShapeOf(desired(), s, now).in); step != nil {
		t.Errorf("a master that was succeeded is waited for: %s", step.Why())
	}
	s = started()
	introduce(s)
	s.Find(1, 0).Redis.Loading = true
	if step := planRestored(ShapeOf(desired(), s, now).in); step != nil {
		t.Errorf("a master that has met others is looked at: %s", step.Why())
	}
	s = started()
	s.Formed = true
	s.Find(1, 0).Redis.LoadErrors = 4
	if d := decide(desired(), s, now); Is[Stall](d.Step) && d.Step.(Stall).Cause == "CannotRestore" {
		t.Errorf("a cluster that has formed is looked at: %s", d.Step.Why())
	}
}

// A cluster that begins with files of servers has a shard for each of them until it has formed, whatever it asks for.
func TestShardsOfFiles(t *testing.T) {
	asked := v1alpha1.Topology{2, 3, 2}
	for files, want := range map[int]v1alpha1.Topology{0: asked, 1: {2}, 3: asked, 4: {2, 3, 2, 1}} {
		s := restoring()
		s.Restore.Jobs, s.Claims = nil, nil
		shape := ShapeOf(Desired{Topology: asked, HasFinalizer: true, Restore: true, FileShards: files}, s, now)
		if !slices.Equal(shape.Topology, want) {
			t.Errorf("%d files: %v, want %v", files, shape.Topology, want)
		}
		step, restores := shape.Next(Pending{}).Step.(RestoreShards)
		if !restores || len(step.Shards) != len(want) {
			t.Errorf("%d files: %+v", files, shape.Next(Pending{}).Step)
		}
		s.Formed = true
		shape = ShapeOf(Desired{Topology: asked, HasFinalizer: true, Restore: true, FileShards: files}, s, now)
		if !slices.Equal(shape.Topology, asked) {
			t.Errorf("%d files, when it has formed: %v", files, shape.Topology)
		}
	}
}
