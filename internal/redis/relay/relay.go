// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay stands between a server outside and the instance that is to follow it: the server is reached with its own password and
// certificates, the relay with the instance's. It passes on what a replica says, INFO, and the pausing of writes, and no other command:
// nothing can be written to the server through it.
package relay

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Relay passes on.
type Relay struct {
	// Dial opens a connection to the server, logged in.
	Dial func(ctx context.Context) (net.Conn, error)
	// Check says why the server cannot be followed at the moment, such as that it has what makes an instance crash.
	Check func(ctx context.Context) error
	// Passwords are those that are accepted; none: everybody is let in. They are asked for at each login, since they change.
	Passwords func() ([]string, error)
	// Report says what happens.
	Report func(text string)
	// Rest is how soon after a replica was refused something the server is asked for all of its data again, for which it forks.
	Rest time.Duration
	// known reports whether a replica may go on from where it was. After what was for another database, or was not read along, it gets
	// a new base.
	known atomic.Bool
	// refused is when what a replica may not have was met last, in nanoseconds since 1970.
	refused atomic.Int64

	mu sync.Mutex
	// held is why the server is not followed; empty: it may be.
	held string
	open connections
}

// DefaultRest is the Rest of a relay that runs for long.
const DefaultRest = 10 * time.Second

const (
	// longestPause is for how long writes can be paused through the relay.
	longestPause = time.Hour
	// commandTimeout is how long a client, and the server, may take for a command that is not replication.
	commandTimeout = 20 * time.Second
	// mostWords and longestWord bound a command of a client, mostAnswer an answer of the server.
	mostWords, longestWord = 16, 4 << 10
	mostAnswer             = 4 << 20
	// longestReason is how long a reason is that is told.
	longestReason = 300
)

// Serve answers clients until the context ends.
func (r *Relay) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		leave := r.enter(conn)
		open.Go(func() {
			defer leave()
			c := &client{relay: r, conn: conn, in: bufio.NewReader(conn)}
			// Who has not logged in could fill the log.
			if err := c.serve(ctx); err != nil && c.admitted && !errors.Is(err, io.EOF) && ctx.Err() == nil {
				r.Report(fmt.Sprintf("%s: %v", conn.RemoteAddr(), err))
			}
		})
	}
}

// client is one connection to the relay, and its own to the server.
type client struct {
	relay  *Relay
	conn   net.Conn
	in     *bufio.Reader
	server net.Conn
	from   *bufio.Reader
	// open reports whether it may say more than its password, admitted whether it counts as one that has logged in.
	// kept reports whether its place is only for who says PSYNC, as soon as one has to log in.
	open, admitted, kept bool
}

// hold notes why the server is not followed; nil: it is.
func (r *Relay) hold(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = ""
	if why != nil {
		r.held = excerpt.Of(why.Error(), longestReason)
	}
}

func (r *Relay) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

func (c *client) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { sever(c.conn) })
	defer func() {
		stop()
		if c.server != nil {
			_ = c.server.Close()
		}
	}()
	if err := c.conn.SetDeadline(time.Now().Add(loginWithin)); err != nil {
		return err
	}
	passwords, err := c.relay.Passwords()
	if err == nil && len(passwords) == 0 {
		c.open, err = true, c.admit()
	}
	if err != nil {
		return err
	}
	for {
		words, err := c.read(time.Minute)
		if err != nil {
			return err
		}
		if len(words) == 0 {
			continue
		}
		if followed, err := c.answer(ctx, words); followed || err != nil {
			return err
		}
	}
}

// admit gives a connection as long for each command as it may take.
func (c *client) admit() error {
	if c.admitted || c.kept {
		return nil
	}
	var err error
	if c.kept, err = c.relay.admit(c.conn); err != nil || c.kept {
		return err
	}
	c.admitted = true
	return c.conn.SetDeadline(time.Time{})
}

// replicate gives it to one that says PSYNC, too.
func (c *client) replicate() error {
	c.relay.replicates(c.conn)
	c.admitted, c.kept = true, false
	return c.conn.SetDeadline(time.Time{})
}

// read reads a command, an array of strings; without any it is an empty line, by which a replica says that it lives.
func (c *client) read(within time.Duration) ([]string, error) {
	if c.admitted {
		if err := c.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
			return nil, err
		}
	}
	if next, err := c.in.Peek(1); err != nil {
		return nil, err
	} else if next[0] == '\n' {
		_, err := c.in.Discard(1)
		return nil, err
	}
	count, err := c.header('*', mostWords)
	if err != nil {
		return nil, err
	}
	words := make([]string, 0, count)
	for range count {
		length, err := c.header('$', longestWord)
		if err != nil {
			return nil, err
		}
		text := make([]byte, length+len("\r\n"))
		if _, err := io.ReadFull(c.in, text); err != nil {
			return nil, err
		}
		words = append(words, string(text[:length]))
	}
	return words, nil
}

func (c *client) header(prefix byte, most int) (int, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimRight(string(line[1:]), "\r\n"))
	if err != nil || line[0] != prefix || n < 0 || n > most || prefix == '*' && n == 0 {
		return 0, fmt.Errorf("%.40q is no header of a command that is passed on", line)
	}
	return n, nil
}

// answer answers one command; followed reports that it was a PSYNC, whose session has come to its end.
func (c *client) answer(ctx context.Context, words []string) (followed bool, err error) {
	name := strings.ToUpper(words[0])
	switch {
	case name == "AUTH":
		return false, c.login(words[len(words)-1])
	case name == "HELLO":
		return false, c.say("-ERR unknown command 'HELLO'")
	case !c.open:
		return false, c.say("-NOAUTH Authentication required.")
	case !permitted(name, words):
		return false, c.say("-ERR the relay does not pass on this command")
	case c.kept && name != "PING" && name != "REPLCONF" && name != "PSYNC":
		return false, errors.Join(errTooMany, c.say("-ERR "+errTooMany.Error()))
	}
	if c.server == nil {
		if c.server, err = c.relay.Dial(ctx); err != nil {
			return false, errors.Join(err, c.say("-ERR the relay does not reach the server: "+excerpt.Of(err.Error(), longestReason)))
		}
		c.from = bufio.NewReader(c.server)
	}
	if name == "PSYNC" {
		if err := c.replicate(); err != nil {
			return false, err
		}
		if rest := c.relay.Rest - time.Since(time.Unix(0, c.relay.refused.Load())); rest > 0 {
			return false, c.say("-NOMASTERLINK what a replica may not have came a moment ago; all is copied anew some seconds later")
		}
		err := c.relay.Check(ctx)
		c.relay.hold(err)
		if err != nil {
			return false, errors.Join(err, c.say("-NOMASTERLINK the server cannot be followed at the moment"))
		}
		return true, c.follow(words)
	}
	if name == "REPLCONF" {
		if words = oneChannel(words); len(words) == 1 {
			return false, c.say("+OK")
		}
	}
	if err := send(c.server, words); err != nil {
		return false, err
	}
	return false, c.passAnswer(name == "INFO")
}

// oneChannel leaves out that a replica can get a base on a connection of its own (Redis rdb-channel-repl, Valkey dual-channel): what is
// read along is one stream.
func oneChannel(words []string) []string {
	kept := words[:1]
	for pair := range slices.Chunk(words[1:], 2) {
		if !strings.EqualFold(pair[0], "capa") || len(pair) == 2 && !strings.Contains(pair[1], "channel") {
			kept = append(kept, pair...)
		}
	}
	return kept
}

// permitted are the commands that are passed on.
func permitted(name string, words []string) bool {
	switch name {
	case "PING", "INFO":
		return len(words) == 1
	case "CLUSTER":
		return len(words) == 2 && strings.EqualFold(words[1], "NODES")
	case "REPLCONF":
		return len(words) > 1
	case "PSYNC":
		return len(words) == 3
	case "CLIENT":
		if len(words) == 2 {
			return strings.EqualFold(words[1], "UNPAUSE")
		}
		ms, err := strconv.ParseInt(words[min(2, len(words)-1)], 10, 64)
		return len(words) == 4 && strings.EqualFold(words[1], "PAUSE") && strings.EqualFold(words[3], "WRITE") &&
			err == nil && ms > 0 && ms <= longestPause.Milliseconds()
	}
	return false
}

func (c *client) login(password string) error {
	accepted, err := c.relay.Passwords()
	if err != nil {
		return err
	}
	c.open = len(accepted) == 0 || slices.ContainsFunc(accepted, func(p string) bool {
		return p != "" && subtle.ConstantTimeCompare([]byte(p), []byte(password)) == 1
	})
	if !c.open {
		return c.say("-WRONGPASS invalid username-password pair or user is disabled.")
	}
	if err := c.admit(); err != nil {
		return errors.Join(err, c.say("-ERR "+err.Error()))
	}
	return c.say("+OK")
}

func (c *client) say(line string) error { return c.write([]byte(line + "\r\n")) }

func (c *client) write(text []byte) error {
	if c.admitted {
		if err := c.conn.SetWriteDeadline(time.Now().Add(commandTimeout)); err != nil {
			return err
		}
	}
	_, err := c.conn.Write(text)
	return err
}
