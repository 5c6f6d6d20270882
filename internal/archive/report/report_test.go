// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func complete(shards int) Report {
	r := Report{Engine: "valkey", Version: "9.1.2", Marked: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), Consistent: true, Paused: 0.001,
		Skew: 0.0005, Manifest: strings.Repeat("0a", 32), Bytes: 1 << 40, Stored: 1 << 39, Count: shards,
		Counts: &Counts{Keys: 1 << 50, WithTTL: 1 << 49, WithFieldTTL: 1 << 48}}
	for i := range shards {
		r.Shards = append(r.Shards, Shard{Slots: fmt.Sprintf("%d-%d", i*20, i*20+19), Bytes: 1 << 30, Stored: 1 << 29})
	}
	return r
}

// What is encoded fits into a termination message, and is read again; shards are left out when they do not fit, and nothing else is.
func TestReports(t *testing.T) {
	for what, tt := range map[string]struct {
		report Report
		whole  bool
	}{
		"three shards":       {complete(3), true},
		"500 shards":         {complete(500), false},
		"slots in pieces":    {scattered(), false},
		"an error":           {Report{Error: "writing monday/manifest.json: access denied"}, true},
		"an error, for long": {Report{Error: strings.Repeat("<\x00\"&é", 3000)}, false},
	} {
		t.Run(what, func(t *testing.T) {
			text, err := tt.report.Encode()
			if err != nil || len(text) > Most {
				t.Fatalf("%d bytes (%v)", len(text), err)
			}
			got, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if tt.whole != cmp.Equal(tt.report, got) {
				t.Errorf("(-said +heard):\n%s", cmp.Diff(tt.report, got))
			}
			if (got.Error == "") != (tt.report.Error == "") || got.Count != tt.report.Count || got.Manifest != tt.report.Manifest {
				t.Errorf("heard %+v", got)
			}
		})
	}
}

// scattered is a backup of one shard whose slots are no ranges.
func scattered() Report {
	r := complete(1)
	r.Shards[0].Slots = pieces()
	return r
}

func pieces() string {
	var list []string
	for slot := 0; slot < 16384; slot += 2 {
		list = append(list, fmt.Sprint(slot))
	}
	return strings.Join(list, ",")
}

// What no backup says is refused.
func TestWhatIsNoReport(t *testing.T) {
	for what, change := range map[string]func(*Report){
		"nothing":               func(r *Report) { *r = Report{} },
		"no checksum":           func(r *Report) { r.Manifest = "" },
		"another checksum":      func(r *Report) { r.Manifest = strings.Repeat("A", 64) },
		"another engine":        func(r *Report) { r.Engine = "memcached" },
		"no version":            func(r *Report) { r.Version = "" },
		"a version of lines":    func(r *Report) { r.Version = "8.0\n6" },
		"no time":               func(r *Report) { r.Marked = time.Time{} },
		"fewer bytes than none": func(r *Report) { r.Bytes = -1 },
		"a delay of the past":   func(r *Report) { r.Paused = -1 },
		"no shard":              func(r *Report) { r.Count, r.Shards = 0, nil },
		"more than there are":   func(r *Report) { r.Count = 16385; r.Shards = nil },
		"shards are missing":    func(r *Report) { r.Count = 4 },
		"slots that are none":   func(r *Report) { r.Shards[0].Slots = "16384" },
		"fewer keys than none":  func(r *Report) { r.Counts.Keys = -1 },
		"more than all expire":  func(r *Report) { r.Counts.WithTTL = r.Counts.Keys + 1 },
		"more fields than keys": func(r *Report) { r.Counts.WithFieldTTL = r.Counts.Keys + 1 },
		"keys beyond belief":    func(r *Report) { r.Counts.Keys = MostKeys + 1 },
		"a shard of less":       func(r *Report) { r.Shards[0].Stored = -1 },
	} {
		r := complete(3)
		change(&r)
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(string(text)); err == nil {
			t.Errorf("%s: it was taken for %+v", what, got)
		}
	}
	for _, text := range []string{"", "{", "[]", "null", strings.Repeat(" ", Most) + "{}", `{"bytes":1e400}`} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%.20q was taken for %+v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range []Report{complete(3), {Error: "no"}} {
		text, err := r.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil || len(again) > Most {
			t.Fatalf("what was heard cannot be said: %d bytes (%v)", len(again), err)
		}
	})
}
