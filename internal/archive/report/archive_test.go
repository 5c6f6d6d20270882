// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArchives(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	whole := Archive{Request: "uid", First: at, Last: at.Add(time.Hour), Consistent: at, Behind: 2.5, Objective: 60, Bases: 3, Segments: 40,
		Bytes: 1 << 30, Marks: 5, Waiting: 1, Paused: 0.02, Waits: WaitStore}
	for _, want := range []Archive{whole, {Behind: -1, Objective: 60, Waits: WaitInstances}} {
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseArchive(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	long := Archive{Objective: 1, Request: strings.Repeat("<\x00\"&é", 3000)}
	if text, err := long.Encode(); err != nil || len(text) > Most {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if whole.Ready() == (Archive{Behind: 61, Objective: 60}).Ready() || (Archive{Behind: -1, Objective: 60}).Ready() {
		t.Error("ready is not what the objective says")
	}
}

// What no archive says is not believed.
func TestWhatIsNoArchive(t *testing.T) {
	for _, text := range []string{
		"", "{}", "null", "x", `[]`, `{"objective":60,"behind":-2}`, `{"objective":60,"behind":1e300}`, `{"objective":-1}`,
		`{"objective":60,"bytes":-1}`, `{"objective":60,"waits":"kubectl delete"}`, `{"objective":60,"bases":9223372036854775807}`,
		`{"objective":60,"first":"2026-11-24T03:00:00Z"}`,
		`{"objective":60,"first":"2026-11-24T03:00:00Z","last":"2026-11-24T02:00:00Z"}`,
		`{"objective":60,"first":"9999-11-24T03:00:00Z","last":"9999-11-24T04:00:00Z"}`,
		strings.Repeat(" ", Most) + `{"objective":60}`,
	} {
		if a, err := ParseArchive([]byte(text)); err == nil {
			t.Errorf("%.80q is taken for %+v", text, a)
		}
	}
}

func FuzzParseArchive(f *testing.F) {
	f.Add([]byte(`{"objective":60,"behind":1,"first":"2026-11-24T03:00:00Z","last":"2026-11-24T04:00:00Z","waits":"store"}`))
	f.Add([]byte(`{"objective":1e-9,"paused":1e9}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseArchive(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(a.Request, "\n\x00\x1b") || len(a.Waits) > len(WaitInstances) || a.Last.Before(a.First) || a.Bytes < 0 {
			t.Errorf("%q is taken for %+v", text, a)
		}
		if again, err := a.Encode(); err != nil || len(again) > Most {
			t.Errorf("%q: %d bytes, %v", text, len(again), err)
		}
	})
}
