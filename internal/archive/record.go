// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// ErrReplaced is an archive that another process writes by now.
var ErrReplaced = errors.New("another process writes this archive by now")

// Record describes one moment of an archive: for each shard what was added since the record before. Each is written only if there is none
// of its number, so that an archive has one writer. What is read is untrusted until Validate has passed.
type Record struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// Number counts from 1. Previous is the SHA-256 of the record before, in hex digits; the first one has none.
	Number   int64  `json:"number"`
	Previous string `json:"previous,omitempty"`
	// First is the number of the first record that can be restored, Oldest that of the first one which that takes.
	First  int64 `json:"first"`
	Oldest int64 `json:"oldest"`
	// Writer is where the objects of this record lie, 16 hex digits: no two processes share one.
	Writer string `json:"writer"`
	// Request, Cluster, Engine, Version, Compression and Encryption are those of a Manifest.
	Request string       `json:"request,omitempty"`
	Cluster string       `json:"cluster,omitempty"`
	Engine  redis.Engine `json:"engine"`
	Version string       `json:"version"`
	Moment
	Compression string `json:"compression"`
	Encryption  string `json:"encryption,omitempty"`
	// Recipients is the SHA-256 of those that this record's objects are encrypted for, in hex digits; none: they are not.
	Recipients string          `json:"recipients,omitempty"`
	Shards     []ArchivedShard `json:"shards"`

	checksum string
}

// ArchivedShard is what a record has of one master.
type ArchivedShard struct {
	// Chain is what the base and the segments that follow it have in common, 16 hex digits.
	Chain string `json:"chain"`
	// Since is the number of the record that has the chain's base, Begun when that was asked for, and Parts how many objects there are of
	// the chain by now.
	Since int64     `json:"since"`
	Begun time.Time `json:"begun"`
	Parts int64     `json:"parts"`
	// Slots, NodeID, RDB, History and To are those of a Shard.
	Slots   slots.Set `json:"slots"`
	NodeID  string    `json:"nodeID"`
	RDB     string    `json:"rdb"`
	History string    `json:"history"`
	To      int64     `json:"to"`
	// Counts are its keys at To; nil: they were not counted.
	Counts *report.Counts `json:"counts,omitempty"`
	Base   *Piece         `json:"base,omitempty"`
	// Segments are the commands that followed, in their order.
	Segments []Piece `json:"segments,omitempty"`
}

// Piece is an object that a writer wrote, by its number.
type Piece struct {
	Number int64 `json:"number"`
	Object
}

// mostRecords is what numbers of records are below: at one a second it takes thirty thousand years.
const mostRecords = 1_000_000_000_000

// An object's place follows from the archive's name, the writer and a number: no record can name another.
func baseKey(archive, writer string, number int64) string {
	return fmt.Sprintf("%s/%s/%012d.rdb", archive, writer, number)
}

func segmentKey(archive, writer string, number int64) string {
	return fmt.Sprintf("%s/%s/%012d.aof", archive, writer, number)
}

func recordsPrefix(archive string) string { return archive + "/records/" }

// recordKey is such that the newest record comes first in a list.
func recordKey(archive string, number int64) string {
	return fmt.Sprintf("%s%012d.json", recordsPrefix(archive), mostRecords-number)
}

// nothing is an object without a byte.
var nothing = Object{SHA256: sumOf(nil), PlainSHA256: sumOf(nil)}

// manifest is what a record has in common with the manifest of a backup.
func (r *Record) manifest() *Manifest {
	m := &Manifest{Format: r.Format, Name: r.Name, Attempt: r.Writer, Request: r.Request, Cluster: r.Cluster, Engine: r.Engine,
		Version: r.Version, Started: r.Marked, Moment: r.Moment, Compression: r.Compression, Encryption: r.Encryption,
		Shards: make([]Shard, len(r.Shards)), Checksum: r.checksum}
	for i, s := range r.Shards {
		m.Shards[i] = Shard{Slots: s.Slots, NodeID: s.NodeID, RDB: s.RDB, History: s.History, To: s.To, Base: nothing, Stream: nothing,
			Counts: s.Counts}
		if s.Base != nil {
			m.Shards[i].Base = s.Base.Object
		}
	}
	return m
}

// Validate says why a record describes nothing that can be restored.
func (r *Record) Validate() error {
	errs := []error{r.manifest().Validate()}
	chains := map[string]bool{}
	bad := func(format string, arguments ...any) { errs = append(errs, fmt.Errorf(format, arguments...)) }
	if r.Number < 1 || r.Number >= mostRecords || r.Oldest < 1 || r.Oldest > r.First || r.First > r.Number {
		bad("number: %d, with %d the first and %d the oldest, is none", r.Number, r.First, r.Oldest)
	}
	if (r.Number > 1) != sumForm.MatchString(r.Previous) {
		bad("previous: %.70q", r.Previous)
	}
	if (r.Encryption != "") != sumForm.MatchString(r.Recipients) {
		bad("recipients: %.70q", r.Recipients)
	}
	for i, s := range r.Shards {
		if !attemptForm.MatchString(s.Chain) || chains[s.Chain] {
			bad("shards[%d].chain: %.40q is none, or another shard's", i, s.Chain)
		}
		chains[s.Chain] = true
		if s.Since < r.Oldest || s.Since > r.Number || (s.Base != nil) != (s.Since == r.Number) {
			bad("shards[%d].since: the base is in record %d, and this is %d", i, s.Since, r.Number)
		}
		if s.Base != nil && s.Base.Number < 1 {
			bad("shards[%d].base: number %d", i, s.Base.Number)
		}
		for j, p := range s.Segments {
			if p.Number < 1 || !p.valid() {
				bad("shards[%d].segments[%d]: number %d, %d and %d bytes", i, j, p.Number, p.Size, p.PlainSize)
			}
		}
	}
	return errors.Join(errs...)
}

// earliest is the number of the first record that it takes to restore this one.
func (r *Record) earliest() int64 {
	n := r.Number
	for _, s := range r.Shards {
		n = min(n, s.Since)
	}
	return n
}

// recipients is the SHA-256 of whom a store encrypts for, whatever their order; empty: nobody.
func (s *Store) recipients() string {
	var all []string
	for _, recipient := range s.keys.Recipients {
		all = append(all, fmt.Sprint(recipient))
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return sumOf([]byte(strings.Join(all, "\n")))
}

func (r *Record) encode() ([]byte, error) {
	text, err := json.Marshal(r)
	return append(text, '\n'), err
}

// record reads one. ErrNotFound: it is not there.
func (s *Store) record(ctx context.Context, archive string, number int64) (*Record, error) {
	key := recordKey(archive, number)
	in, err := s.bucket.NewReader(ctx, key, nil)
	if err = s.explain(ctx, key, err); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { _ = in.Close() }() // it was read, or there is an error
	var r Record
	if r.checksum, err = read(in, &r); err == nil {
		err = r.Validate()
	}
	if err == nil && (r.Name != archive || r.Number != number) {
		err = fmt.Errorf("it is record %d of %s", r.Number, r.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: the record %w", key, ErrDamaged, err)
	}
	return &r, nil
}

// newest reads the newest record of an archive; readable: the newest one that can be read. ErrNotFound: it has none.
func (s *Store) newest(ctx context.Context, archive string, readable bool) (*Record, error) {
	if err := ValidateName(archive); err != nil {
		return nil, err
	}
	prefix := recordsPrefix(archive)
	for list := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		entry, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", archive, ErrNotFound)
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, err)
		}
		digits, isRecord := strings.CutSuffix(strings.TrimPrefix(entry.Key, prefix), ".json")
		n, err := strconv.ParseInt(digits, 10, 64)
		if !isRecord || err != nil || entry.Key != recordKey(archive, mostRecords-n) {
			continue // not ours
		}
		r, err := s.record(ctx, archive, mostRecords-n)
		if errors.Is(err, ErrDamaged) && readable {
			continue
		}
		return r, err
	}
}

// writeRecord writes a record that is not there, and reads it back. ErrReplaced: another one is.
func (s *Store) writeRecord(ctx context.Context, r *Record) error {
	if err := r.Validate(); err != nil {
		return err
	}
	text, err := r.encode()
	if err != nil {
		return err
	}
	if _, err := read(bytes.NewReader(text), &Record{}); err != nil {
		return fmt.Errorf("%w: the record %w", errTooLarge, err)
	}
	key := recordKey(r.Name, r.Number)
	err = s.writeAll(ctx, key, text, &blob.WriterOptions{ContentType: "application/json", IfNotExist: true})
	exists := gcerrors.Code(err) == gcerrors.FailedPrecondition
	if err != nil && !exists {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	back, err := s.bucket.ReadAll(ctx, key)
	if err == nil && !bytes.Equal(back, text) {
		err = ErrDamaged
		if exists {
			err = ErrReplaced
		}
	}
	if err != nil {
		return fmt.Errorf("reading %s back: %w", key, err)
	}
	r.checksum = sumOf(text)
	return nil
}
