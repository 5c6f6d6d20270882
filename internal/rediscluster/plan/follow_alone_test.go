// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// sourceGone makes the server that a shard follows one that does not answer.
func sourceGone(s *snapshot.Snapshot, shard int) {
	s.Import.Shards[shard].Source, s.Import.Shards[shard].Error = nil, "refused"
	first := s.Instances[2*shard].Redis
	first.MasterLinkUp, first.MasterLinkLost, first.MasterLinkDownFor = false, true, goneFor
}

// What instances hold of a server that is gone is taken over when a person says so, with the word that the message names, and not before;
// that word says nothing about another import.
func TestSourceIsGivenUp(t *testing.T) {
	type shot = snapshot.Snapshot
	word := regexp.MustCompile(`set the annotation redis.middleware.hc.cn/give-up-source to ([0-9a-f]{8}[-0-9]*)$`)
	for name, tt := range map[string]struct {
		change       func(*Desired, *shot)
		before, told string // what is done before, and why
		step, reason string // and after it was said
		alone        []string
	}{
		"one has taken over": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			sourceGone(s, 2)
			s.Instances[0].Redis.Keys = 0
		}, "Wait", "(c-0-0 has 0 keys; c-2-0 has 7 keys)", "CutOver", "with what they hold", []string{"c-0-0", "c-2-0"}},
		"none has, and the server is gone before the cut-over": {func(d *Desired, s *shot) {
			d.Import.CutOver = false
			for shard := range 3 {
				sourceGone(s, shard)
			}
		}, "Wait", "(c-0-0 has 7 keys; c-1-0 has 7 keys; c-2-0 has 7 keys)", "CutOver", "", []string{"c-0-0", "c-1-0", "c-2-0"}},
		"the server of one answers": {func(_ *Desired, s *shot) { takeOver(s, 1); sourceGone(s, 2) }, "Wait", "(c-2-0 has 7 keys)",
			"CutOver", "", []string{"c-2-0"}},
		"then that takes over as ever": {func(_ *Desired, s *shot) { takeOver(s, 1); sourceGone(s, 1); takeOver(s, 2); sourceGone(s, 2) },
			"CutOver", "", "CutOver", "while writes are paused", nil},
		"a relay is gone as well": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Import.Shards[0].RelayIP = ""
			s.Import.Withheld = "there is no Secret"
			s.Import.Shards[0].Relay = nil
		}, "Wait", "the relay of c-0-0", "CutOver", "", []string{"c-0-0"}},
		"no relay is made for what is gone": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Import.Shards[0].RelayIP = ""
			s.Import.Shards[0].Service = false
		}, "PrepareImport", "", "CutOver", "", []string{"c-0-0"}},
		"a relay of one that is there is gone": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Import.Shards[2].Source, s.Import.Shards[2].Relay, s.Import.Shards[2].RelayIP = nil, nil, ""
		}, "PrepareImport", "", "PrepareImport", "relays", nil},
		"one took over, and its relay is gone": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Import.Shards[1].Relay = nil
		}, "PrepareImport", "", "CutOver", "", []string{"c-0-0"}},
		"it was slow once": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Instances[0].Redis.MasterLinkDownFor = goneFor - 1
		},
			"Wait", "refused", "Wait", "refused", nil},
		"it is being sent everything": {func(_ *Desired, s *shot) { takeOver(s, 1); sourceGone(s, 0); s.Instances[0].Redis.Syncing = true },
			"Wait", "refused", "Wait", "refused", nil},
		"it is in no file yet": {func(_ *Desired, s *shot) { takeOver(s, 1); sourceGone(s, 0); s.Instances[0].Redis.Unsaved = true },
			"Wait", "refused", "Wait", "refused", nil},
		"the link is long down, and the server answers": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			answers := s.Import.Shards[0].Source
			sourceGone(s, 0)
			s.Import.Shards[0].Source = answers
		}, "Wait", "c-0-0 copies the server's data, or has lost it", "Wait", "has lost it", nil},
		"another copies, whose server is there": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Instances[4].Redis.MasterLinkUp = false
		}, "Wait", "c-2-0 copies", "Wait", "c-2-0 copies", nil},
		"the server is in no cluster": {func(_ *Desired, s *shot) { *s = *following(); sourceGone(s, 0) }, "Wait", "(c-0-0 has 7 keys)",
			"CutOver", "", []string{"c-0-0"}},
		"a link that it never had": {func(_ *Desired, s *shot) { sourceGone(s, 0); s.Instances[0].Redis.MasterLinkLost = false }, "Wait",
			"(c-0-0 has 7 keys, perhaps in the middle of a copy)", "CutOver", "", []string{"c-0-0"}},
		"one loads": {func(_ *Desired, s *shot) { sourceGone(s, 1); s.Instances[2].Redis.Loading = true }, "Wait", "c-1-0 loads", "Wait", "",
			nil},
		"nothing is held": {func(_ *Desired, s *shot) { sourceGone(s, 0); s.Instances[0].Redis.Keys = 0 }, "Wait", "refused", "CutOver", "",
			[]string{"c-0-0"}},
		"what it could not carry out is missing": {func(_ *Desired, s *shot) { sourceGone(s, 1); s.Instances[2].Redis.LoadErrors = 1 },
			"Stall", "could not carry out 1", "Stall", "", nil},
		"slots have moved at a server that was taken over": {func(_ *Desired, s *shot) {
			takeOver(s, 1)
			sourceGone(s, 0)
			s.Import.Shards[1].Source.Slots = slots.Of(9)
		}, "Stall", "move slots back", "CutOver", "", []string{"c-0-0"}},
		"a clone of two moments": {func(d *Desired, s *shot) { d.Import.Clone = true; takeOver(s, 1) }, "Stall", "if two moments will do",
			"CutOver", "1 have taken over before", nil},
		"a clone whose source is gone": {func(d *Desired, s *shot) {
			d.Import.Clone = true
			takeOver(s, 1)
			sourceGone(s, 0)
			sourceGone(s, 2)
		}, "Stall", "of two moments", "CutOver", "", []string{"c-0-0", "c-2-0"}},
		"a clone is over": {func(d *Desired, s *shot) {
			d.Import.Clone = true
			for shard := range 3 {
				takeOver(s, shard)
			}
		}, "RecordCutOver", "as they were at one moment", "RecordCutOver", "gives up", nil},
	} {
		d, s := importer(), following(slots.All().Split(3)...)
		d.Import.CutOver = true
		tt.change(&d, s)
		step := ShapeOf(d, s, now).Next(Pending{}).Step
		if step.Name() != tt.before || !strings.Contains(step.Why(), tt.told) {
			t.Errorf("%s: before: %s: %s", name, step.Name(), step.Why())
		}
		d.GiveUpSource = ShapeOf(d, s, now).in.wordForSource(0, 1, 2)
		if said := word.FindStringSubmatch(step.Why()); said != nil && tt.before == "Wait" {
			d.GiveUpSource = said[1]
		}
		step = ShapeOf(d, s, now).Next(Pending{}).Step
		if step.Name() != tt.step || !strings.Contains(step.Why(), tt.reason) {
			t.Errorf("%s: %s: %s", name, step.Name(), step.Why())
		}
		cut, is := step.(CutOver)
		if is && cut.Alone != (len(tt.alone) > 0) || cut.Alone && strings.Join(Pods(cut), " ") != strings.Join(tt.alone, " ") {
			t.Errorf("%s: %+v", name, cut)
		}
		for i := range s.Instances {
			s.Instances[i].Redis.NodeID = "f" + s.Instances[i].Redis.NodeID[1:] // those of another import
		}
		if step := ShapeOf(d, s.Indexed(), now).Next(Pending{}).Step; step.Name() != tt.before {
			t.Errorf("%s: another import: %s: %s", name, step.Name(), step.Why())
		}
	}
}

// A word gives up what it was read for: not what is gone later, or of a clone only that it may be of two moments.
func TestWhatIsGivenUp(t *testing.T) {
	d, s := importer(), following(slots.All().Split(3)...)
	next := func() Step { return ShapeOf(d, s, now).Next(Pending{}).Step }
	sourceGone(s, 2)
	word := ShapeOf(d, s, now).in.wordForSource(2)
	if step := next(); step.Name() != "Wait" || !strings.HasSuffix(step.Why(), "to "+word) {
		t.Errorf("the source of shard 2 is gone: %s: %s", step.Name(), step.Why())
	}
	d.GiveUpSource = word
	sourceGone(s, 0)
	if cut, is := next().(CutOver); !is || !cut.Alone || strings.Join(Pods(cut), " ") != "c-2-0" || cut.Followers[0].Relay != "10.9.9.7" {
		t.Errorf("one that is gone later does not keep it back: %+v", cut)
	}
	takeOver(s, 2)
	if step := next(); step.Name() != "Wait" || !strings.Contains(step.Why(), "(c-0-0 has 7 keys): set") {
		t.Errorf("nobody gave shard 0 up: %s: %s", step.Name(), step.Why())
	}

	d.Import.Clone, d.GiveUpSource = true, ""
	moments := next()
	d.GiveUpSource = ShapeOf(d, s, now).in.wordForSource()
	if moments.Name() != "Stall" || !strings.HasSuffix(moments.Why(), "to "+d.GiveUpSource) {
		t.Errorf("a clone: %s: %s", moments.Name(), moments.Why())
	}
	if step := next(); step.Name() != "Wait" || !strings.HasSuffix(step.Why(), "to "+d.GiveUpSource+"-0") {
		t.Errorf("a clone may be of two moments: %s: %s", step.Name(), step.Why())
	}
}

// As long as a first instance does not answer, nobody can have given up what all hold: every relay that is missing is made.
func TestNothingIsGivenUpOfWhoDoesNotAnswer(t *testing.T) {
	for name, change := range map[string]func(*snapshot.Snapshot){
		"its Redis does not answer": func(s *snapshot.Snapshot) { s.Instances[2].Redis = nil },
		"it has no pod":             func(s *snapshot.Snapshot) { s.Instances = slices.Delete(s.Instances, 2, 3) },
	} {
		d, s := importer(), following(slots.All().Split(3)...)
		sourceGone(s, 0)
		s.Import.Shards[0].Relay = nil
		d.GiveUpSource = ShapeOf(d, s, now).in.wordForSource(0)
		if step := ShapeOf(d, s, now).Next(Pending{}).Step; !Is[CutOver](step) {
			t.Errorf("%s: before: %s: %s", name, step.Name(), step.Why())
		}
		change(s)
		step := ShapeOf(d, s, now).Next(Pending{}).Step
		if prepare, is := step.(PrepareImport); !is || len(prepare.Relays) != 1 || prepare.Relays[0].Shard != 0 {
			t.Errorf("%s: %s: %s", name, step.Name(), step.Why())
		}
	}
}

// Whatever is named when an import has begun with something else, nothing goes on: it would be of two servers.
func TestSourceIsSwitched(t *testing.T) {
	for name, s := range map[string]*snapshot.Snapshot{
		"while it is prepared": prepared(slots.All()), "while it follows": following(slots.All().Split(3)...), "a relay is missing": following(),
		"one has taken over": following(slots.All().Split(3)...),
	} {
		switch name {
		case "a relay is missing":
			s.Import.Shards[0].Relay = nil
		case "one has taken over":
			takeOver(s, 1)
		}
		d := importer()
		d.Import.CutOver, d.Import.Source = true, "import.address b:1"
		s.Import.Other = "spec.bootstrap.import.address a:1"
		step, stalls := ShapeOf(d, s, now).Next(Pending{}).Step.(Stall)
		if !stalls || step.Cause != "CannotImport" ||
			!strings.Contains(step.Reason, "began with spec.bootstrap.import.address a:1, and the spec says spec.bootstrap.import.address b:1 now: remove spec.bootstrap, then set it to what it was") {
			t.Errorf("%s: %+v", name, step)
		}
	}
	over := tookOver()
	over.Import.CutOver, over.Import.CutOverAt = true, now.Add(-importer().Import.Pause*2)
	over.Import.Other = "spec.bootstrap.import.address a:1"
	if step := ShapeOf(importer(), over, now).Next(Pending{}).Step; step.Name() != "EndImport" {
		t.Errorf("after the cut-over: %s: %s", step.Name(), step.Why())
	}
}
