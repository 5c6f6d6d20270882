// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"io"
	"sync"
)

const (
	// bufferSize is what a pipe has twice while something passes, to read and to write; beginningSize what it always has.
	bufferSize, beginningSize = 16 << 10, 512
)

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}
)

// Pipe is one direction of a connection. While it waits for the beginning of a command or a reply it has no buffers: most connections rest
// most of the time. It is for one goroutine.
type Pipe struct {
	from io.Reader
	to   io.Writer
	// flushing, unless it is nil, is called before something is sent, and what it returns after that, unless that is nil.
	flushing func() (sent func())
	reader   *bufio.Reader // nil: there are no buffers
	writer   *bufio.Writer
	// beginning is what came first after a rest, rest what of it the reader has not got.
	beginning [beginningSize]byte
	rest      []byte
}

// NewPipe is a pipe. Before it waits for from, all that was written has been sent. flushing, unless it is nil, is called before something
// is sent, and what it returns after that.
func NewPipe(from io.Reader, to io.Writer, flushing func() (sent func())) *Pipe {
	return &Pipe{from: from, to: to, flushing: flushing}
}

// await waits until something has come.
func (p *Pipe) await() error {
	if p.reader != nil && p.reader.Buffered() > 0 {
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	p.release()
	n, err := p.from.Read(p.beginning[:])
	if n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return err
	}
	p.rest = p.beginning[:n]
	p.reader, p.writer = readers.Get().(*bufio.Reader), writers.Get().(*bufio.Writer)
	p.reader.Reset((*continued)(p))
	p.writer.Reset(p.to)
	return nil
}

// release gives the buffers back, with all that is in them.
func (p *Pipe) release() {
	if p.reader == nil {
		return
	}
	p.reader.Reset(nil)
	p.writer.Reset(nil)
	readers.Put(p.reader)
	writers.Put(p.writer)
	p.reader, p.writer = nil, nil
}

func (p *Pipe) flush() error {
	if p.writer == nil || p.writer.Buffered() == 0 {
		return nil
	}
	var sent func()
	if p.flushing != nil {
		sent = p.flushing()
	}
	if err := p.writer.Flush(); err != nil {
		return err
	}
	if sent != nil {
		sent()
	}
	return nil
}

// continued is what is read from while something passes.
type continued Pipe

func (c *continued) Read(into []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(into, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	if err := (*Pipe)(c).flush(); err != nil {
		return 0, err
	}
	return c.from.Read(into)
}
