// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"cmp"
	"context"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
)

// newWriter is a writer of an object. What its context gives up before it is closed is not kept.
func (s *Store) newWriter(ctx context.Context, key string, o *blob.WriterOptions) (io.WriteCloser, error) {
	var azure *container.Client
	if !s.bucket.As(&azure) {
		return s.bucket.NewWriter(ctx, key, o)
	}
	in, out := io.Pipe()
	w := &uploading{PipeWriter: out, ctx: ctx, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.err = s.bucket.Upload(ctx, key, in, o)
		_ = in.CloseWithError(cmp.Or(w.err, io.ErrClosedPipe)) // it has no error
	}()
	return w, nil
}

// uploading is an object that is read by an upload. The driver's own writer of Azure's panics when an upload fails, be it because the
// object exists; the upload of a reader does not.
type uploading struct {
	*io.PipeWriter
	ctx   context.Context // of the one call that writes the object
	ended chan struct{}
	err   error
}

func (w *uploading) Close() error {
	_ = w.CloseWithError(w.ctx.Err()) // it has no error
	<-w.ended
	return w.err
}

// writeAll writes an object that is there as a whole, or nothing.
func (s *Store) writeAll(ctx context.Context, key string, text []byte, o *blob.WriterOptions) error {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	out, err := s.newWriter(ctx, key, o)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, bytes.NewReader(text)); err != nil {
		abandon() // what was written so far is not kept
		_ = out.Close()
		return err
	}
	return out.Close()
}
