// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// sourceGone makes the server that a shard follows one that does not answer.
func sourceGone(s *snapshot.Snapshot, shard int) {
	s.Import.Shards[shard].Source, s.Import.Shards[shard].Error = nil, "refused"
	s.Instances[2*shard].Redis.MasterLinkUp = false
}

// What instances hold of a server that is gone is taken over when a person says so, with the word that the message names, and not before;
// that word says nothing about another import.
func TestSourceIsGivenUp(t *testing.T) {
	type shot = snapshot.Snapshot
	word := regexp.MustCompile(`set the annotation redis.middleware.hc.cn/give-up-source to ([0-9a-f]{8})$`)
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
		}, "Wait", "(c-0-0 has 0 keys)", "CutOver", "with what they hold", []string{"c-0-0", "c-2-0"}},
		"none has, and the server is gone before the cut-over": {func(d *Desired, s *shot) {
			d.Import.CutOver = false
			for shard := range 3 {
				sourceGone(s, shard)
			}
		}, "Wait", "(c-0-0 has 7 keys)", "CutOver", "", []string{"c-0-0", "c-1-0", "c-2-0"}},
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
		d.GiveUpSource = ShapeOf(d, s, now).in.wordForSource()
		if said := word.FindStringSubmatch(step.Why()); said != nil && said[1] != d.GiveUpSource {
			t.Errorf("%s: it names %q, and means %q", name, said[1], d.GiveUpSource)
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
			!strings.Contains(step.Reason, "began with spec.bootstrap.import.address a:1, and the spec says spec.bootstrap.import.address b:1 now: put that back") {
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
