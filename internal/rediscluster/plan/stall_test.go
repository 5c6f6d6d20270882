// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Of every cause it is said, here and in the documentation, what it holds back.
func TestEveryStallSaysWhatItHoldsBack(t *testing.T) {
	var sources []string
	for _, dir := range []string{".", "..", "../act", "../observe"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "rediscluster-status.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range regexp.MustCompile(`(?:[cC]ause: +|refuse\()(?:"|v1alpha1\.Reason)(\w+)`).FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
	}
	if len(found) == 0 {
		t.Fatal("no stalls found")
	}
	for cause := range found {
		if Reaches[cause] == "" {
			t.Errorf("%s is not in Reaches", cause)
		}
		if !strings.Contains(string(page), "| `"+cause+"` |") {
			t.Errorf("docs/rediscluster-status.md does not say what to do about %s", cause)
		}
	}
	for cause := range Reaches {
		if !found[cause] {
			t.Errorf("%s is in Reaches, and nothing stalls for it", cause)
		}
	}
}

// promotable makes the master of shard 1 be lost for good, most masters being there: its replica is to be elected by force.
func promotable(s *snapshot.Snapshot) {
	comeBackEmpty(s, 1, 0)
	introduce(s)
	s.Find(1, 1).Redis.MasterLinkDownFor = 2 * electionTimeout
}

// withUnownedKeys makes the replica of shard 2 a master that holds keys.
func withUnownedKeys(s *snapshot.Snapshot) {
	r := s.Find(2, 1).Redis
	r.Master, r.MasterID, r.Keys = true, "", 7
	introduce(s)
}

func TestStallHoldsBackItsOwnPart(t *testing.T) {
	const corrupted = `corrupted cluster config file "nodes.conf".`
	refused := Pending{
		Children: []string{"Service c"}, Refused: &Refused{Cause: "NameTaken", Message: "Service c is not ours", Step: ApplyChildren{}}}
	for name, tt := range map[string]struct {
		desired      func(*Desired)
		snapshot     *snapshot.Snapshot
		pending      Pending
		step, stalls string
	}{
		"alone it is what the reconciliation says": {snapshot: changed(formed, withUnownedKeys)(), step: "Stall", stalls: "UnownedKeys"},
		"a wandered replica is led back beside unowned keys": {snapshot: changed(formed, func(s *snapshot.Snapshot) {
			withUnownedKeys(s)
			s.Find(0, 1).Redis.MasterID = nodeID(1, 0)
		})(), step: "Replicate", stalls: "UnownedKeys"},
		"an instance is opened to clients beside unowned keys": {snapshot: changed(formed, func(s *snapshot.Snapshot) {
			withUnownedKeys(s)
			s.Find(0, 1).HasReadinessGate = true
		})(), step: "AddToEndpoints", stalls: "UnownedKeys"},
		"what is told stays told while something earlier is done": {snapshot: changed(formed, func(s *snapshot.Snapshot) {
			withUnownedKeys(s)
			s.Stalled = "UnownedKeys"
			s.Find(0, 0).IP, s.Find(1, 0).IP = "10.8.0.1", "10.8.0.2"
		})(), step: "Meet", stalls: "UnownedKeys"},
		"damaged files that a person must remove do not hold back a promotion": {
			snapshot: changed(func() *snapshot.Snapshot { return damaged(2, 1, corrupted) }, func(s *snapshot.Snapshot) {
				s.Stalled = "DamagedFiles"
				s.Find(1, 0).Stopped, s.Find(1, 0).StoppedAt, s.Find(1, 0).Redis = true, now, nil
				r := s.Find(1, 1).Redis
				r.MasterLinkUp, r.MasterLinkLost = false, true
			})(), step: "Promote"},
		"nor the introduction of others": {
			snapshot: changed(func() *snapshot.Snapshot { return damaged(2, 1, corrupted) }, func(s *snapshot.Snapshot) {
				s.Stalled = "DamagedFiles"
				s.Find(0, 0).IP, s.Find(1, 0).IP = "10.8.0.1", "10.8.0.2"
			})(), step: "Meet", stalls: "DamagedFiles"},
		"nor the renewal of another instance": {snapshot: changed(func() *snapshot.Snapshot {
			return damaged(0, 1, corrupted, snapshot.Claim{Name: "data-c-1-1", UID: "claim"})
		}, func(s *snapshot.Snapshot) {
			in := s.Find(1, 1)
			in.Redis, in.Waiting, in.Failing, in.TerminationMessage = nil, "crashes", true, corrupted
		})(), step: "Recreate"},
		"an invalid spec holds back no promotion": {desired: invalid, snapshot: changed(formed, promotable)(), step: "Promote",
			stalls: "InvalidSpec"},
		"nor forgetting": {desired: invalid, snapshot: changed(formed, func(s *snapshot.Snapshot) { comeBackEmpty(s, 1, 1); introduce(s) })(),
			step: "Forget", stalls: "InvalidSpec"},
		"nor that instances learn of new addresses": {desired: invalid, snapshot: changed(formed, func(s *snapshot.Snapshot) { s.Find(0, 0).IP, s.Find(1, 0).IP = "10.8.0.1", "10.8.0.2" })(), step: "Meet", stalls: "InvalidSpec"},
		"it does all that the spec asks for": {
			desired: invalid, snapshot: formed(), pending: Pending{Children: []string{"StatefulSet c-0"}}, step: "Stall", stalls: "InvalidSpec"},
		"also of a cluster that has not been formed": {desired: invalid, snapshot: fresh(), step: "Stall", stalls: "InvalidSpec"},
		"of a cluster of one shard, too": {desired: invalid, snapshot: changed(ofOneShard, func(s *snapshot.Snapshot) { s.Find(0, 1).Redis.MasterID = "" })(),
			step: "Replicate", stalls: "InvalidSpec"},
		"it is told, and not what could not be done before": {desired: invalid, pending: refused, snapshot: formed(), step: "Stall",
			stalls: "InvalidSpec"},
		"it asks for no instances": {desired: func(d *Desired) { invalid(d); d.Topology = topologyOf(5) }, snapshot: formed(), step: "Stall",
			stalls: "InvalidSpec"},
		"what is told stays told beside a step that comes before it": {desired: func(d *Desired) { d.HasFinalizer = false },
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Auth, s.Stalled = snapshot.Auth{Problem: "no"}, "PasswordUnavailable"
			})(), step: "AddFinalizer", stalls: "PasswordUnavailable"},
		"of two the first is told": {desired: invalid, snapshot: changed(formed, withUnownedKeys)(), step: "Stall", stalls: "InvalidSpec"},
		"what was not told waits for a step that comes before it": {snapshot: changed(formed, func(s *snapshot.Snapshot) {
			withUnownedKeys(s)
			s.Stalled = "NoCandidate"
			s.Find(0, 0).IP, s.Find(1, 0).IP = "10.8.0.1", "10.8.0.2"
		})(), step: "Meet"},
		"what could not be done holds back no promotion": {pending: refused, snapshot: changed(formed, promotable)(), step: "Promote",
			stalls: "NameTaken"},
		"it holds back what the spec asks for": {
			pending: refused, snapshot: formed(), desired: func(d *Desired) { d.Topology = topologyOf(2) }, step: "Stall", stalls: "NameTaken"},
		"a foreign node holds back everything": {snapshot: changed(formed, func(s *snapshot.Snapshot) {
			promotable(s)
			s.Find(0, 0).Redis.Peers["f"] = snapshot.Peer{ID: "f", IP: "10.77.0.1", Connected: true}
		})(), step: "Stall", stalls: "Conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := ShapeOf(d, tt.snapshot, now).Next(tt.pending)
			if got.Step.Name() != tt.step {
				t.Errorf("got %s (%s), want %s", got.Step.Name(), got.Step.Why(), tt.step)
			}
			if shards := len(tt.snapshot.Shards); tt.snapshot.Formed && len(d.Problems) > 0 && len(got.Topology) != shards {
				t.Errorf("the topology is %v, and there are %d shards", got.Topology, shards)
			}
			cause := ""
			if got.Stalled != nil {
				cause = got.Stalled.Cause
			}
			if cause != tt.stalls || cause != "" && got.Situation != Failed {
				t.Errorf("stalls for %q in %s, want %q", cause, got.Situation, tt.stalls)
			}
		})
	}
}

// ofOneShard is a formed cluster of one shard.
func ofOneShard() *snapshot.Snapshot {
	s := formed()
	s.Shards, s.Instances = s.Shards[:1], s.Instances[:2]
	for _, pod := range s.Reachable() {
		pod.Redis.Peers = map[string]snapshot.Peer{}
	}
	s.Find(0, 0).Redis.Slots = slots.All()
	introduce(s)
	return s
}

// One reason is told as it is, and of several the first, with how many there are.
func TestHowManyReasonsThereAre(t *testing.T) {
	for want, problems := range map[string][]string{"a": {"a"}, "a (and 1 more)": {"a", "b"}, "a (and 2 more)": {"a", "b", "c"}} {
		d := desired()
		d.Problems = problems
		if got := decide(d, fresh(), now).Step.Why(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Where no StatefulSet is left, a spec that is not valid is all that says how many shards there are to be.
func TestInvalidSpecOfWhatIsGone(t *testing.T) {
	d, s := desired(), formed()
	invalid(&d)
	s.Shards, s.Instances = nil, nil
	if got := decide(d, s, now); !Is[Stall](got.Step) || len(got.Topology) != len(d.Topology) {
		t.Errorf("%s, topology %v", got.Step.Name(), got.Topology)
	}
}

// While a step cannot be carried out, what is remembered of the settings stays, and none is said to be on its way.
func TestSettingsWhileAStepIsRefused(t *testing.T) {
	d, s := configured(asked("hz", "20"))
	s.Settings = map[string]string{"hz": "10"}
	got := ShapeOf(d, s, now).Next(Pending{Refused: &Refused{Cause: "NameTaken", Message: "no", Step: ApplyChildren{}}})
	if got.Settings["hz"] != "10" || len(got.SettingChanges) > 0 {
		t.Errorf("%v, %v", got.Settings, got.SettingChanges)
	}
}

// invalid asks for what is refused: a topology that would let a shard go.
func invalid(d *Desired) {
	d.Topology, d.Problems = d.Topology[:2], []string{"spec.shards: Invalid value: 2"}
}

// An interrupted Renew goes on: the claim is being deleted, and goes with the pod.
func TestRecreateGoesOnAfterItsClaim(t *testing.T) {
	claim := snapshot.Claim{Name: "data-c-1-1", UID: "claim", Terminating: true}
	got := decide(desired(), damaged(1, 1, "corrupted cluster config file", claim), now)
	if renew, ok := got.Step.(Recreate); !ok || renew.Pod != "c-1-1" || renew.Claim != claim {
		t.Errorf("got %+v, want the claim and the pod deleted", got.Step)
	}
}
