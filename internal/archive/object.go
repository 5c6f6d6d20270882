// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"
)

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
	out, err := s.newWriter(ctx, key, abortUploads(s.bucket, &blob.WriterOptions{
		ContentType: "application/octet-stream", DisableContentTypeDetection: true, BufferSize: part, MaxConcurrency: 1,
	}))
	if err != nil {
		return Object{}, fmt.Errorf("writing %s: %w", key, err)
	}
	stored := newMeasured(s.slowly(ctx, out))
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
	if err := s.wait(ctx, len(text)); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	err := s.writeAll(ctx, key, text, abortUploads(s.bucket, &blob.WriterOptions{
		ContentType: "application/octet-stream", DisableContentTypeDetection: true, BufferSize: 16 << 20, MaxConcurrency: 1,
	}))
	if err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return s.readBack(ctx, key, o, io.Discard)
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
	source := &source{in: io.TeeReader(io.LimitReader(s.slowlyFrom(ctx, in), o.Size+1), stored)}
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

// readBack compares what lies in the store with what was written, and shows it to somebody.
func (s *Store) readBack(ctx context.Context, key string, o Object, to io.Writer) error {
	in, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return fmt.Errorf("reading %s back: %w", key, err)
	}
	defer func() { _ = in.Close() }() // it was read, or there is an error
	stored := newMeasured(to)
	if _, err := io.Copy(stored, io.LimitReader(s.slowlyFrom(ctx, in), o.Size+1)); err != nil {
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
