// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// markSize is that of the mark which ends a base whose length is not known.
const markSize = 40

// openBase reads what announces a base: its length, or the mark that ends it.
func (s *Session) openBase() (io.Reader, error) {
	line, err := s.line()
	if err != nil {
		return nil, err
	}
	announced, isBulk := strings.CutPrefix(line, "$")
	if mark, unknown := strings.CutPrefix(announced, "EOF:"); isBulk && unknown && len(mark) == markSize {
		return &base{session: s, source: &marked{in: s.in, mark: []byte(mark)}}, nil
	}
	length, err := strconv.ParseInt(announced, 10, 64)
	if !isBulk || err != nil || length <= 0 {
		return nil, protocolError("%.80q announces no base", line)
	}
	return &base{session: s, source: &counted{in: s.in, left: length}}, nil
}

// base is a base whose end begins the stream.
type base struct {
	session *Session
	source  io.Reader
}

func (b *base) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	if err == io.EOF {
		b.session.goOnline()
	}
	return n, err
}

// counted is so many bytes. A connection that ends before them is no end.
type counted struct {
	in   io.Reader
	left int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// marked is what comes before a mark. The server sends nothing after it until it is told that the base arrived, so that the mark is
// the last that there is to read: one in the middle of what arrived is data.
type marked struct {
	in      io.Reader
	mark    []byte
	chunk   []byte
	pending []byte // read and not delivered; the mark may begin in it
	done    bool
}

func (m *marked) Read(p []byte) (int, error) {
	for len(m.pending) <= markSize && !m.done {
		if m.chunk == nil {
			m.chunk = make([]byte, bufferSize)
		}
		n, err := m.in.Read(m.chunk)
		m.pending = append(m.pending, m.chunk[:n]...)
		if bytes.HasSuffix(m.pending, m.mark) {
			m.pending, m.done = m.pending[:len(m.pending)-markSize], true
			break
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
	}
	ready := m.pending
	if !m.done {
		ready = ready[:len(ready)-markSize]
	}
	if len(ready) == 0 && m.done {
		return 0, io.EOF
	}
	n := copy(p, ready)
	m.pending = m.pending[n:]
	return n, nil
}
