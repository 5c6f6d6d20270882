// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/resp"
)

// script is a server that answers as a function says, and OK to what that has no answer to. It keeps the commands that it got.
type script struct {
	mu     sync.Mutex
	got    []string
	answer func(command string) string
}

// end is a script's server as one end of a move.
func (s *script) end(t *testing.T, id string) End {
	t.Helper()
	pool := redis.NewPool(redis.Options{IOTimeout: time.Minute, Dialer: func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go s.serve(theirs)
		return ours, nil
	}})
	t.Cleanup(pool.Close)
	return End{Node: pool.Node("10.0.0.1:6379", redis.Credentials{}), ID: id, IP: "10.0.0.1", Port: 6379}
}

func (s *script) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // the client is gone
	in, out := bufio.NewReaderSize(conn, 1<<20), bufio.NewWriterSize(conn, 1<<20)
	for {
		args, err := resp.ReadCommand(in)
		if err != nil {
			return
		}
		reply := "-ERR unknown command 'hello'\r\n"
		if command := strings.Join(args, " "); !strings.HasPrefix(strings.ToLower(command), "hello") {
			if reply = s.reply(command); reply == "" {
				reply = "+OK\r\n"
			}
		}
		_, _ = out.WriteString(reply)
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

func (s *script) reply(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if command != "ASKING" {
		s.got = append(s.got, command)
	}
	if s.answer == nil {
		return ""
	}
	return s.answer(command)
}

// commands are those that begin with a word.
func (s *script) commands(word string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, command := range s.got {
		if strings.HasPrefix(command, word) {
			found = append(found, command)
		}
	}
	return found
}

// holding answers what a server says that has keys with values.
func holding(values map[string]string) func(string) string {
	return func(command string) string {
		words := strings.Fields(command)
		value, has := values[words[len(words)-1]]
		switch {
		case words[0] == "TYPE" && !has:
			return "+none\r\n"
		case words[0] == "TYPE":
			return "+string\r\n"
		case words[0] == "DUMP":
			return fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
		case words[0] == "UNLINK":
			return ":1\r\n"
		}
		return ""
	}
}

// refusing answers what another function does, and an error to commands that begin with a word.
func refusing(word string, otherwise func(string) string) func(string) string {
	return func(command string) string {
		if strings.HasPrefix(command, word) {
			return "-ERR no\r\n"
		}
		return otherwise(command)
	}
}

// stepping is a clock on which so much passes between two looks.
func stepping(step time.Duration) func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(step)
		return now
	}
}

// newDrain is a move between two scripts.
func newDrain(t *testing.T, from, to *script, o Options) *drain {
	t.Helper()
	o = o.withDefaults()
	return &drain{from: from.end(t, "from"), to: to.end(t, "to"), options: o, pace: newPace(),
		limit: &limiter{now: o.Now, perSecond: o.KeysPerSecond}, alone: make(chan struct{}, 1), giveUp: o.Now().Add(o.Slice)}
}
