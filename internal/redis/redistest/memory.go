// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"middleware.hc.cn/operator/internal/redis/resp"
)

// Connect is Dial without a network: a command is executed by whoever writes it, within the call of Write that completes it.
// Nothing depends on the scheduling of goroutines then, and in a bubble of testing/synctest nothing on the time that passes
// outside of it.
func (w *World) Connect(ctx context.Context, addr string) (net.Conn, error) {
	n, reachable := w.nodeAt(addr)
	if !reachable {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: ctx.Err()}
	}
	conn := &memory{closed: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == nil || !n.alive() {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: fmt.Errorf("%s: %w", addr, syscall.ECONNREFUSED)}
	}
	_, relay := w.at(addr)
	_, port, _ := net.SplitHostPort(addr) // it has led to the node
	_, secured := n.takes(port)
	conn.client = &session{node: n, conn: conn, relay: relay, secured: secured && !relay}
	n.conns[conn] = true
	return conn, nil
}

// memory is the client's end of a connection without a network. One goroutine at a time uses it; any may close it.
type memory struct {
	client   *session
	in, out  bytes.Buffer
	hangs    bool
	deadline atomic.Pointer[time.Time] // of Read
	once     sync.Once
	closed   chan struct{}
}

// Write executes the commands that are complete with p.
func (m *memory) Write(p []byte) (int, error) {
	if m.isClosed() {
		return 0, io.ErrClosedPipe
	}
	m.in.Write(p)
	for !m.hangs && !m.isClosed() {
		rest := bytes.NewReader(m.in.Bytes())
		buffered := bufio.NewReaderSize(rest, 512)
		args, err := resp.ReadCommand(buffered)
		if err != nil {
			return len(p), nil //nolint:nilerr // it is not complete yet
		}
		m.in.Next(m.in.Len() - rest.Len() - buffered.Buffered())
		reply, verdict := m.client.handle(args)
		switch verdict {
		case Hang:
			m.hangs = true
			continue
		case DropBefore, DropAfter:
			_ = m.Close() // it does not fail
			continue
		case ReplyError, TargetReplyLost:
		}
		out := bufio.NewWriterSize(&m.out, 512)
		writeReply(out, reply)
		_ = out.Flush() // it does not fail
	}
	return len(p), nil
}

// Read returns what was answered. Without an answer it waits for the deadline.
func (m *memory) Read(p []byte) (int, error) {
	if m.out.Len() > 0 {
		return m.out.Read(p)
	}
	var expired <-chan time.Time
	if at := m.deadline.Load(); at != nil && !at.IsZero() {
		timer := time.NewTimer(time.Until(*at))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-m.closed:
		return 0, io.EOF
	case <-expired:
		return 0, os.ErrDeadlineExceeded
	}
}

func (m *memory) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// Close ends the connection at both ends.
func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// LocalAddr implements net.Conn.
func (m *memory) LocalAddr() net.Addr { return &net.UnixAddr{Name: "client", Net: "memory"} }

// RemoteAddr implements net.Conn.
func (m *memory) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "node", Net: "memory"} }

// SetDeadline implements net.Conn.
func (m *memory) SetDeadline(at time.Time) error { return m.SetReadDeadline(at) }

// SetReadDeadline implements net.Conn.
func (m *memory) SetReadDeadline(at time.Time) error {
	m.deadline.Store(&at)
	return nil
}

// SetWriteDeadline implements net.Conn; writing never waits.
func (m *memory) SetWriteDeadline(time.Time) error { return nil }
