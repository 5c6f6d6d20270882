// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"regexp"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
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
}

// NewStore uses a bucket, which the caller closes.
func NewStore(bucket *blob.Bucket, keys Keys) *Store { return &Store{bucket: bucket, keys: keys} }

// measured counts and sums what is written to it.
type measured struct {
	to   io.Writer
	sum  hash.Hash
	size int64
}

func newMeasured(to io.Writer) *measured { return &measured{to: to, sum: sha256.New()} }

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.sum.Write(p[:n])
	m.size += int64(n)
	return n, err
}

func (m *measured) hex() string { return hex.EncodeToString(m.sum.Sum(nil)) }

// put writes an object, compressed and perhaps encrypted, as a stream. Unless all of it was written, nothing is there afterwards but
// what was there before.
func (s *Store) put(ctx context.Context, key string, fill func(io.Writer) error) (Object, error) {
	// S3 takes 10,000 parts of an object: 156 GiB of this size.
	const part = 16 << 20
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	out, err := s.bucket.NewWriter(ctx, key, abortUploads(s.bucket, &blob.WriterOptions{
		ContentType: "application/octet-stream", DisableContentTypeDetection: true, BufferSize: part, MaxConcurrency: 1,
	}))
	if err != nil {
		return Object{}, fmt.Errorf("writing %s: %w", key, err)
	}
	stored := newMeasured(out)
	plain, err := s.encode(stored, fill)
	if err != nil {
		abandon() // what was written so far is not kept
		_ = out.Close()
		return Object{}, fmt.Errorf("writing %s: %w", key, err)
	}
	if err := out.Close(); err != nil {
		return Object{}, fmt.Errorf("writing %s: %w", key, err)
	}
	return Object{Size: stored.size, SHA256: stored.hex(), PlainSize: plain.size, PlainSHA256: plain.hex()}, nil
}

// putSegment writes an object that is encoded already, and reads it back.
func (s *Store) putSegment(ctx context.Context, key string, text []byte, o Object) error {
	err := s.bucket.WriteAll(ctx, key, text, abortUploads(s.bucket, &blob.WriterOptions{
		ContentType: "application/octet-stream", DisableContentTypeDetection: true, BufferSize: 16 << 20, MaxConcurrency: 1,
	}))
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return s.readBack(ctx, key, o)
}

// encode writes what fill does, compressed and perhaps encrypted.
func (s *Store) encode(to io.Writer, fill func(io.Writer) error) (*measured, error) {
	e, err := s.newEncoder(to)
	if err == nil {
		err = fill(e.plain)
	}
	if err != nil {
		return nil, err
	}
	return e.plain, e.close()
}

// encoder compresses, and perhaps encrypts, what is written to plain.
type encoder struct {
	plain  *measured
	layers []io.Closer
}

func (s *Store) newEncoder(to io.Writer) (*encoder, error) {
	var layers []io.Closer
	if len(s.keys.Recipients) > 0 {
		encrypted, err := age.Encrypt(to, s.keys.Recipients...)
		if err != nil {
			return nil, err
		}
		layers = append(layers, encrypted)
		to = encrypted
	}
	// One processor and 1 MiB of history: a backup is to be cheap for what runs beside it.
	compressed, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true))
	if err != nil {
		return nil, err
	}
	return &encoder{newMeasured(compressed), append(layers, compressed)}, nil
}

// close writes what is left.
func (e *encoder) close() error {
	for _, layer := range slices.Backward(e.layers) {
		if err := layer.Close(); err != nil {
			return err
		}
	}
	return nil
}

// get writes what an object holds. An error says that it is not what the manifest says, whatever was written by then.
func (s *Store) get(ctx context.Context, key string, o Object, encrypted bool, to io.Writer) error {
	in, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { _ = in.Close() }() // it was read, or there is an error
	stored, plain := newMeasured(io.Discard), newMeasured(to)
	source := &source{in: io.TeeReader(io.LimitReader(in, o.Size+1), stored)}
	err = s.decode(source, encrypted, o.PlainSize, plain)
	if err != nil {
		_, _ = io.Copy(io.Discard, source) // the sum of all of it tells whether it is damaged
	}
	switch {
	case source.err != nil: // also what a store says that finds damage on its own disks
		return fmt.Errorf("reading %s: the store's answer broke off after %d of %d bytes: %w", key, stored.size, o.Size, source.err)
	case err != nil && stored.hex() == o.SHA256:
		return fmt.Errorf("reading %s: %w", key, err)
	case stored.size != o.Size || stored.hex() != o.SHA256:
		return fmt.Errorf("reading %s: %w: %d bytes with the sum %s, and the manifest says %d with %s", key, ErrDamaged,
			stored.size, stored.hex(), o.Size, o.SHA256)
	case plain.size != o.PlainSize || plain.hex() != o.PlainSHA256:
		return fmt.Errorf("reading %s: %w: it holds %d bytes with the sum %s, and the manifest says %d with %s", key, ErrDamaged,
			plain.size, plain.hex(), o.PlainSize, o.PlainSHA256)
	}
	return nil
}

// source keeps the error of a store that fails, which is no damage.
type source struct {
	in  io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// readBack compares what lies in the store with what was written.
func (s *Store) readBack(ctx context.Context, key string, o Object) error {
	in, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return fmt.Errorf("reading %s back: %w", key, err)
	}
	defer func() { _ = in.Close() }() // it was read, or there is an error
	stored := newMeasured(io.Discard)
	if _, err := io.Copy(stored, in); err != nil {
		return fmt.Errorf("reading %s back: %w", key, err)
	}
	if stored.size != o.Size || stored.hex() != o.SHA256 {
		return fmt.Errorf("reading %s back: %w: %d bytes with the sum %s, and %d with %s were written", key, ErrDamaged,
			stored.size, stored.hex(), o.Size, o.SHA256)
	}
	return nil
}

// decode decrypts and decompresses no more than was announced.
func (s *Store) decode(in io.Reader, encrypted bool, most int64, to io.Writer) error {
	raw := in
	if !encrypted && len(s.keys.Identities) > 0 {
		return errors.New("it is not encrypted, and a key was given: whoever can write to the store could have put it there")
	}
	if encrypted {
		if len(s.keys.Identities) == 0 {
			return errors.New("it is encrypted, and no key was given")
		}
		decrypted, err := age.Decrypt(in, s.keys.Identities...)
		if err != nil {
			return err
		}
		in = decrypted
	}
	const mostMemory = 64 << 20
	decompressed, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostMemory))
	if err != nil {
		return err
	}
	defer decompressed.Close()
	if _, err := io.Copy(to, io.LimitReader(decompressed, most+1)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, raw) // the sum is of all of it
	return err
}

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
	err = s.bucket.WriteAll(ctx, key, text, options)
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

// objectForm is what comes after the name of a backup or of an archive: the attempt, or the writer, and the rest.
var objectForm = regexp.MustCompile(`^/([0-9a-f]{16})/(shard-[0-9]{1,3}/(base\.rdb|stream\.aof)|[0-9]{12}\.(rdb|aof))$`)

// only is one attempt.
func only(attempt string) func(string) bool { return func(a string) bool { return a == attempt } }

// deleteObjects removes the objects of some attempts.
func (s *Store) deleteObjects(ctx context.Context, backup string, of func(attempt string) bool) error {
	list := s.bucket.List(&blob.ListOptions{Prefix: backup + "/"})
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
