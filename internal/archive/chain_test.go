// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/replication"
	"middleware.hc.cn/operator/internal/redis/resp"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// master is a server that is followed: it has an empty base, and sends what a test says.
type master struct {
	t    *testing.T
	conn net.Conn
	at   replication.Position
}

// newChain follows a master.
func newChain(t *testing.T, s *Store) (*archiver, *chain, *master) {
	t.Helper()
	ours, theirs := net.Pipe()
	m := &master{t: t, conn: theirs, at: replication.Position{ID: strings.Repeat("a", 40)}}
	go func() {
		in := bufio.NewReader(theirs)
		for {
			command, err := resp.ReadCommand(in)
			if err != nil {
				return
			}
			switch {
			case command[0] == "PSYNC":
				_, _ = fmt.Fprintf(theirs, "+FULLRESYNC %s 0\r\n$9\r\nREDIS0012", m.at.ID)
			case command[1] != "ACK":
				_, _ = io.WriteString(theirs, "+OK\r\n")
			}
		}
	}()
	session, err := replication.Follow(t.Context(), ours, replication.Position{}, replication.Options{})
	check(t, err)
	r := &archiver{Archiving: Archiving{Taking: Taking{Name: "a", Store: s, Timeout: time.Millisecond}.withDefaults()}, writer: attempt}
	c := &chain{flow: newFlow(r.Taking, 0, members{}), archiver: r, id: attempt, begun: began, room: mostPieces}
	c.use(session)
	base := &Piece{Number: r.number()}
	described := &Shard{}
	base.Object, err = s.put(t.Context(), baseKey("a", attempt, base.Number), func(to io.Writer) error { return c.copyBase(to, described) })
	check(t, err)
	c.rdb, c.begins, c.base, c.ready = described.RDB, session.Position(), base, true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	for _, run := range []func(context.Context) error{c.read, c.store} {
		go func() {
			err := run(ctx)
			c.change(func() { c.over = errors.Join(c.over, err) })
			ended <- struct{}{}
		}()
	}
	t.Cleanup(func() { cancel(); c.stop(); <-ended; <-ended })
	return r, c, m
}

// send sends a command, and waits until the chain has it.
func (m *master) send(c *chain, words ...string) {
	m.t.Helper()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(m.conn, text)
	check(m.t, err)
	m.at.Offset += int64(len(text))
	for c.position() != m.at {
		time.Sleep(time.Millisecond)
	}
}

// mark sets a mark where the master is.
func (m *master) mark(c *chain) cut {
	c.hold()
	at := m.at
	c.release(&at)
	return cut{at: time.Now(), masters: []redis.History{{At: at, View: redis.View{NodeID: strings.Repeat("b", 40), Slots: slots.All()}}}}
}

// A record has what came before its mark, also when more has come and is in the store by the time that it is written.
func TestWhatComesAfterAMarkIsInTheNextRecord(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	r, c, m := newChain(t, s)
	now := topology{engine: redis.EngineRedis, version: "8.0.6"}
	m.send(c, "SET", "before", "1")
	first := m.mark(c)
	random := make([]byte, fullSegment)
	_, _ = rand.Read(random)
	m.send(c, "SET", "after", string(random)) // which fills a segment
	for stored := 0; stored < 2; time.Sleep(time.Millisecond) {
		c.change(func() { stored = len(c.pieces) })
	}
	check(t, c.await(t.Context()))
	check(t, r.record(t.Context(), now, []*chain{c}, first, true))
	moment, err := s.At(t.Context(), "a", time.Time{}, false)
	check(t, err)
	if got := said(t, s, moment, 0); !strings.Contains(got, "before") || strings.Contains(got, "after") {
		t.Errorf("the first record has %d bytes", len(got))
	}
	m.send(c, "SET", "last", "1")
	second := m.mark(c)
	check(t, c.await(t.Context()))
	check(t, r.record(t.Context(), now, []*chain{c}, second, true))
	moment, err = s.At(t.Context(), "a", time.Time{}, false)
	check(t, err)
	if got := said(t, s, moment, 0); !strings.Contains(got, "after") || !strings.HasSuffix(got, "$4\r\nlast\r\n$1\r\n1\r\n") ||
		strings.Count(got, "before") != 1 {
		t.Errorf("the second record has %d bytes", len(got))
	}
}

// A transaction is in one segment, and a mark in its middle is none.
func TestMarkInsideATransaction(t *testing.T) {
	_, c, m := newChain(t, NewStore(newBucket(t), Keys{}))
	m.send(c, "SET", "before", "1")
	m.send(c, "MULTI")
	m.mark(c)
	_, err := io.WriteString(m.conn, "*1\r\n$4\r\nEXEC\r\n")
	check(t, err)
	if err := c.await(t.Context()); err == nil {
		t.Error("the mark was set")
	}
}

// What of a command arrived before the connection broke is in no segment, also when it fills one.
func TestTornCommandThatFillsASegment(t *testing.T) {
	_, c, m := newChain(t, NewStore(newBucket(t), Keys{}))
	m.send(c, "SET", "before", "1")
	random := make([]byte, fullSegment+fullSegment/2)
	_, _ = rand.Read(random)
	_, err := fmt.Fprintf(m.conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s", 2*len(random), random)
	check(t, err)
	check(t, m.conn.Close())
	var over error
	for over == nil { // there is nobody to follow instead
		time.Sleep(time.Millisecond)
		c.change(func() { over = c.over })
	}
	if len(c.pieces)+len(c.waiting) > 0 {
		t.Errorf("%d segments, %d of them in the store, have a half of a command", len(c.pieces)+len(c.waiting), len(c.pieces))
	}
}
