// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// began is when the archives of these tests begin: a record a second, each third one of one moment for all shards.
var began = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

// archive writes an archive of two shards with so many records. Each record has a segment of either shard, and new bases are in the first
// and in each tenth record. An object says what it is.
func archive(t *testing.T, s *Store, records int64) (all []*Record) {
	t.Helper()
	var last *Record
	var chains [2]ArchivedShard
	for n := int64(1); n <= records; n++ {
		r := &Record{Format: Format, Name: "a", Number: n, First: 1, Oldest: 1, Writer: attempt, Request: "uid", Engine: redis.EngineRedis,
			Version: "8.0.6",
			Moment:  Moment{Marked: began.Add(time.Duration(n) * time.Second), Consistent: n%3 == 0}, Compression: compressionName}
		if len(s.keys.Recipients) > 0 {
			r.Encryption, r.Recipients = encryptionName, s.recipients()
		}
		if last != nil {
			r.Previous = last.checksum
		}
		for i, part := range slots.All().Split(2) {
			number := 2*n + int64(i)
			chains[i].Base = nil
			if n == 1 || n%10 == 0 {
				chains[i] = ArchivedShard{Chain: fmt.Sprintf("%016x", number), Since: n, Slots: part, NodeID: strings.Repeat("a", 40),
					RDB: "REDIS0012", History: strings.Repeat("b", 40), Base: &Piece{Number: number}}
				var err error
				chains[i].Base.Object, err = s.put(t.Context(), baseKey("a", attempt, number), text(fmt.Sprintf("base %d of %d;", n, i)))
				check(t, err)
			}
			o, err := s.put(t.Context(), segmentKey("a", attempt, number), text(fmt.Sprintf("%d of %d;", n, i)))
			check(t, err)
			chains[i].Segments, chains[i].To = []Piece{{number, o}}, n
		}
		r.Shards = slices.Clone(chains[:])
		check(t, s.writeRecord(t.Context(), r))
		all, last = append(all, r), r
	}
	return all
}

// said is what a moment has of a shard.
func said(t *testing.T, s *Store, m *Manifest, shard int) string {
	t.Helper()
	var text bytes.Buffer
	check(t, s.getBase(t.Context(), m, shard, &text))
	check(t, s.getStream(t.Context(), m, shard, &text))
	return text.String()
}

// A moment has the last base before it, and all that followed it until then.
func TestMoments(t *testing.T) {
	s := NewStore(newBucket(t), newKeys(t))
	archive(t, s, 25)
	for name, tt := range map[string]struct {
		at         time.Time
		consistent bool
		want       int
		from       int
	}{
		"the last":                    {want: 25, from: 20},
		"the last of all shards":      {consistent: true, want: 24, from: 20},
		"at a base":                   {at: began.Add(20 * time.Second), want: 20, from: 20},
		"between two":                 {at: began.Add(19*time.Second + 900*time.Millisecond), want: 19, from: 10},
		"between two, of all shards":  {at: began.Add(20*time.Second + time.Millisecond), consistent: true, want: 18, from: 10},
		"the first":                   {at: began.Add(time.Second), want: 1, from: 1},
		"later than all":              {at: began.Add(time.Hour), want: 25, from: 20},
		"earlier than all":            {at: began},
		"earlier than all consistent": {at: began.Add(2 * time.Second), consistent: true},
	} {
		m, err := s.At(t.Context(), "a", tt.at, tt.consistent)
		if tt.want == 0 {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		check(t, err)
		want := fmt.Sprintf("base %d of 1;", tt.from)
		for n := tt.from; n <= tt.want; n++ {
			want += fmt.Sprintf("%d of 1;", n)
		}
		if got := said(t, s, m, 1); got != want || !m.Marked.Equal(began.Add(time.Duration(tt.want)*time.Second)) {
			t.Errorf("%s: at %s there is %s, want %s", name, m.Marked, got, want)
		}
	}
	if _, err := s.At(t.Context(), "b", time.Time{}, false); !errors.Is(err, ErrNotFound) {
		t.Errorf("another archive: %v", err)
	}
}

// A record is untrusted: one that was written over another makes the archive unreadable from there on, and not another one.
func TestRecordsThatLie(t *testing.T) {
	for name, lie := range map[string]func(r *Record){
		"format":                  func(r *Record) { r.Format = 2 },
		"another archive":         func(r *Record) { r.Name = "c" },
		"another number":          func(r *Record) { r.Number++ },
		"no number":               func(r *Record) { r.Number = 0 },
		"nothing before it":       func(r *Record) { r.Previous = "" },
		"another before it":       func(r *Record) { r.Previous = sumOf(nil) },
		"older than the first":    func(r *Record) { r.Oldest = 0 },
		"older than itself":       func(r *Record) { r.Oldest = 100 },
		"first after itself":      func(r *Record) { r.First = 100 },
		"first before the oldest": func(r *Record) { r.Oldest = 2 },
		"writer: a path":          func(r *Record) { r.Writer = "../../../../etc/" },
		"chain: a path":           func(r *Record) { r.Shards[0].Chain = "../../../../etc/" },
		"one chain of two shards": func(r *Record) { r.Shards[0].Chain = r.Shards[1].Chain },
		"another chain":           func(r *Record) { r.Shards[0].Chain = attempt },
		"a base before the first": func(r *Record) { r.Shards[0].Since = 0 },
		"a base after it":         func(r *Record) { r.Shards[0].Since = 50 },
		"a base that is not here": func(r *Record) { r.Shards[0].Since = r.Number },
		"a base of nothing":       func(r *Record) { r.Shards[0].Base = &Piece{} },
		"a base in the middle": func(r *Record) {
			r.Shards[0].Base, r.Shards[0].Since = &Piece{1, r.Shards[0].Segments[0].Object}, r.Number
		},
		"slots twice":           func(r *Record) { r.Shards[1].Slots = r.Shards[0].Slots },
		"a negative segment":    func(r *Record) { r.Shards[0].Segments[0].Number = -1 },
		"a segment's size":      func(r *Record) { r.Shards[0].Segments[0].Size = -1 },
		"another segment":       func(r *Record) { r.Shards[0].Segments[0] = r.Shards[1].Segments[0] },
		"no shards":             func(r *Record) { r.Shards = nil },
		"recipients of nothing": func(r *Record) { r.Recipients = sumOf(nil) },
	} {
		s := NewStore(newBucket(t), Keys{})
		all := archive(t, s, 12)
		r := *all[10]
		r.Shards = slices.Clone(r.Shards)
		for i := range r.Shards {
			r.Shards[i].Segments = slices.Clone(r.Shards[i].Segments)
		}
		lie(&r)
		text, err := r.encode()
		check(t, err)
		check(t, s.bucket.WriteAll(t.Context(), recordKey("a", 11), text, nil))
		if m, err := s.At(t.Context(), "a", time.Time{}, false); err == nil {
			t.Errorf("%s: it is read: %s", name, said(t, s, m, 0))
		}
		if m, err := s.At(t.Context(), "a", all[9].Marked, false); err != nil || said(t, s, m, 0) != "base 10 of 0;10 of 0;" {
			t.Errorf("%s: what came before is not read: %v", name, err)
		}
	}
}

// One process writes an archive: the second finds the record that it wants to write.
func TestOneWriter(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	last := *archive(t, s, 3)[2]
	check(t, s.writeRecord(t.Context(), &last)) // whose answer was lost
	last.Cluster = "another"
	if err := s.writeRecord(t.Context(), &last); !errors.Is(err, ErrReplaced) {
		t.Errorf("it was written over another: %v", err)
	}
}

// What no moment that is kept needs is deleted, and only that; after an interruption as well.
func TestPruning(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	all := archive(t, s, 35)
	written, err := s.writtenAt(t.Context(), recordKey("a", 35))
	check(t, err)
	r := &archiver{Archiving: Archiving{Taking: Taking{Name: "a", Store: s}, Keep: written.Sub(began.Add(25*time.Second + time.Second/2))}}
	last := *all[34]
	r.last.Store(&last)
	check(t, r.pruneOnce(t.Context()))
	if kept := r.kept.Load(); kept.Number != 25 || kept.earliest() != 20 || len(objects(t, s)) != 35*3+2*4 {
		t.Fatalf("from %d on it is kept, with %d, and there are %d objects", kept.Number, kept.earliest(), len(objects(t, s)))
	}
	check(t, s.remove(t.Context(), recordKey("a", 1))) // an interruption
	check(t, s.bucket.WriteAll(t.Context(), recordKey("a", 5), []byte("{"), nil))
	last.First, last.Oldest = 25, 20 // as the next record says
	check(t, r.pruneOnce(t.Context()))
	for _, at := range []int{20, 29, 30, 35} {
		m, err := s.At(t.Context(), "a", all[at-1].Marked, false)
		check(t, err)
		check(t, s.Verify(t.Context(), m))
	}
	for _, key := range objects(t, s) {
		if strings.HasPrefix(key, "a/records/") && key > recordKey("a", 20) {
			t.Errorf("%s is still there", key)
		}
	}
	if _, err := s.bucket.Attributes(t.Context(), segmentKey("a", attempt, 2*19)); err == nil {
		t.Error("what a record had is still there")
	}

	backup(t, s)
	check(t, s.bucket.WriteAll(t.Context(), "a/notes.txt", []byte("somebody's"), nil))
	if err := s.DeleteRequested(t.Context(), "a", "another"); !errors.Is(err, ErrAnother) {
		t.Errorf("another's request: %v", err)
	}
	check(t, s.DeleteRequested(t.Context(), "a", "uid"))
	check(t, s.Delete(t.Context(), "a")) // whose objects were of no request: the writers of this test have none
	left := slices.DeleteFunc(objects(t, s), func(key string) bool { return strings.HasPrefix(key, "b/") })
	if !slices.Equal(left, []string{"a/notes.txt"}) {
		t.Errorf("left is %q", left)
	}
	if _, err := s.Manifest(t.Context(), "b"); err != nil {
		t.Errorf("the backup beside it: %v", err)
	}
	if list, _, err := s.bucket.ListPage(t.Context(), blob.FirstPageToken, 1, nil); err != nil || len(list) == 0 {
		t.Errorf("%v, %v", list, err)
	}
}
