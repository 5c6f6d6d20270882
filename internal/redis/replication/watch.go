// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ErrReplica is a replica that did not take all that was passed on to it. What it took then was not read along.
var ErrReplica = errors.New("the replica is gone")

// Watch passes on to a replica what a server sends after the replica's PSYNC was sent to it, byte by byte, and reads along. It ends with
// the connection, and with ErrRefused before it would pass on that the stream goes on for another database than 0, of which a replica in
// cluster mode would make 0, or an administrative command, which a replica would carry out. What tells of a slot that moves is left out.
// The server's connection has to be read from nowhere else. based is called when a new base was passed on whole.
func Watch(server net.Conn, replica io.Writer, based func()) error {
	along := &passing{Conn: server, to: replica, unread: func() int { return 0 }}
	s := &Session{conn: along, options: Options{Silence: defaultSilence}, ended: make(chan struct{}), dataOnly: true}
	s.in = bufio.NewReaderSize(&bounded{along, defaultSilence}, bufferSize)
	defer s.ending.Do(func() { close(s.ended) })
	answer, err := s.line()
	if err != nil {
		return err
	}
	// Which position a replica asked for is its own business; any ID says that it may go on from one.
	if err := s.enter(answer, Position{ID: strings.Repeat("0", markSize)}); err != nil {
		return errors.Join(err, along.pass(len(along.pending)))
	}
	if s.base != nil {
		if _, err := io.Copy(io.Discard, s.base); err != nil {
			return err
		}
		based()
	}
	before, from := along.received-int64(s.in.Buffered()), s.Position().Offset
	along.unread = func() int { return int(along.received - before - (s.Position().Offset - from)) }
	for {
		err := s.Copy(io.Discard)
		if err == nil && s.ofCluster > 0 && !along.blank(int(s.ofCluster)) {
			err := fmt.Errorf("%w: the stream has a command CLUSTER that cannot be left out", ErrRefused)
			return errors.Join(err, along.pass(max(0, len(along.pending)-along.unread()-int(s.ofCluster))))
		}
		if errors.Is(err, ErrRefused) {
			return errors.Join(err, along.pass(len(along.pending)-min(along.unread(), len(along.pending))))
		}
		if err != nil {
			return err
		}
	}
}

// mostUnread is more than a command has that goes over to another database, and than the name of one.
const mostUnread = 1 << 10

// passing is a connection whose bytes go to a replica once they were read along, and that says nothing itself: the replica does. Who reads
// from it has read along all that came before, but for the command of which the rest is missing.
type passing struct {
	net.Conn
	to       io.Writer
	pending  []byte
	received int64
	// unread is how many of the bytes are of such a command.
	unread func() int
}

func (p *passing) Read(b []byte) (int, error) {
	keep := min(p.unread(), len(p.pending))
	if keep > mostUnread {
		keep = 0 // it is longer than one that goes over to another database
	}
	if err := p.pass(len(p.pending) - keep); err != nil {
		return 0, err
	}
	n, err := p.Conn.Read(b)
	p.pending = append(p.pending, b[:n]...)
	p.received += int64(n)
	return n, err
}

func (p *passing) pass(n int) error {
	if n == 0 {
		return nil
	}
	if _, err := p.to.Write(p.pending[:n]); err != nil {
		return fmt.Errorf("%w: %w", ErrReplica, err)
	}
	p.pending = append(p.pending[:0], p.pending[n:]...)
	return nil
}

// blank makes a command that was read along, and is as long as that, one that does nothing, of the same length: what a replica
// acknowledges is a number of bytes. It reports whether that could be done.
func (p *passing) blank(size int) bool {
	const name, end = "*2\r\n$4\r\nPING\r\n$", "\r\n"
	for digits := 1; digits <= len("1000"); digits++ {
		text := size - len(name) - digits - 2*len(end)
		begins := name + strconv.Itoa(text) + end
		from := len(p.pending) - p.unread() - size
		if text < 0 || from < 0 || len(begins)+text+len(end) != size {
			continue
		}
		copy(p.pending[from:], begins+strings.Repeat(" ", text)+end)
		return true
	}
	return false
}

func (p *passing) Write(b []byte) (int, error) { return len(b), nil }

func (p *passing) SetWriteDeadline(time.Time) error { return nil }
