// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/archive/report"
)

func TestWatch(t *testing.T) {
	var nobody *Watch
	nobody.reached(cut{}) // nobody asked to be told
	w := &Watch{}
	if r := w.Report(time.Minute); r.Behind != -1 || r.Ready() {
		t.Errorf("before the first moment: %+v", r)
	}
	at := time.Now().UTC().Truncate(time.Second)
	piece := &Piece{Object: Object{Size: 100}}
	first := &Record{Moment: Moment{Marked: at.Add(-time.Hour), Consistent: true},
		Shards: []ArchivedShard{{Base: piece, Segments: []Piece{*piece, *piece}}, {Base: piece}}}
	w.recorded(first, time.Time{})
	if got := w.Report(time.Minute); got.Behind < 3600 {
		t.Errorf("the moment of the process before is an hour old, and it is %g s behind", got.Behind)
	}
	w.waits(report.WaitStore)
	w.recorded(&Record{Moment: Moment{Marked: at}, Shards: []ArchivedShard{{Segments: []Piece{*piece}}, {}}}, time.Time{})
	w.reached(cut{at: time.Now(), paused: time.Millisecond})
	w.follow([]*chain{{flow: newFlow(Taking{}, 0, members{}), waiting: []*segment{{}}}})
	got := w.Report(time.Minute)
	if got.Behind < 0 || !got.Ready() {
		t.Errorf("it is %g s behind", got.Behind)
	}
	got.Behind = 0
	want := report.Archive{First: at.Add(-time.Hour), Last: at, Consistent: at.Add(-time.Hour), Objective: 60, Bases: 2, Segments: 3,
		Bytes: 500, Marks: 1, Waiting: 1, Paused: 0.001}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.recorded(&Record{Moment: Moment{Marked: at}}, at.Add(-time.Minute))
	if r := w.Report(time.Hour); !r.First.Equal(at.Add(-time.Minute)) {
		t.Errorf("what is not kept any more counts as the first moment: %s", r.First)
	}
}

// A file system without room is told from a store that is away, until something was written to it.
func TestFull(t *testing.T) {
	w := &Watch{}
	for _, tt := range []struct {
		what func()
		want report.Wait
	}{
		{func() { w.waits(report.WaitBases) }, report.WaitBases},
		{func() {
			w.failed(fmt.Errorf("writing: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}))
		}, report.WaitRoom},
		{func() { w.waits(report.WaitStore) }, report.WaitRoom},
		{func() { w.failed(errors.New("it is away")) }, report.WaitStore},
		{func() { w.failed(syscall.EDQUOT) }, report.WaitRoom},
		{func() { w.reached(cut{at: time.Now()}) }, ""},
		{func() { w.waits(report.WaitInstances) }, report.WaitInstances},
	} {
		tt.what()
		if r := w.Report(time.Minute); r.Waits != tt.want {
			t.Errorf("it waits for %q, want %q", r.Waits, tt.want)
		}
		r := w.Report(time.Minute)
		r.First, r.Last = time.Now(), time.Now()
		if text, err := r.Encode(); err != nil {
			t.Error(err)
		} else if said, err := report.ParseArchive(text); err != nil || said.Waits != tt.want {
			t.Errorf("read as %+v: %v", said, err)
		}
	}
}

func TestSilence(t *testing.T) {
	w := &Watch{}
	if w.Silent() != 0 {
		t.Error("what has not begun is silent")
	}
	known := &seeds{}
	w.begin(known)
	w.waits(report.WaitInstances)
	if w.Silent() > time.Hour {
		t.Error("nobody has answered since before it began")
	}
	w.began, known.at = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	if got := w.Silent(); got < time.Minute || got > time.Hour/2 {
		t.Errorf("silent for %s", got)
	}
	known.at = time.Time{}
	if got := w.Silent(); got < time.Hour {
		t.Errorf("silent for %s", got)
	}
	w.waits(report.WaitStore)
	if got := w.Silent(); got != 0 {
		t.Errorf("nobody is asked while the store is waited for, and it is silent for %s", got)
	}
}
