// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// While some take over, writes are paused also where others have before, as far as the relays there run.
func TestWritesArePausedWhereOthersHaveTakenOver(t *testing.T) {
	d, s := importer(), following(slots.All().Split(3)...)
	d.Import.CutOver = true
	next := func() CutOver {
		cut, _ := ShapeOf(d, s, now).Next(Pending{}).Step.(CutOver)
		return cut
	}
	if cut := next(); len(cut.Followers) != 3 || len(cut.Relays) > 0 || !strings.HasSuffix(cut.Reason, "while writes are paused there") {
		t.Errorf("none has taken over: %+v", cut)
	}
	takeOver(s, 0)
	takeOver(s, 1)
	s.Import.Shards[0].RelayIP = ""
	if cut := next(); len(cut.Followers) != 1 || !slices.Equal(cut.Relays, []string{"10.9.9.8"}) {
		t.Errorf("two have, and a relay does not run: %+v", cut)
	}
}

// Without an import, or what its shards need, nobody knows what is missed, and no word gives a source up.
func TestWhatIsNotKnownOfAnImport(t *testing.T) {
	for name, is := range map[string]*snapshot.Import{"nothing is imported": nil, "nothing is known of its shards": {}} {
		s := formed()
		s.Import = is
		if missed := Missed(s); missed != nil {
			t.Errorf("%s: %d bytes are missed", name, *missed)
		}
		if word := ShapeOf(desired(), s, now).in.wordForSource(); word != "" {
			t.Errorf("%s: it is given up by %s", name, word)
		}
	}
}
