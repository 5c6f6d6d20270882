// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"middleware.hc.cn/operator/internal/redis/resp"
)

// Whatever a client says, an instance gets commands in one form, each noted, and none that is refused.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		lines("GET a", "CLUSTER SLOTS", "PSYNC ? -1"), "PING\r\n", "*0\r\n\r\n*-1\r\n", lines("MULTI", "SUBSCRIBE a b", "UNSUBSCRIBE", "EXEC"),
		command("SET", "k", "*1\r\n$4\r\nSYNC\r\n"), lines("CLIENT REPLY OFF"),
		command("CLIENT", "REPLY", "OFF\x00"), "*1\r\n$9999\r\n", "PSYNC \"?\"\r\n",
		command(strings.Repeat("x", 70), "a"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		s := New(hidden{}, false, &Counts{})
		var got bytes.Buffer
		err := s.Requests(NewPipe(bytes.NewReader(said), &got, nil), func(Phase) {})
		var parted bytes.Buffer
		_ = New(hidden{}, false, &Counts{}).Requests(NewPipe(iotest.OneByteReader(bytes.NewReader(said)), &parted, nil), func(Phase) {})
		if err == nil && !bytes.Equal(got.Bytes(), parted.Bytes()) {
			t.Fatalf("%q: the instance gets %q, and %q if it comes byte by byte", said, got.Bytes(), parted.Bytes())
		}
		passed, in := 0, bufio.NewReader(&got)
		for {
			words, failed := resp.ReadCommand(in)
			if failed != nil {
				if err == nil && !errors.Is(failed, io.EOF) {
					t.Fatalf("%q: the instance gets what is no command: %v", said, failed)
				}
				break
			}
			passed++
			name := strings.ToUpper(words[0])
			if slices.Contains([]string{"SYNC", "PSYNC", "REPLCONF", "REPLICAOF", "MIGRATE", "SHUTDOWN"}, name) ||
				name == "CLUSTER" && len(words) > 1 && slices.Contains([]string{"MEET", "FAILOVER", "SYNCSLOTS"}, strings.ToUpper(words[1])) {
				t.Fatalf("%q: the instance gets %q", said, words)
			}
		}
		if noted := count(s.outstanding); noted != passed && (err == nil || noted != passed+1) {
			t.Fatalf("%q: %d commands are noted, %d were passed on (%v)", said, noted, passed, err)
		}
	})
}

// count is how many commands are outstanding.
func count(o *outstanding) (n int) {
	for i := range o.size {
		if r := o.runs[(o.first+i)%len(o.runs)]; r.kind == ordinary {
			n += int(r.count)
		} else {
			n++
		}
	}
	return n
}

// nowhere maps no address.
type nowhere struct{}

func (nowhere) Outside(string, uint16) (Address, bool) { return Address{}, false }

// Whatever an instance says, it is passed on as it is, or the connection ends; and where addresses are rewritten, nothing else changes.
func FuzzReplies(f *testing.F) {
	for _, seed := range []struct{ said, replied string }{
		{lines("GET a", "CLUSTER SLOTS"), bulk("a") + slots2}, {lines("HELLO 3", "CLUSTER NODES"), helloReply3 + verbatim(nodes)},
		{lines("MULTI", "GET a", "CLUSTER SLOTS", "EXEC"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+a\r\n" + slots2},
		{lines("SUBSCRIBE a b", "UNSUBSCRIBE"), confirmation("*", "subscribe", "a", 1)}, {lines("MONITOR"), "+OK\r\n+1 x\r\n"},
		{lines("GET a"), "-MOVED 1 10.0.0.1:6379\r\n"}, {lines("CLUSTER SHARDS"), "*1\r\n%1\r\n+nodes\r\n*1\r\n%1\r\n+ip\r\n+10.0.0.1\r\n"},
		{lines("GET a"), "|1\r\n+a\r\n+b\r\n(123\r\n"}, {lines("CLUSTER SLOTS"), "*1\r\n*1\r\n*2\r\n*1\r\n$-1\r\n:6379\r\n"},
	} {
		f.Add([]byte(seed.said), []byte(seed.replied))
	}
	f.Fuzz(func(t *testing.T, said, replied []byte) {
		if bytes.Contains(bytes.ToUpper(said), []byte("REPLY")) || bytes.Contains(replied, []byte("ERR unknown command")) {
			return // replies are left out
		}
		for _, addresses := range []Addresses{nowhere{}, hidden{}} {
			s := New(addresses, false, &Counts{})
			_ = s.Requests(NewPipe(bytes.NewReader(said), io.Discard, nil), func(Phase) {}) // what was noted counts
			var told bytes.Buffer
			err := s.Replies(NewPipe(bytes.NewReader(replied), &told, nil))
			if addresses == (nowhere{}) && (err == nil && !bytes.Equal(told.Bytes(), replied) || !bytes.HasPrefix(replied, told.Bytes())) {
				t.Fatalf("%q, %q: the client is told %q, %v", said, replied, told.Bytes(), err)
			}
			parts, parted := New(addresses, false, &Counts{}), bytes.Buffer{}
			_ = parts.Requests(NewPipe(bytes.NewReader(said), io.Discard, nil), func(Phase) {}) // as above
			_ = parts.Replies(NewPipe(iotest.OneByteReader(bytes.NewReader(replied)), &parted, nil))
			if err == nil && !bytes.Equal(told.Bytes(), parted.Bytes()) {
				t.Fatalf("%q, %q: the client is told %q, and %q if it comes byte by byte", said, replied, told.Bytes(), parted.Bytes())
			}
			if most := 20*len(replied) + 100; told.Len() > most {
				t.Fatalf("%q, %q: the client is told %d bytes", said, replied, told.Len())
			}
			if err == nil && s.outstanding.admitted && !bytes.ContainsAny(replied, "+:$*%_~#,(=>|!") && !bytes.Contains(replied, []byte("MOVED ")) &&
				!bytes.Contains(replied, []byte("ASK ")) {
				t.Fatalf("%q, %q: errors let a client in", said, replied)
			}
			if cap(s.replies.stack) > 2*deepest {
				t.Fatalf("the stack is %d", cap(s.replies.stack))
			}
		}
	})
}
