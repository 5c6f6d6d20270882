// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// What administers a cluster, and replication, stays inside, however it is written.
func TestRefusedCommands(t *testing.T) {
	for _, line := range []string{
		"PSYNC ? -1", "psync ? -1", "SYNC", "REPLCONF capa eof", "REPLICAOF NO ONE", "SLAVEOF 10.0.0.1 6379", "FAILOVER",
		"MIGRATE h 6379 k 0 5000",
		"CLUSTER MEET 10.0.0.1 6379", "CLUSTER FAILOVER TAKEOVER", "CLUSTER SYNCSLOTS SYNC", "cluster migrateslots x",
		"CLUSTER MIGRATION IMPORT 0 9",
		"CLUSTER FORGET x", "CLUSTER SETSLOT 1 STABLE", "CLUSTER RESET HARD", "CLUSTER REPLICATE x", "CLUSTER SOMETHING-NEW",
		"CLUSTER FLUSHSLOTS",
		"CONFIG SET save x", "CONFIG REWRITE", "CONFIG RESETSTAT", "DEBUG SLEEP 9", "SHUTDOWN NOSAVE", "ACL SETUSER x", "ACL LOAD",
		"MODULE LOAD x",
		"CLIENT PAUSE 1000", "CLIENT KILL TYPE master", "SCRIPT DEBUG YES", "BGSAVE", "SAVE", "RESTORE-ASKING k 0 v",
	} {
		t.Run(line, func(t *testing.T) {
			for form, said := range map[string]string{"array": lines(line), "line": line + "\r\n", "line of its own": line + "\n"} {
				got, told, client, instance := exchange(false, lines("GET a")+said+lines("GET b"), "$1\r\na\r\n-ERR unknown command\r\n$1\r\nb\r\n")
				if want := lines("GET a", refusedCommand, "GET b"); got != want || client != nil || instance != nil {
					t.Errorf("%s: the instance gets %q (%v, %v)", form, got, client, instance)
				}
				if want := "$1\r\na\r\n" + Refusal + "\r\n$1\r\nb\r\n"; told != want {
					t.Errorf("%s: the client is told %q", form, told)
				}
			}
		})
	}
	checkReplies(t, lines("PSYNC ? -1"), "-NOAUTH log in\r\n", "-NOAUTH log in\r\n")
}

func TestCommandsThatPass(t *testing.T) {
	for _, line := range []string{
		"GET a", "CLUSTER INFO", "CLUSTER KEYSLOT x", "CLUSTER MYID", "CONFIG GET *", "ACL WHOAMI", "CLIENT SETNAME x", "CLIENT LIST",
		"MODULE LIST",
		"SCRIPT LOAD x", "FLUSHALL", "DUMP k", "READONLY", "ASKING", "WAIT 1 0", "CLUSTER", "QUIT",
	} {
		if got, _, err, _ := exchange(false, lines(line)+line+"\r\n\r\n*0\r\n*-1\r\n", ""); err != nil || got != lines(line, line) {
			t.Errorf("%s: the instance gets %q, %v", line, got, err)
		}
	}
	large := command("SET", strings.Repeat("k", 100), strings.Repeat("v", 100<<10))
	for _, said := range []string{large, command(strings.Repeat("n", 60)), command(""), command("CLUSTER", ""), command("SET", "", "")} {
		got, _, err, _ := exchange(false, said, "")
		if refused := strings.Contains(said, "CLUSTER"); err != nil || got != said && !refused {
			t.Errorf("%.40q: the instance gets %.80q, %v", said, got, err)
		}
	}
}

// Engines compare names up to a zero byte: a word that is one of theirs with something behind it is not passed on.
func TestNamesWithSomethingBehind(t *testing.T) {
	for _, said := range []string{
		command("CLIENT", "REPLY", "OFF\x00"), command("CLIENT", "REPLY", "SKIP\x00"+strings.Repeat("x", 100)),
		command("CLIENT", "REPLY\x00", "OFF"),
		command("SHUTDOWN\x00x"), command("SHUTDOWN\x00" + strings.Repeat("x", 100)), command("CLUSTER\x00", "RESET"),
		command("CLIENT", "KILL\x00x", "a"),
		command("CLIENT", "PAUSE\x00"+strings.Repeat("x", 100), "9"), command("SCRIPT", "DEBUG\x00", "YES"), command("CLIENT\x7f", "LIST"),
	} {
		got, told, err, _ := exchange(false, said+lines("GET b"), "-ERR unknown command\r\n$1\r\nb\r\n")
		if want := lines(refusedCommand, "GET b"); got != want || told != Refusal+"\r\n$1\r\nb\r\n" || err != nil {
			t.Errorf("%.40q: the instance gets %.80q, the client is told %q, %v", said, got, told, err)
		}
	}
}

// What an instance could read in another way than the gateway ends the connection.
func TestCommandsThatCannotBeUnderstood(t *testing.T) {
	for _, said := range []string{
		"\"PSYNC\" ? -1\r\n", "PSY\\x4eC\r\n", "GET 'a'\r\n", "G\x00ET\r\n", strings.Repeat("a ", 600) + "\r\n", "GET \xff\r\n", "\tGET\r\n",
		"*1\n$4\nPING\n", "* 1\r\n$4\r\nPING\r\n", "*+1\r\n", "*01\r\n", "*-2\r\n", "*1048577\r\n", "*99999999999999999999\r\n", "*1\r\nPING\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$536870913\r\n", "*1\r\n$4\r\nPINGPONG\r\n", "*1\r\n$\r\n", "*2\r\n$4\r\nPING\r\n$1\r\nxyz\r\n", "*\r\n",
		"*" + strings.Repeat("1", 100) + "\r\n", "$4\r\nPING\"\r\n",
	} {
		if got, _, err, _ := exchange(false, lines("GET a")+said, ""); !errors.Is(err, ErrClient) || !strings.HasPrefix(got, lines("GET a")) {
			t.Errorf("%q: %v; the instance gets %q", said, err, got)
		}
	}
	for _, said := range []string{"*2\r\n$3\r\nGET\r\n", "*1\r\n$4\r\nPI", "PIN", "*2\r\n$3\r\nSET\r\n$100\r\nabc"} {
		if _, _, err, _ := exchange(false, said, ""); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestRepliesThatCannotBeUnderstood(t *testing.T) {
	for name, tc := range map[string]struct{ said, replied string }{
		"unasked":                     {"", "+OK\r\n"},
		"unasked error":               {"", "-ERR max number of clients reached\r\n"},
		"unasked message":             {"", "*3\r\n" + bulk("message") + bulk("a") + bulk("b")},
		"one too many":                {lines("GET a"), "+OK\r\n+OK\r\n"},
		"unknown type":                {lines("GET a"), "@1\r\n"},
		"negative":                    {lines("GET a"), "$-5\r\n"},
		"negative array":              {lines("GET a"), "*-5\r\n"},
		"overflow":                    {lines("GET a"), "$9223372036854775805\r\n"},
		"many elements":               {lines("GET a"), "*99999999999\r\n"},
		"nested":                      {lines("GET a"), strings.Repeat("*1\r\n", 2000)},
		"string longer than it says":  {lines("GET a"), "$1\r\nabc\r\n"},
		"long header":                 {lines("GET a"), "$" + strings.Repeat("1", 10<<10) + "\r\n"},
		"line without its end":        {lines("GET a"), "+OK\n"},
		"streamed string":             {lines("GET a"), "$?\r\n"},
		"subscribed in a transaction": {lines("MULTI", "SUBSCRIBE a"), "+OK\r\n+QUEUED\r\n"},
		"confirmation unasked":        {lines("HELLO 3"), helloReply3 + confirmation(">", "subscribe", "a", 1)},
		"impossible count":            {lines("SUBSCRIBE a"), confirmation("*", "subscribe", "a", 7)},
		"left without being in":       {lines("UNSUBSCRIBE a"), confirmation("*", "unsubscribe", "a", -1)},
		"EXEC with fewer replies":     {lines("MULTI", "GET a", "EXEC"), "+OK\r\n+QUEUED\r\n*0\r\n"},
		"empty message":               {lines("SUBSCRIBE a"), "*0\r\n"},
		"huge entry":                  {lines("CLUSTER SLOTS"), "*1\r\n*1\r\n*1\r\n" + bulk(strings.Repeat("x", 20<<10))},
		"deep entry":                  {lines("CLUSTER SLOTS"), strings.Repeat("*1\r\n", 20) + ":1\r\n"},
		"huge table":                  {lines("CLUSTER NODES"), "$99999999\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, told, _, err := exchange(false, tc.said, tc.replied); !errors.Is(err, ErrServer) {
				t.Errorf("%v; the client is told %.80q", err, told)
			} else if strings.HasPrefix(tc.replied, "-") && told != tc.replied {
				t.Errorf("the client is told %q", told)
			}
		})
	}
}

// Large values pass in the memory of the buffers, whatever they contain.
func TestLargeValues(t *testing.T) {
	const size = 3 << 20
	value := strings.Repeat("-MOVED 1 10.0.0.1:6379\r\n", size/24)
	reply := bulk(value) + "+" + strings.Repeat("a", 100<<10) + "\r\n"
	s := New(hidden{}, false, &Counts{})
	requests, replies := strings.NewReader(command("SET", "k", value)+lines("GET k", "EVAL x 0")), strings.NewReader("+OK\r\n"+reply)
	var got, told bytes.Buffer
	got.Grow(8 << 20)
	told.Grow(8 << 20)
	from, back := NewPipe(requests, &got, nil), NewPipe(iotest.HalfReader(replies), &told, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := errors.Join(s.Requests(from, func(Phase) {}), s.Replies(back))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Error(err)
	}
	if got.String() != command("SET", "k", value)+lines("GET k", "EVAL x 0") || told.String() != "+OK\r\n"+reply {
		t.Error("what was passed on is not what was said")
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size/8 { // other tests of the process may allocate, too
		t.Errorf("%d bytes were allocated", allocated)
	}
}

// Outstanding commands are bounded where they cannot be counted together, and those that can are many.
func TestOutstanding(t *testing.T) {
	o := newOutstanding()
	fill := func() (added int) {
		for {
			full, err := o.add(run{kind: multi, count: 1})
			if err != nil {
				t.Fatal(err)
			}
			if full {
				return added
			}
			added++
		}
	}
	if n := fill(); n != mostAtFirst {
		t.Errorf("before the client is let in, %d fit", n)
	}
	for range mostAtFirst {
		o.answered(true)
	}
	o.admit()
	if len(o.runs) > mostAtFirst {
		t.Errorf("nothing takes %d runs", len(o.runs))
	}
	o = newOutstanding()
	o.admit()
	for range 1_000_000 {
		if full, err := o.add(run{kind: ordinary, count: 1}); full || err != nil {
			t.Fatal(full, err)
		}
	}
	if len(o.runs) != 4 {
		t.Errorf("ordinary commands take %d runs", len(o.runs))
	}
	if added := fill(); added != mostRuns-1 || len(o.runs) != mostRuns {
		t.Errorf("%d others fit, in %d", added, len(o.runs))
	}
	done := make(chan error)
	go func() { done <- o.await(run{kind: exec, count: 1}) }()
	o.answered(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
	go func() { done <- o.await(run{kind: exec, count: 1}) }()
	o.finish(nil)
	if err := <-done; !errors.Is(err, ErrFinished) {
		t.Error(err)
	}
}

// A connection is closed by a gateway that ends only where its client would miss nothing.
func TestFinish(t *testing.T) {
	for _, tc := range []struct {
		said, replied string
		finishes      bool
	}{
		{"", "", true},
		{lines("GET a"), "", false},
		{lines("GET a"), "+a\r\n", true},
		{lines("MULTI"), "+OK\r\n", false},
		{lines("MULTI", "EXEC"), "+OK\r\n*0\r\n", true},
		{lines("MULTI", "DISCARD"), "+OK\r\n+OK\r\n", true},
		{lines("WATCH a"), "+OK\r\n", false},
		{lines("WATCH a", "UNWATCH"), "+OK\r\n+OK\r\n", true},
		{lines("SUBSCRIBE a"), confirmation("*", "subscribe", "a", 1), false},
		{lines("SUBSCRIBE a", "UNSUBSCRIBE"), confirmation("*", "subscribe", "a", 1) + confirmation("*", "unsubscribe", "a", 0), true},
		{lines("MONITOR"), "+OK\r\n", false},
		{lines("CLIENT REPLY OFF"), "+OK\r\n", false},
		{lines("CLIENT REPLY SKIP"), "+OK\r\n", false},
		{lines("MONITOR", "RESET"), "+OK\r\n+RESET\r\n", true},
	} {
		s := New(hidden{}, false, &Counts{})
		requests := func(said string) error {
			return s.Requests(NewPipe(strings.NewReader(said), io.Discard, nil), func(Phase) {})
		}
		err := errors.Join(requests(tc.said), s.Replies(NewPipe(strings.NewReader(tc.replied), io.Discard, nil)))
		if got := s.Finish(); got != tc.finishes || err != nil {
			t.Errorf("%q, %q: finished %t, %v", tc.said, tc.replied, got, err)
		}
		err = requests(lines("GET a"))
		if errors.Is(err, ErrFinished) != tc.finishes {
			t.Errorf("%q: a later command: %v", tc.said, err)
		}
	}
}

// A session that is stopped passes on no command that comes, and every reply to those that came before.
func TestStop(t *testing.T) {
	s := New(hidden{}, false, &Counts{})
	var got, told bytes.Buffer
	said := io.MultiReader(strings.NewReader(lines("MULTI", "GET a")), stopping{s}, strings.NewReader(lines("GET b")))
	if err := s.Requests(NewPipe(said, &got, nil), func(Phase) {}); !errors.Is(err, ErrFinished) || got.String() != lines("MULTI", "GET a") {
		t.Errorf("the instance gets %q, %v", got.String(), err)
	}
	finished := false
	flushing := func() func() { finished = s.Finish(); return nil }
	for _, part := range []string{"+OK\r\n", "+QUEUED\r\n"} {
		if s.Finish() || finished {
			t.Error("it is finished before it is answered")
		}
		if err := s.Replies(NewPipe(strings.NewReader(part), &told, flushing)); err != nil {
			t.Error(err)
		}
	}
	if told.String() != "+OK\r\n+QUEUED\r\n" || !finished {
		t.Errorf("the client is told %q, finished %t", told.String(), finished)
	}
}

// stopping stops a session when it is read from.
type stopping struct{ session *Session }

func (s stopping) Read([]byte) (int, error) {
	s.session.Stop()
	return 0, io.EOF
}

// An instance that wants a password answers with errors until it has got it; all else shows that the client is let in.
func TestEntry(t *testing.T) {
	for _, tc := range []struct {
		said, replied string
		admitted      bool
	}{
		{"GET a", "", false},
		{"GET a", "-NOAUTH log in\r\n", false},
		{"AUTH x", "-WRONGPASS\r\n", false},
		{"RESET", "+RESET\r\n", false},
		{"HELLO 3", "-NOAUTH HELLO\r\n", false},
		{"PSYNC ? -1", "-ERR unknown command\r\n", false},
		{"AUTH x", "+OK\r\n", true},
		{"HELLO 3", helloReply3, true},
		{"GET a", "-MOVED 1 10.0.0.1:6379\r\n", true},
		{"GET a", "$-1\r\n", true},
		{"SUBSCRIBE a", confirmation("*", "subscribe", "a", 1), true},
	} {
		s := New(hidden{}, false, &Counts{})
		_ = s.Requests(NewPipe(strings.NewReader(lines(tc.said)), io.Discard, nil), func(Phase) {})
		if err := s.Replies(NewPipe(strings.NewReader(tc.replied), io.Discard, nil)); err != nil {
			t.Error(tc.said, err)
		}
		if admitted, resting := s.Entry(); admitted != tc.admitted || resting != (tc.replied != "") {
			t.Errorf("%q is answered %q: let in %t, resting %t", tc.said, tc.replied, admitted, resting)
		}
	}
}

// While nothing passes, a pipe has no buffers, and what came in parts passes whole.
func TestPipesRest(t *testing.T) {
	s := New(hidden{}, false, &Counts{})
	said := lines("GET a") + command("SET", "k", strings.Repeat("v", 3*bufferSize)) + lines("GET b", "GET c")
	var got bytes.Buffer
	var pipe *Pipe
	from := &resting{parts: []string{said[:10], said[10:beginningSize], said[beginningSize:]}, rests: func() {
		if pipe.reader != nil && pipe.reader.Buffered() == 0 && got.String() == said {
			t.Error("a pipe at rest has buffers")
		}
	}}
	pipe = NewPipe(from, &got, nil)
	if err := s.Requests(pipe, func(Phase) {}); err != nil || got.String() != said {
		t.Errorf("%d bytes came, %v", got.Len(), err)
	}
	if pipe.reader != nil || pipe.writer != nil {
		t.Error("a pipe that has ended has buffers")
	}
}

// resting says its parts one after the other.
type resting struct {
	parts []string
	rests func()
}

func (r *resting) Read(into []byte) (int, error) {
	r.rests()
	if len(r.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(into, r.parts[0])
	if r.parts[0] = r.parts[0][n:]; r.parts[0] == "" {
		r.parts = r.parts[1:]
	}
	return n, nil
}

func ExampleSession() {
	s := New(hidden{}, false, &Counts{})
	var told strings.Builder
	_ = s.Requests(NewPipe(strings.NewReader("GET k\r\n"), io.Discard, nil), func(Phase) {})
	_ = s.Replies(NewPipe(strings.NewReader("-MOVED 12706 10.0.0.1:6379\r\n"), &told, nil))
	fmt.Print(told.String())
	// Output: -MOVED 12706 redis.example.com:7001
}
