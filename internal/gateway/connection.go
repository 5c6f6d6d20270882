// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/gateway/protocol"
)

const (
	// bufferSize is what a connection holds four times: to read and to write, of both sides.
	bufferSize = 16 << 10
	// handshakeWithin, headWithin and bodyWithin are for how long a client may take for a handshake, for the first words of a command, and
	// between two parts of the rest. Between commands it may rest for ever, as at an instance.
	handshakeWithin, headWithin, bodyWithin = 10 * time.Second, 30 * time.Second, time.Minute
	// stalledFor is for how long one side may take nothing of what it is sent.
	stalledFor = 2 * time.Minute
	dialWithin = 5 * time.Second
	// repliesWithin is for how long an instance may answer a client that has ended its side.
	repliesWithin = 10 * time.Second
)

// connection is one of a client, and the one to the instance.
type connection struct {
	session *protocol.Session
	client  net.Conn
	raw     net.Conn // what client is encrypted over, or client
	// What each side does: whether it is waited for, with everything passed on that came before.
	commands, replies atomic.Bool
	lastHeard         atomic.Int64 // when the client said something, in nanoseconds since 1970
	// phase is what the client's next bytes belong to; begun reports that the deadline of a command's first words is set, limited that any
	// is. One goroutine uses them.
	phase          protocol.Phase
	begun, limited bool
}

// reader reads from one side; before it waits, it flushes what the other gets.
type reader struct {
	net.Conn
	to      *bufio.Writer
	waiting *atomic.Bool
	// last reports, before what was said is flushed, that it is the last. It is sent together with the end: hold is called before, and end
	// after the flush.
	last      func() bool
	hold, end func()
	before    func() (atRest bool, err error)
	after     func()
}

func (r *reader) Read(into []byte) (int, error) {
	last := r.last != nil && r.to.Buffered() > 0 && r.last()
	if last {
		r.hold()
	}
	if err := r.to.Flush(); err != nil {
		return 0, err
	}
	if last {
		r.end()
	}
	atRest, err := r.before()
	if err != nil {
		return 0, err
	}
	r.waiting.Store(atRest)
	n, err := r.Conn.Read(into)
	r.waiting.Store(false)
	r.after()
	return n, err
}

// writer gives up when nothing is taken for long.
type writer struct{ net.Conn }

func (w writer) Write(text []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(stalledFor)); err != nil {
		return 0, err
	}
	return w.Conn.Write(text)
}

// pass passes on between a client and an instance until one of them ends.
func (g *Gateway) pass(ctx context.Context, raw, client, instance net.Conn) error {
	c := &connection{session: protocol.New(g.directory, g.certificate != nil, &g.figures.Counts), client: client, raw: raw}
	c.lastHeard.Store(time.Now().UnixNano())
	defer g.enter(c)()
	stop := func() {
		c.session.Abort()
		_, _ = client.Close(), instance.Close() // what was to be passed on was
	}
	defer context.AfterFunc(ctx, stop)()
	toInstance, toClient := bufio.NewWriterSize(writer{instance}, bufferSize), bufio.NewWriterSize(writer{client}, bufferSize)
	fromClient := bufio.NewReaderSize(&reader{Conn: client, to: toInstance, waiting: &c.commands, before: c.limit, after: c.heard}, bufferSize)
	fromInstance := bufio.NewReaderSize(&reader{Conn: instance, to: toClient, waiting: &c.replies,
		last: func() bool { return g.draining.Load() && c.session.Finish() },
		hold: func() { hold(raw) }, end: c.end,
		before: func() (bool, error) { return true, nil }, after: func() {}}, bufferSize)
	requests := make(chan error, 1)
	go func() {
		err := contain.Call(ctx, "pass on commands", func() error {
			return c.session.Requests(fromClient, toInstance, c.pace)
		})
		if half, ok := instance.(interface{ CloseWrite() error }); err == nil && ok {
			err = errors.Join(half.CloseWrite(), instance.SetReadDeadline(time.Now().Add(repliesWithin)))
		}
		if err != nil {
			stop()
		}
		requests <- err
	}()
	err := contain.Call(ctx, "pass on replies", func() error { return c.session.Replies(fromInstance, toClient) })
	stop()
	return errors.Join(err, <-requests)
}

// pace notes what the client's next bytes belong to.
func (c *connection) pace(p protocol.Phase) {
	c.phase = p
	c.begun = c.begun && p == protocol.Head
}

// limit sets until when the client may take for what comes next. It is called when that has to be waited for.
func (c *connection) limit() (atRest bool, err error) {
	switch c.phase {
	case protocol.Idle:
		if !c.limited {
			return true, nil
		}
		c.limited = false
		return true, c.client.SetReadDeadline(time.Time{})
	case protocol.Head:
		if c.begun {
			return false, nil // the first words together have that long
		}
		c.begun, c.limited = true, true
		return false, c.client.SetReadDeadline(time.Now().Add(headWithin))
	case protocol.Body:
	}
	c.limited = true
	return false, c.client.SetReadDeadline(time.Now().Add(bodyWithin))
}

func (c *connection) heard() { c.lastHeard.Store(time.Now().UnixNano()) }

// finish ends the connection if it is at rest and the client has been quiet.
func (c *connection) finish(quiet time.Duration) {
	if time.Since(time.Unix(0, c.lastHeard.Load())) < quiet || !c.commands.Load() || !c.replies.Load() {
		return
	}
	if c.session.Finish() {
		c.end()
	}
}

// end tells the client that nothing more is said, and closes the connection soon, not at once: what was said last must arrive.
func (c *connection) end() {
	const soon = time.Second
	for _, conn := range []net.Conn{c.client, c.raw} { // TLS has an end of its own
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the client may be gone
		}
	}
	_ = c.client.SetReadDeadline(time.Now().Add(soon)) // ends Requests
}

// secure is the connection as the client speaks.
func (g *Gateway) secure(ctx context.Context, client net.Conn) (net.Conn, error) {
	if g.certificate == nil {
		return client, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	secured := tls.Server(client, g.certificate.config())
	return secured, secured.HandshakeContext(ctx)
}

// dial opens a connection to an instance.
func (g *Gateway) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil || g.authority == nil {
		return conn, err
	}
	secured := tls.Client(conn, g.authority.client.Load())
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}
