// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func reading(shards int) Progress {
	p := Progress{Request: "uid", Stage: StageReading, Elapsed: 12.5, Of: 1 << 40}
	for i := range shards {
		p.Shards = append(p.Shards, ShardProgress{Shard: i, Bytes: 1 << 30, Of: 1 << 31})
		p.Bytes += 1 << 30
	}
	return p
}

// What is said is heard, and fits into a message; shards are left out when they do not fit, and nothing else is.
func TestProgress(t *testing.T) {
	for shards, whole := range map[int]bool{0: true, 3: true, 500: false} {
		want := reading(shards)
		text, err := want.Encode()
		if err != nil || len(text) > Most {
			t.Fatalf("%d shards: %d bytes, %v", shards, len(text), err)
		}
		got, err := ParseProgress(text)
		if !whole {
			want.Shards = nil
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%d shards: %v (-said +heard):\n%s", shards, err, diff)
		}
	}
	if text, err := (Progress{Stage: StageMarking, Request: strings.Repeat("<\x00\"&é", 3000)}).Encode(); err != nil || len(text) > Most {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// What no container says is not believed.
func TestWhatIsNoProgress(t *testing.T) {
	for _, text := range []string{
		"", "{}", "null", "x", "[]", `{"stage":"Done"}`, `{"stage":"Reading","bytes":-1}`, `{"stage":"Reading","of":-1}`,
		`{"stage":"Reading","of":9223372036854775807}`, `{"stage":"Reading","elapsed":-1}`, `{"stage":"Reading","elapsed":1e300}`,
		`{"stage":"Reading","shards":[{"shard":-1}]}`, `{"stage":"Reading","shards":[{"shard":16384}]}`,
		`{"stage":"Reading","shards":[{"shard":1,"bytes":-1}]}`, `{"stage":"Reading","shards":[{"shard":1,"of":1e18}]}`,
		`{"stage":"Reading","shards":[{"shard":1},{"shard":1}]}`, strings.Repeat(" ", Most) + `{"stage":"Reading"}`,
	} {
		if p, err := ParseProgress([]byte(text)); err == nil {
			t.Errorf("%.80q is taken for %+v", text, p)
		}
	}
}

// Half of a backup is read, half is read back; the end is told once there is something to tell it from.
func TestShares(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	for what, tt := range map[string]struct {
		progress Progress
		percent  int // -1: not known
		left     time.Duration
	}{
		"nobody knows how much":        {Progress{Stage: StageReading, Bytes: 5}, -1, 0},
		"nothing yet":                  {Progress{Stage: StageReading, Of: 100}, 0, 0},
		"half of it is read":           {Progress{Stage: StageReading, Elapsed: 60, Bytes: 50, Of: 100}, 25, 3 * time.Minute},
		"more than was estimated":      {Progress{Stage: StageReading, Elapsed: 60, Bytes: 500, Of: 100}, 50, time.Minute},
		"all is read":                  {Progress{Stage: StageMarking, Elapsed: 60}, 50, time.Minute},
		"half of it is read back":      {Progress{Stage: StageReadingBack, Elapsed: 60, Bytes: 50, Of: 100}, 75, 20 * time.Second},
		"nothing was stored":           {Progress{Stage: StageReadingBack, Elapsed: 60}, 50, time.Minute},
		"a restore":                    {Progress{Stage: StageRestoring, Elapsed: 60, Bytes: 50, Of: 100}, 50, time.Minute},
		"a restore of nobody knows":    {Progress{Stage: StageRestoring, Elapsed: 60, Bytes: 50}, -1, 0},
		"a restore that takes forever": {Progress{Stage: StageRestoring, Elapsed: 3e7, Bytes: 6, Of: 100}, 6, 365 * 24 * time.Hour},
	} {
		share, known := tt.progress.Share()
		if known != (tt.percent >= 0) || known && int(share*100) != tt.percent {
			t.Errorf("%s: %g, %t", what, share, known)
		}
		want := time.Time{}
		if tt.left > 0 {
			want = at.Add(tt.left)
		}
		if got := (Heard{tt.progress, at}).End(); !got.Equal(want) {
			t.Errorf("%s: it ends at %s, want %s", what, got, want)
		}
	}
}

func FuzzParseProgress(f *testing.F) {
	text, err := reading(3).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProgress(text)
		if err != nil {
			return
		}
		if share, known := p.Share(); known && !(share >= 0 && share <= 1) || strings.ContainsAny(p.Request, "\n\x00\x1b") {
			t.Errorf("%q is taken for %+v", text, p)
		}
		if again, err := p.Encode(); err != nil || len(again) > Most {
			t.Errorf("%q: %d bytes, %v", text, len(again), err)
		}
	})
}
