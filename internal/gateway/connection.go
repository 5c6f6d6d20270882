// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/gateway/protocol"
)

const (
	// handshakeWithin, headWithin and bodyWithin are for how long a client may take for a handshake, for the first words of a command, and
	// between two parts of the rest. Between commands it may rest for ever, as at an instance.
	handshakeWithin, headWithin, bodyWithin = 10 * time.Second, 30 * time.Second, time.Minute
	// enterWithin is for how long a client may be connected before an instance has let it in.
	enterWithin = time.Minute
	// toldWithin is for how long a client may be connected that has not been let in, and is in the middle of a command.
	toldWithin = 2 * enterWithin
	// stalledFor is for how long one side may take nothing of what it is sent.
	stalledFor = 2 * time.Minute
	dialWithin = 5 * time.Second
	// repliesWithin is for how long an instance may answer a client that has ended its side.
	repliesWithin = 10 * time.Second
	// firstSize is what is read of a client before an instance is connected to.
	firstSize = 512
)

// connection is one of a client, and the one to the instance.
type connection struct {
	gateway  *Gateway
	session  *protocol.Session
	client   net.Conn
	raw      net.Conn    // what client is encrypted over, or client
	entry    *time.Timer // closes the connection if the client is not let in
	accepted time.Time

	mu       sync.Mutex
	closed   bool
	instance net.Conn // nil: the client has said nothing yet

	// What each side does: whether it is waited for, with everything passed on that came before.
	commands, replies atomic.Bool
	lastHeard         atomic.Int64 // when the client said something, in nanoseconds since 1970
	// phase is what the client's next bytes belong to; begun reports that the deadline of a command's first words is set, limited that any
	// is. One goroutine uses them.
	phase          protocol.Phase
	begun, limited bool
}

func (g *Gateway) newConnection(raw, client net.Conn) *connection {
	c := &connection{gateway: g, session: protocol.New(g.directory, g.certificate != nil, &g.figures.Counts), client: client, raw: raw,
		accepted: time.Now()}
	c.replies.Store(true) // there are none to come
	c.lastHeard.Store(c.accepted.UnixNano())
	c.entry = time.AfterFunc(time.Hour, c.checkEntry)
	c.entry.Reset(enterWithin)
	return c
}

// checkEntry closes a connection whose client has not been let in, unless a reply is awaited that may show that it was; or, for a
// while, the rest of a command.
func (c *connection) checkEntry() {
	const again = time.Second
	trickles := !c.commands.Load() && time.Since(c.accepted) > toldWithin
	switch admitted, resting := c.session.Entry(); {
	case admitted:
	case resting, trickles:
		c.gateway.figures.refused[noEntry].Add(1)
		c.close()
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed {
			c.entry.Reset(again)
		}
	}
}

// close ends both sides.
func (c *connection) close() {
	c.session.Abort()
	_ = c.client.Close() // what was to be passed on was
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.instance != nil {
		_ = c.instance.Close() // as above
	}
}

// join notes the connection to the instance, unless it is too late.
func (c *connection) join(instance net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = instance.Close() // nothing was said
		return false
	}
	c.instance = instance
	return true
}

// begin waits for the first words of a client. Nothing is connected to before.
func (c *connection) begin() ([]byte, error) {
	first := make([]byte, firstSize)
	r := &reader{Conn: c.client, waiting: &c.commands, before: c.limit, after: c.heard}
	n, err := r.Read(first)
	if n > 0 {
		err = nil
	}
	return first[:n], err
}

// reader reads from one side.
type reader struct {
	net.Conn
	said    []byte // what was read before
	waiting *atomic.Bool
	before  func() (atRest bool, err error)
	after   func()
}

func (r *reader) Read(into []byte) (int, error) {
	if len(r.said) > 0 {
		n := copy(into, r.said)
		if r.said = r.said[n:]; len(r.said) == 0 {
			r.said = nil
		}
		return n, nil
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

// pass passes on between the client, which has said something already, and an instance until one of them ends.
func (c *connection) pass(ctx context.Context, said []byte, instance net.Conn) error {
	c.replies.Store(false)
	if !c.join(instance) {
		return net.ErrClosed
	}
	client := &reader{Conn: c.client, said: said, waiting: &c.commands, before: c.limit, after: c.heard}
	behind := &reader{Conn: instance, waiting: &c.replies, before: func() (bool, error) { return true, nil }, after: func() {}}
	commands, replies := protocol.NewPipe(client, writer{instance}, nil), protocol.NewPipe(behind, writer{c.client}, c.last)
	requests := make(chan error, 1)
	go func() {
		err := contain.Call(ctx, "pass on commands", func() error { return c.session.Requests(commands, c.pace) })
		if err = c.saidAll(err); err != nil {
			c.close()
		}
		requests <- err
	}()
	err := contain.Call(ctx, "pass on replies", func() error { return c.session.Replies(replies) })
	c.close()
	return errors.Join(err, <-requests)
}

// last is called before replies are sent. If they are the last ones while the gateway ends, they are sent together with the end.
func (c *connection) last() (sent func()) {
	if !c.mayEnd() || !c.session.Finish() {
		return nil
	}
	hold(c.raw)
	return c.end
}

// mayEnd reports whether the connection may be closed since the gateway ends. One that was accepted a moment ago is still logging in, with
// one command after the other.
func (c *connection) mayEnd() bool {
	const young = 2 * time.Second
	return c.gateway.stopping.Load() || c.gateway.draining.Load() && time.Since(c.accepted) > young
}

// saidAll is called when no more of the client's commands are passed on, and how that came. Without an error, replies still come.
func (c *connection) saidAll(err error) error {
	if errors.Is(err, protocol.ErrFinished) {
		c.commands.Store(true)
		return c.drop()
	}
	if half, ok := c.instance.(interface{ CloseWrite() error }); err == nil && ok {
		return errors.Join(half.CloseWrite(), c.instance.SetReadDeadline(time.Now().Add(repliesWithin)))
	}
	return err
}

// drop reads what the client says too late: closing a connection with something unread could take replies away that are under way.
func (c *connection) drop() error {
	if err := c.client.SetReadDeadline(time.Now().Add(lastReplies)); err != nil {
		return err
	}
	into := make([]byte, firstSize)
	for {
		_, err := c.client.Read(into)
		if errors.Is(err, io.EOF) {
			return c.instance.SetReadDeadline(time.Now().Add(lastReplies))
		}
		if err != nil {
			return err
		}
	}
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

// secure is the connection as the client speaks, and the instance that it leads to.
func secure(ctx context.Context, raw net.Conn, l *listener) (net.Conn, *Instance, error) {
	client, server := raw, ""
	if l.tls != nil {
		ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
		defer cancel()
		secured := tls.Server(raw, l.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, nil, err
		}
		client, server = secured, secured.ConnectionState().ServerName
	}
	instance := l.entrance.Load().choose(server)
	if instance == nil {
		return nil, nil, errors.New("the map has no instance of that name")
	}
	return client, instance, nil
}

// dial opens a connection to an instance.
func (g *Gateway) dial(ctx context.Context, instance string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := net.Conn(nil), error(&net.AddrError{Err: "no address is known"})
	for _, address := range g.directory.inside(instance) {
		if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
			break
		}
	}
	if err != nil || g.authority == nil {
		return conn, err
	}
	secured := tls.Client(conn, g.authority.client.Load())
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}
