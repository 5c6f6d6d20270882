// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replication follows a server in the way of its replicas: a base, which is the data set in RDB format, and the stream of
// commands that follows it. It writes nothing to the server. What a server sends is untrusted: nothing is allocated by what it
// announces, and what is no replication ends the session.
//
// Sources of the protocol: replication.c of Redis 7.0 and 8.0 and of Valkey 8.1 and 9.1.
package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Position is a place in the history of a data set: how many bytes of its stream came before it.
type Position struct {
	// ID names the history, 40 hex digits. It changes when a replica becomes master.
	ID     string
	Offset int64
}

// Options are how a session is begun.
type Options struct {
	// Username and Password log in; no Password: nobody does.
	Username, Password string
	// Version is the Valkey version that is told to the server, which is its own. Without it Valkey 9 sends the RDB format of
	// before, which fails on hash fields that expire. Empty: none is told, as to Redis.
	Version string
	// Uncounted acknowledges nothing but the beginning of the stream, so that WAIT does not count the session as a replica. It is for a
	// session at a master.
	Uncounted bool
	// Silence is how long a server may send nothing, by default 60 s. It sends PING every 10 s (repl-ping-replica-period).
	Silence time.Duration
}

// What a server says instead of letting its data be followed.
var (
	// ErrNotNow is a server that cannot be followed at the moment: it loads its data, or is a replica without its master.
	ErrNotNow = errors.New("the server cannot be followed at the moment")
	// ErrRefused is a server that refuses.
	ErrRefused = errors.New("the server refuses to be followed")
	// ErrProtocol is an answer that is no replication.
	ErrProtocol = errors.New("what the server sends is no replication stream")
)

// Session follows one server over one connection. Its methods but Position and Close are for one goroutine.
type Session struct {
	conn    net.Conn
	in      *bufio.Reader
	options Options

	mu       sync.Mutex // also orders what is written to the connection
	position Position
	online   bool

	base   io.Reader
	inside bool // a transaction
	// dataOnly refuses administrative commands as soon as their names are read.
	dataOnly bool
	// ofCluster is the size of the command that was read last, if it was CLUSTER; else 0.
	ofCluster int64
	ended     chan struct{}
	ending    sync.Once
}

const (
	defaultSilence = time.Minute
	bufferSize     = 64 << 10
	longestLine    = 1 << 10
	ackInterval    = time.Second
	ackWithin      = 5 * time.Second
)

// Follow begins a session on a connection, from a position on if the server still has what follows it, or else, and with the zero
// position, from a new base. The session owns the connection, also when it fails. ctx bounds the beginning.
func Follow(ctx context.Context, conn net.Conn, from Position, o Options) (*Session, error) {
	if o.Silence <= 0 {
		o.Silence = defaultSilence
	}
	s := &Session{conn: conn, options: o, ended: make(chan struct{})}
	s.in = bufio.NewReaderSize(&bounded{conn, o.Silence}, bufferSize)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err := s.begin(from)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		_ = conn.Close() // nothing is lost with it
		return nil, err
	}
	return s, nil
}

// bounded is a connection that may be silent for so long.
type bounded struct {
	net.Conn
	silence time.Duration
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.SetReadDeadline(time.Now().Add(b.silence)); err != nil {
		return 0, err
	}
	return b.Conn.Read(p)
}

func (s *Session) begin(from Position) error {
	if s.options.Password != "" {
		if err := s.ask("AUTH", s.options.Username, s.options.Password); err != nil {
			return err
		}
	}
	if err := s.ask("REPLCONF", "capa", "eof", "capa", "psync2"); err != nil {
		return err
	}
	if s.options.Version != "" {
		// Valkey 8 takes it, Redis refuses the option, which is as good.
		if err := s.ask("REPLCONF", "version", s.options.Version); err != nil && !errors.Is(err, ErrRefused) {
			return err
		}
	}
	id, next := "?", "-1"
	if from.ID != "" {
		id, next = from.ID, strconv.FormatInt(from.Offset+1, 10)
	}
	if err := s.send("PSYNC", id, next); err != nil {
		return err
	}
	answer, err := s.line()
	if err != nil {
		return err
	}
	return s.enter(answer, from)
}

// enter reads the answer to PSYNC.
func (s *Session) enter(answer string, from Position) error {
	words := strings.Fields(answer)
	switch {
	case len(words) == 3 && words[0] == "+FULLRESYNC":
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || offset < 0 || !isID(words[1]) {
			return protocolError("answer %.80q to PSYNC", answer)
		}
		s.position = Position{words[1], offset}
		s.base, err = s.openBase()
		return err
	case len(words) > 0 && len(words) <= 2 && words[0] == "+CONTINUE" && from.ID != "":
		s.position = from
		if len(words) == 2 {
			if !isID(words[1]) {
				return protocolError("answer %.80q to PSYNC", answer)
			}
			s.position.ID = words[1]
		}
		s.goOnline()
		return nil
	}
	return refusal(answer)
}

// refusal is the error for an answer that is none of success.
func refusal(answer string) error {
	word, _, _ := strings.Cut(answer, " ")
	switch {
	case word == "-NOMASTERLINK" || word == "-LOADING":
		return fmt.Errorf("%w: %.200q", ErrNotNow, answer[1:])
	case strings.HasPrefix(answer, "-"):
		return fmt.Errorf("%w: %.200q", ErrRefused, answer[1:])
	}
	return protocolError("answer %.80q", answer)
}

func protocolError(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, arguments...))
}

func isID(text string) bool {
	const length = 40
	return len(text) == length && strings.Trim(text, "0123456789abcdef") == ""
}

// ask sends a command that is answered with OK.
func (s *Session) ask(words ...string) error {
	if err := s.send(words...); err != nil {
		return err
	}
	answer, err := s.line()
	if err == nil && answer != "+OK" {
		if s.options.Password != "" { // one that does not know a command answers with the beginning of its arguments
			answer = strings.ReplaceAll(answer, s.options.Password, "[redacted]")
		}
		err = fmt.Errorf("%s: %w", words[0], refusal(answer))
	}
	return err
}

// send writes a command.
func (s *Session) send(words ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(s.options.Silence, words...)
}

// write is send for who has the lock.
func (s *Session) write(within time.Duration, words ...string) error {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(word), word)
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := s.conn.Write(text)
	return err
}

// line reads a line, without its end; empty ones, which a server sends while it is busy, are passed over.
func (s *Session) line() (string, error) {
	for {
		line, err := s.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || len(line) > longestLine:
			return "", protocolError("a line is longer than %d bytes", longestLine)
		case err != nil:
			return "", err
		}
		if text := strings.TrimRight(string(line), "\r\n"); text != "" {
			return text, nil
		}
	}
}

// Base is the data set, in RDB format, to be read to its end before the stream; nil when the session continues from the position asked
// for.
func (s *Session) Base() io.Reader { return s.base }

// Position is how far the stream was read: after the base, or after the last command that was read whole.
func (s *Session) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// Whole reports whether the position is outside of transactions: what was read can stand without what follows.
func (s *Session) Whole() bool { return !s.inside }

// goOnline makes the server send the stream, and tells it every second how far it was read: it drops replicas that say nothing
// (repl-timeout).
func (s *Session) goOnline() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.online {
		return
	}
	s.online = true
	go func() {
		ticker := time.NewTicker(ackInterval)
		defer ticker.Stop()
		for s.acknowledge() == nil {
			select {
			case <-s.ended:
				return
			case <-ticker.C:
			}
		}
	}()
}

func (s *Session) acknowledge() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	offset := s.position.Offset
	if s.options.Uncounted {
		offset = 0
	}
	return s.write(ackWithin, "REPLCONF", "ACK", strconv.FormatInt(offset, 10))
}

// Close ends the session. Whoever reads finds an error.
func (s *Session) Close() {
	s.ending.Do(func() {
		close(s.ended)
		_ = s.conn.Close() // nothing is lost with it
	})
}
