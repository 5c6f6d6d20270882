// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/archive/directory"
)

// aged is a store in a directory whose files are as old as a test says.
type aged struct {
	*Store
	t   *testing.T
	dir string
}

func newAged(t *testing.T) aged {
	t.Helper()
	dir := t.TempDir()
	bucket, err := directory.Open(dir, "")
	check(t, err)
	t.Cleanup(func() { check(t, bucket.Close()) })
	return aged{NewStore(bucket, Keys{}), t, dir}
}

// age makes a file as old as a time.
func (a aged) age(key string, at time.Time) {
	a.t.Helper()
	check(a.t, os.Chtimes(filepath.Join(a.dir, key), at, at))
}

// leave writes a file that no record names.
func (a aged) leave(key string, at time.Time) {
	a.t.Helper()
	check(a.t, os.MkdirAll(filepath.Join(a.dir, filepath.Dir(key)), 0o700))
	check(a.t, os.WriteFile(filepath.Join(a.dir, key), []byte("x"), 0o600))
	a.age(key, at)
}

func (a aged) files() (list []string) {
	a.t.Helper()
	check(a.t, filepath.WalkDir(a.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, strings.TrimPrefix(path, a.dir+"/"))
		}
		return err
	}))
	return list
}

const (
	former  = "0000000000000001"
	waiting = "ffffffffffffffff"
	torn    = "/.0123456789abcdef.tmp"
)

// What processes left that no record names goes once it is older than what is kept, by the store's clock; and nothing that a record names,
// that somebody may still record, or that is somebody else's.
func TestOrphans(t *testing.T) {
	keep := 48 * time.Hour
	for what, now := range map[string]time.Time{"now": time.Now(), "a clock that is a year ahead": time.Now().AddDate(-1, 0, 0),
		"a clock that is a year behind": time.Now().AddDate(1, 0, 0)} {
		a := newAged(t)
		all := archive(t, a.Store, 25)
		last := *all[24]
		for _, key := range a.files() {
			a.age(key, now.Add(-100*keep)) // as a base may be that took long
		}
		a.age(recordKey("a", 25), now)
		before := a.files()
		old, young := now.Add(-keep-time.Hour), now.Add(-keep+time.Hour)
		goes := []string{segmentKey("a", former, 1), baseKey("a", former, 2), "a/" + former + torn, "a/records" + torn, "a" + torn}
		for _, key := range goes {
			a.leave(key, old)
		}
		a.leave(segmentKey("a", former, 3), young)
		a.leave(segmentKey("a", attempt, 999), old) // of a process that has records
		a.leave("a/"+former+"/notes.txt", old)
		a.leave("a/notes.txt", old)
		a.leave("a/"+waiting+"/deep/000000000001.aof", old)
		a.leave("b/"+former+"/000000000001.aof", old)
		a.leave(segmentKey("a", waiting, 1), now.Add(time.Hour)) // of one that followed a moment ago
		want := slices.DeleteFunc(a.files(), func(key string) bool { return slices.Contains(goes, key) })
		check(t, a.deleteOrphans(t.Context(), &last, keep))
		if got := a.files(); !slices.Equal(got, want) || len(before)+7 != len(got) {
			t.Errorf("%s: %d files are left\n%q\nwant\n%q", what, len(got), got, want)
		}
		m, err := a.At(t.Context(), "a", time.Time{}, false)
		check(t, err)
		check(t, a.Verify(t.Context(), m))
	}
}

// One clock that jumps ahead, the store's or that of the process, makes no moment too old.
func TestAClockThatJumpsAheadDeletesNothing(t *testing.T) {
	const keep = time.Hour
	now := time.Unix(1e9, 0)
	for what, at := range map[string][2]time.Time{"the store's": {now.AddDate(1, 0, 0), now}, "one's own": {now, now.AddDate(1, 0, 0)},
		"none": {now, now}} {
		if got := horizon(at[0], at[1], keep); !got.Equal(now.Add(-keep)) {
			t.Errorf("%s: moments are kept since %s", what, got)
		}
	}
}

// A segment that waits for its record, however long, is there when the record is written: neither its own process deletes it, nor one that
// was before it and does not know, nor one that comes after.
func TestSegmentOfASlowWriter(t *testing.T) {
	const keep = time.Hour
	a := newAged(t)
	all := archive(t, a.Store, 5)
	long := time.Now().Add(-1000 * time.Hour)
	takes := func(last *Record, writer string) *Record {
		next := *last
		next.Number, next.Previous, next.Writer, next.Shards = last.Number+1, last.checksum, writer, slices.Clone(last.Shards)
		for i := range next.Shards {
			next.Shards[i].Base, next.Shards[i].Segments = nil, nil
		}
		check(t, a.writeRecord(t.Context(), &next))
		return &next
	}
	slow := takes(all[4], waiting)
	o, err := a.put(t.Context(), segmentKey("a", waiting, 1), text("6 of 0;"))
	check(t, err)
	a.age(segmentKey("a", waiting, 1), long)
	check(t, a.deleteOrphans(t.Context(), slow, keep))   // its own process
	check(t, a.deleteOrphans(t.Context(), all[4], keep)) // the one before

	// Also when that one looked before the other one had written anything.
	a.age(recordKey("a", 5), long.Add(-time.Hour))
	check(t, a.remove(t.Context(), recordKey("a", 6)))
	check(t, a.deleteOrphans(t.Context(), all[4], keep))
	slow.Shards[0].Segments = []Piece{{1, o}}
	check(t, a.writeRecord(t.Context(), slow))

	after := takes(slow, former)
	check(t, a.deleteOrphans(t.Context(), after, keep)) // the one after
	m, err := a.At(t.Context(), "a", time.Time{}, false)
	check(t, err)
	if got := said(t, a.Store, m, 0); !strings.HasSuffix(got, "5 of 0;6 of 0;") {
		t.Errorf("it has %s", got)
	}
}

// What cannot be known of the records keeps everything, and no more goes at a time than is bearable.
func TestOrphansThatStay(t *testing.T) {
	a := newAged(t)
	all := archive(t, a.Store, 9)
	for i, r := range all[4:] { // of three processes
		r.Writer = []string{former, waiting}[i/3]
		check(t, a.remove(t.Context(), recordKey("a", r.Number)))
		r.Previous = all[r.Number-2].checksum
		check(t, a.writeRecord(t.Context(), r))
	}
	kept := map[string]bool{}
	check(t, a.writers(t.Context(), all[0], all[8], kept))
	if len(kept) != 3 || !kept[attempt] || !kept[former] || !kept[waiting] {
		t.Errorf("the writers are %v", kept)
	}
	const dead = "00000000000000aa"
	old := time.Now().Add(-1000 * time.Hour)
	for n := range int64(3) {
		a.leave(segmentKey("a", dead, n+1), old)
	}
	damaged, err := a.bucket.ReadAll(t.Context(), recordKey("a", 5))
	check(t, err)
	check(t, a.bucket.WriteAll(t.Context(), recordKey("a", 5), []byte("{"), nil))
	before := len(a.files())
	if err := a.deleteOrphans(t.Context(), all[8], time.Hour); err == nil || len(a.files()) != before {
		t.Errorf("with a damaged record %d of %d files are left (%v)", len(a.files()), before, err)
	}
	check(t, a.bucket.WriteAll(t.Context(), recordKey("a", 5), damaged, nil))
	left := 2
	check(t, a.deleteOld(t.Context(), "a", "a/"+dead+"/", time.Now(), &left))
	if got := len(a.files()); got != before-2 || left != 0 {
		t.Errorf("%d of %d files are left", got, before)
	}
}
