// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"regexp"
	"strings"

	"filippo.io/age"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/time/rate"

	"middleware.hc.cn/operator/internal/archive/directory"
)

// ErrNotFound is a backup that a store does not have, or has no manifest of.
var ErrNotFound = errors.New("there is no such backup")

// ErrAnother is a backup that was not asked for with the same.
var ErrAnother = errors.New("it was not asked for with this request, and is left alone")

// ErrDamaged is an object that is not what its manifest says.
var ErrDamaged = errors.New("the object is damaged")

// Keys encrypt what is written, if there are recipients, and decrypt what is read.
type Keys struct {
	Recipients []age.Recipient
	Identities []age.Identity
}

// Store is a place in an object store.
type Store struct {
	bucket *blob.Bucket
	keys   Keys
	limit  *rate.Limiter // nil: none
}

// NewStore uses a bucket, which the caller closes.
func NewStore(bucket *blob.Bucket, keys Keys) *Store { return &Store{bucket: bucket, keys: keys} }

// Entry is a backup that is complete, or an archive with a moment that can be restored.
type Entry struct {
	Name    string
	Archive bool
}

// List names the backups that are complete, and the archives.
func (s *Store) List(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		list := s.bucket.List(&blob.ListOptions{Delimiter: "/"})
		for {
			entry, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("listing the store: %w", err))
				return
			}
			found := Entry{Name: strings.TrimSuffix(entry.Key, "/")}
			if !entry.IsDir || ValidateName(found.Name) != nil {
				continue // not ours
			}
			complete, err := s.lists(ctx, manifestKey(found.Name))
			if err == nil && !complete {
				_, err = s.bucket.List(&blob.ListOptions{Prefix: recordsPrefix(found.Name)}).Next(ctx)
				if errors.Is(err, io.EOF) {
					continue
				}
				found.Archive = true
			}
			if !yield(found, err) || err != nil {
				return
			}
		}
	}
}

// Manifest reads that of a backup.
func (s *Store) Manifest(ctx context.Context, backup string) (*Manifest, error) {
	if err := ValidateName(backup); err != nil {
		return nil, err
	}
	in, err := s.bucket.NewReader(ctx, manifestKey(backup), nil)
	if err = s.explain(ctx, manifestKey(backup), err); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", backup, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", manifestKey(backup), err)
	}
	defer func() { _ = in.Close() }() // it was read, or there is an error
	m, err := ReadManifest(in)
	if err == nil && m.Name != backup {
		err = fmt.Errorf("the manifest is that of %s", m.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestKey(backup), err)
	}
	return m, nil
}

// explain says what an error about an object means; fs.ErrNotExist: it is not there. Stores say the same of an object in a bucket that is
// not there; and S3, to somebody who may list a part of the bucket only, that access is denied. The list of objects tells.
func (s *Store) explain(ctx context.Context, key string, err error) error {
	if code := gcerrors.Code(err); code != gcerrors.NotFound && code != gcerrors.PermissionDenied {
		return err
	}
	listed, listing := s.lists(ctx, key)
	switch {
	case listing != nil:
		return listing
	case !listed:
		return fs.ErrNotExist
	}
	return err
}

// lists reports whether an object is in the list of them, which is sorted.
func (s *Store) lists(ctx context.Context, key string) (bool, error) {
	first, err := s.bucket.List(&blob.ListOptions{Prefix: key}).Next(ctx)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil && first.Key == key, err
}

// complete writes the manifest, and with it makes the backup one.
func (s *Store) complete(ctx context.Context, m *Manifest) error {
	if err := m.Validate(); err != nil {
		return err
	}
	return s.writeManifest(ctx, m.Name, m)
}

// writeManifest writes the manifest of a backup that has none, and reads it back.
func (s *Store) writeManifest(ctx context.Context, backup string, m *Manifest) error {
	key := manifestKey(backup)
	text, err := m.encode()
	if err != nil {
		return err
	}
	options := &blob.WriterOptions{ContentType: "application/json", IfNotExist: true}
	err = s.writeAll(ctx, key, text, options)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("backup %s exists: %w", backup, err)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	back, err := s.bucket.ReadAll(ctx, key)
	if err == nil && !bytes.Equal(back, text) {
		err = ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("reading %s back: %w", key, err)
	}
	return nil
}

// Verify reads all objects of a backup and compares them with its manifest.
func (s *Store) Verify(ctx context.Context, m *Manifest) error {
	for i := range m.Shards {
		if err := s.getBase(ctx, m, i, io.Discard); err != nil {
			return err
		}
		if err := s.getStream(ctx, m, i, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) getBase(ctx context.Context, m *Manifest, shard int, to io.Writer) error {
	base, _ := m.parts(shard)
	return s.get(ctx, base.key, base.Object, base.encrypted, to)
}

func (s *Store) getStream(ctx context.Context, m *Manifest, shard int, to io.Writer) error {
	_, stream := m.parts(shard)
	for _, p := range stream {
		if err := s.get(ctx, p.key, p.Object, p.encrypted, to); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a backup or an archive: its manifest or its records first, so that what is left after an interruption is none. It also
// removes what a backup of the name left that was never complete.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	if err := s.remove(ctx, manifestKey(name)); err != nil {
		return err
	}
	if err := s.removeRecords(ctx, name); err != nil {
		return err
	}
	return s.deleteObjects(ctx, name, func(string) bool { return true })
}

// DeleteRequested removes a backup or an archive that was asked for with a request, and what attempts at it left that were never
// complete, as Delete does. All else of the name is left alone, for somebody may be writing it. ErrAnother: that is complete.
func (s *Store) DeleteRequested(ctx context.Context, backup, request string) error {
	if request == "" {
		return errors.New("the request is empty, and nobody's")
	}
	another := false
	m, err := s.Manifest(ctx, backup)
	switch {
	case err == nil && m.Request == request:
		err = s.remove(ctx, manifestKey(backup))
	case err == nil:
		another = true
	case errors.Is(err, ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	r, err := s.newest(ctx, backup, false)
	switch {
	case err == nil && r.Request == request:
		err = s.removeRecords(ctx, backup)
	case err == nil:
		another = true
	case errors.Is(err, ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	prefix := hex.EncodeToString(ofRequest(request))
	err = s.deleteObjects(ctx, backup, func(attempt string) bool { return strings.HasPrefix(attempt, prefix) })
	if err == nil && another {
		return fmt.Errorf("backup %s: %w", backup, ErrAnother)
	}
	return err
}

// objectForm is what comes after the name of a backup or of an archive: the attempt, or the writer, and the rest. In a directory that may
// be a file that was never complete; beside a manifest or a record it is of no attempt.
var objectForm = regexp.MustCompile(`^/(?:([0-9a-f]{16})/(?:shard-[0-9]{1,3}/(?:base\.rdb|stream\.aof|` + unfinished +
	`)|[0-9]{12}\.(?:rdb|aof)|` + unfinished + `)|(?:records/)?` + unfinished + `)$`)

const unfinished = `\.[0-9a-f]{16}\.tmp`

// withUnfinished lists files of a directory that were never complete, too. Other stores have none.
func withUnfinished(as func(any) bool) error {
	if listing := (*directory.Listing)(nil); as(&listing) {
		listing.Unfinished = true
	}
	return nil
}

// only is one attempt.
func only(attempt string) func(string) bool { return func(a string) bool { return a == attempt } }

// deleteObjects removes the objects of some attempts.
func (s *Store) deleteObjects(ctx context.Context, backup string, of func(attempt string) bool) error {
	list := s.bucket.List(&blob.ListOptions{Prefix: backup + "/", BeforeList: withUnfinished})
	for {
		entry, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", backup, err)
		}
		found := objectForm.FindStringSubmatch(strings.TrimPrefix(entry.Key, backup))
		if found == nil || !of(found[1]) {
			continue // not ours
		}
		if err := s.remove(ctx, entry.Key); err != nil {
			return err
		}
	}
}

func (s *Store) remove(ctx context.Context, key string) error {
	err := s.explain(ctx, key, s.bucket.Delete(ctx, key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}
