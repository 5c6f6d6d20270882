// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"middleware.hc.cn/operator/internal/redis/resp"
)

// server plays a server outside: it keeps what it hears, and answers by the first word.
type server struct {
	mu      sync.Mutex
	heard   []string
	answers map[string]string
}

func (s *server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		args, err := resp.ReadCommand(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.heard = append(s.heard, strings.Join(args, " "))
		answer := s.answers[args[0]]
		s.mu.Unlock()
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (s *server) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// start runs a relay to a server, and returns how to connect to it.
func start(t *testing.T, s *server, r *Relay) func() (net.Conn, *bufio.Reader) {
	t.Helper()
	behind, front := listen(t), listen(t)
	go func() {
		for {
			conn, err := behind.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	r.Dial = func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", behind.Addr().String())
	}
	r.Report = func(string) {}
	if r.Check == nil {
		r.Check = func(context.Context) error { return nil }
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, front) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func() (net.Conn, *bufio.Reader) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", front.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
}

func command(text string) string {
	words := strings.Fields(text)
	out := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		out += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return out
}

// ask sends a command and reads the first line of its answer.
func ask(t *testing.T, conn net.Conn, in *bufio.Reader, text string) string {
	t.Helper()
	if _, err := io.WriteString(conn, command(text)); err != nil {
		t.Fatal(err)
	}
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.TrimRight(line, "\r\n")
}

// No command that could change anything at the server, or show its data to who has not logged in, gets there.
func TestRelayPassesOnNothingElse(t *testing.T) {
	s := &server{answers: map[string]string{"PING": "+PONG\r\n", "INFO": "$4\r\na:1\n\r\n", "REPLCONF": "+OK\r\n", "CLIENT": "+OK\r\n"}}
	connect := start(t, s, &Relay{Passwords: func() ([]string, error) { return []string{"right", "former"}, nil }})
	conn, in := connect()
	for _, tt := range [][2]string{
		{"INFO", "-NOAUTH"}, {"PSYNC ? -1", "-NOAUTH"}, {"AUTH wrong", "-WRONGPASS"}, {"INFO", "-NOAUTH"}, {"AUTH default former", "+OK"},
		{"AUTH default right", "+OK"}, {"PING", "+PONG"}, {"INFO", "$4"},
	} {
		if got := ask(t, conn, in, tt[0]); !strings.HasPrefix(got, tt[1]) {
			t.Fatalf("%s: %s", tt[0], got)
		}
	}
	if _, err := in.Discard(len("a:1\n\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{"SET a b", "CONFIG SET a b", "CLIENT KILL a", "CLIENT PAUSE 5 ALL", "CLIENT PAUSE 5",
		"CLIENT PAUSE -5 WRITE",
		"CLIENT PAUSE 99999999 WRITE", "CLIENT NO-EVICT on", "SYNC", "EVAL a 0", "FLUSHALL", "SHUTDOWN", "FAILOVER", "PSYNC a", "INFO all",
		"MULTI"} {
		if got := ask(t, conn, in, refused); !strings.HasPrefix(got, "-ERR the relay does not pass on") {
			t.Errorf("%s: %s", refused, got)
		}
	}
	for _, passed := range []string{"CLIENT PAUSE 5000 WRITE", "CLIENT UNPAUSE", "REPLCONF listening-port 6379",
		"REPLCONF capa eof capa psync2 capa rdb-channel-repl", "REPLCONF capa dual-channel"} {
		if got := ask(t, conn, in, passed); got != "+OK" {
			t.Errorf("%s: %s", passed, got)
		}
	}
	want := []string{"PING", "INFO", "CLIENT PAUSE 5000 WRITE", "CLIENT UNPAUSE", "REPLCONF listening-port 6379",
		"REPLCONF capa eof capa psync2"}
	if got := s.said(); !slices.Equal(got, want) {
		t.Errorf("the server heard %q", got)
	}
	for _, nonsense := range []string{"GET / HTTP/1.1\r\n\r\n", "*99999999\r\n", "*1\r\n$99999999\r\n", "*0\r\n", strings.Repeat("x",
		10_000)} {
		conn, in := connect()
		_, _ = io.WriteString(conn, nonsense) // it may be cut off before the end
		if line, err := in.ReadString('\n'); err == nil {
			t.Errorf("%.20q is answered with %q", nonsense, line)
		}
	}
}

// A replica gets what the server sends, byte by byte, but for what goes over to another database; then, and when the relay has just
// begun, it gets a new base.
func TestRelayReadsAlong(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	mark := strings.Repeat("f", 40)
	full := "+FULLRESYNC " + id + " 7\r\n"
	stream := command("SELECT 0") + command("SET a "+strings.Repeat("b",
		5000)) + command("PING") + command("MULTI") + command("PUBLISH a b") + command("EXEC")
	other := command("SELECT 1") + command("SET a c")
	setSlot := func(words string) string { return command("CLUSTER SETSLOT 5461 " + words) }
	moves := setSlot("MIGRATING "+id) + command("SET a b") + setSlot("NODE "+id) + setSlot("STABLE")
	blank := func(n int) string { return command("PING " + strings.Repeat("x", n)) }
	moved := strings.ReplaceAll(blank(81)+command("SET a b")+blank(76)+blank(31), "x", " ")
	for name, tt := range map[string]struct{ sent, passed string }{
		"a user": {full + "$5\r\nREDIS" + stream + command("ACL SETUSER a "+strings.Repeat("b", 5000)) + stream,
			full + "$5\r\nREDIS" + stream},
		"a setting, lowercase": {full + "$5\r\nREDIS" + stream + command("config set dir /") + stream, full + "$5\r\nREDIS" + stream},
		"a setting in a transaction": {full + "$5\r\nREDIS" + command("MULTI") + command("CONFIG SET dir /") + command("EXEC"),
			full + "$5\r\nREDIS" + command("MULTI")},
		"a whole slot":             {full + "$5\r\nREDIS" + stream + command("CLUSTER SYNCSLOTS FINISH"), full + "$5\r\nREDIS" + stream},
		"no command at all":        {full + "$5\r\nREDIS" + stream + command("CLUSTER"), full + "$5\r\nREDIS" + stream},
		"a slot, and a user":       {full + "$5\r\nREDIS" + moves + command("ACL WHOAMI"), full + "$5\r\nREDIS" + moved},
		"a base of a known length": {full + "\n$5\r\nREDIS" + stream, ""},
		"a base that a mark ends":  {full + "\n\n$EOF:" + mark + "\r\nREDIS" + mark, ""},
		"another database":         {full + "$5\r\nREDIS" + stream + other + stream, full + "$5\r\nREDIS" + stream},
		"another database, later": {full + "$5\r\nREDIS" + strings.Repeat(stream, 50) + other, full + "$5\r\nREDIS" + strings.Repeat(stream,
			50)},
		"it goes on":                  {"+CONTINUE\r\n" + stream, ""},
		"it cannot now":               {"-NOMASTERLINK Can't SYNC\r\n", ""},
		"another database, lowercase": {full + "$5\r\nREDIS" + stream + command("select 1"), full + "$5\r\nREDIS" + stream},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: map[string]string{"PSYNC": tt.sent, "REPLCONF": ""}}
			r := &Relay{Passwords: func() ([]string, error) { return nil, nil }}
			connect := start(t, s, r)
			conn, in := connect()
			if _, err := io.WriteString(conn, command("PSYNC "+id+" 8")); err != nil {
				t.Fatal(err)
			}
			want := tt.passed
			if want == "" {
				want = tt.sent
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
				t.Fatalf("the replica got %.60q…, %v", got, err)
			}
			if _, err := io.WriteString(conn, "\n"+command("REPLCONF ACK 7")); err != nil && tt.passed == "" {
				t.Fatal(err)
			}
			if tt.passed != "" {
				if rest, err := io.ReadAll(in); len(rest) > 0 && err == nil {
					t.Errorf("and %q", rest)
				}
			}
			_ = conn.Close()
			conn, in = connect()
			_ = ask(t, conn, in, "PSYNC "+id+" 8")
			wants := []string{"PSYNC ? -1", "PSYNC " + id + " 8"}
			if tt.passed != "" || !strings.HasPrefix(tt.sent, full) {
				wants[1] = "PSYNC ? -1"
			}
			heard := slices.DeleteFunc(s.said(), func(said string) bool { return strings.HasPrefix(said, "REPLCONF") })
			if !slices.Equal(heard, wants) {
				t.Errorf("the server heard %q, want %q", heard, wants)
			}
		})
	}
}

// A server that cannot be followed at the moment is not asked for its data.
func TestRelayChecks(t *testing.T) {
	s := &server{answers: map[string]string{}}
	connect := start(t, s, &Relay{Passwords: func() ([]string, error) { return nil, nil },
		Check: func(context.Context) error { return errors.New("other databases") }})
	conn, in := connect()
	if got := ask(t, conn, in, "PSYNC ? -1"); !strings.HasPrefix(got, "-NOMASTERLINK") || len(s.said()) > 0 {
		t.Errorf("it is answered with %q, and the server heard %q", got, s.said())
	}
}
