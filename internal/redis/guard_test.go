// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// scripted is a connection on which the answers have arrived already, and what is asked makes no difference. More answers
// come with the second thing that is asked.
type scripted struct {
	net.Conn
	answers, more io.Reader
	asked         bool
}

func (c *scripted) Read(p []byte) (int, error) { return c.answers.Read(p) }
func (c *scripted) Write(p []byte) (int, error) {
	if c.asked && c.more != nil {
		c.answers, c.more = c.more, nil
	}
	c.asked = true
	return len(p), nil
}
func (c *scripted) Close() error                     { return nil }
func (c *scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *scripted) SetDeadline(time.Time) error      { return nil }
func (c *scripted) SetReadDeadline(time.Time) error  { return nil }
func (c *scripted) SetWriteDeadline(time.Time) error { return nil }

// noGreeting is the answer to HELLO of servers before Redis 6; nothing else follows without a password.
const noGreeting = "-ERR unknown command\r\n"

// answers is a node that greets with these bytes and answers with the others, whatever it is asked.
func answers(t testing.TB, greeting string, text []byte) *Node {
	pool := NewPool(Options{Dialer: func(context.Context, string) (net.Conn, error) {
		return &scripted{answers: strings.NewReader(greeting), more: bytes.NewReader(text)}, nil
	}})
	t.Cleanup(pool.Close)
	return pool.Node("10.0.0.7:6379", Credentials{})
}

// allocated is what a function allocates, and what whoever else runs meanwhile does.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// fewest is the least that a function allocates in some attempts, because others allocate meanwhile.
func fewest(most int, f func()) int {
	least := allocated(f)
	for range 5 {
		if least <= most {
			break
		}
		least = min(least, allocated(f))
	}
	return least
}

// Before a server has logged anybody in and after it, no answer makes the library allocate what has not arrived, and the
// error says what is wrong with it.
func TestGuardRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"overflow of a length":     {"$9223372036854775805\r\n", "announces a length that is no number"},
		"huge string":              {"$999999999\r\n", "longer than 768 KiB"},
		"huge array":               {"*60000000\r\n", "more than 32768 elements"},
		"many arrays":              {"*30000\r\n*30000\r\n", "more than 32768 elements"},
		"many strings":             {"*3\r\n$400000\r\n" + strings.Repeat("a", 400000) + "\r\n$400000\r\n", "longer than 768 KiB"},
		"elements and a string":    {"*20000\r\n$600000\r\n", "longer than 768 KiB"},
		"endless simple string":    {"+" + strings.Repeat("a", longestLine+2), "longer than 16 KiB"},
		"endless error":            {"-" + strings.Repeat("a", longestLine+2), "longer than 16 KiB"},
		"endless length":           {"$" + strings.Repeat("0", 100), "announces a length that is no number"},
		"nested":                   {strings.Repeat("*1\r\n", 100), "nested deeper than 16 levels"},
		"negative":                 {"$-5\r\n", "announces a length that is no number"},
		"signed":                   {"$+5\r\nhello\r\n", "announces a length that is no number"},
		"no length":                {"*\r\n", "announces a length that is no number"},
		"longer than announced":    {"$2\r\nhello\r\n", "longer than it was announced"},
		"lines of another sort":    {"+OK\n", "does not end as lines of the protocol do"},
		"map":                      {"%60000000\r\n", `begins with '%'`},
		"push":                     {">60000000\r\n", `begins with '>'`},
		"attribute":                {"|60000000\r\n+a\r\n", `begins with '|'`},
		"verbatim string":          {"=2147483647\r\n", `begins with '='`},
		"another protocol":         {"HTTP/1.1 400 Bad Request\r\n", `begins with 'H'`},
		"endless lines of nothing": {strings.Repeat("\r\n", 1000), `begins with '\r'`},
	} {
		for _, beforeLogin := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before login: %t", name, beforeLogin), func(t *testing.T) {
				greeting, answer := noGreeting, tt.answer
				if beforeLogin {
					greeting, answer = tt.answer, ""
				}
				var err error
				const most = 1 << 20
				if n := fewest(most, func() { _, err = answers(t, greeting, []byte(answer)).do(t.Context(), describeCommands[0]) }); n > most+
					2*len(tt.answer) {
					t.Errorf("%d bytes are allocated for %d that arrive", n, len(tt.answer))
				}
				// The greeting is read as a map: the library may be the first to see that it is none.
				if !errors.Is(err, ErrProtocol) || !beforeLogin && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want one that says %q", err, tt.want)
				}
			})
		}
	}
}

// However the bytes of an answer come in, they are judged the same.
func TestGuardJudgesPieces(t *testing.T) {
	whole := "+OK\r\n-ERR no\r\n:5\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n*3\r\n$5\r\nhello\r\n*2\r\n:1\r\n$2\r\n\r\n\r\n*0\r\n+next\r\n"
	bad := "*2\r\n$3\r\nabc\r\n$99999999\r\n"
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
	} {
		g := newGuard(&scripted{answers: cut(strings.NewReader(whole))}, ordinaryLimits)
		if got, err := io.ReadAll(g); err != nil || string(got) != whole {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		g = newGuard(&scripted{answers: cut(strings.NewReader(bad))}, ordinaryLimits)
		got, err := io.ReadAll(g)
		if !tooLong(err) || !strings.HasPrefix(bad, string(got)) || len(got) > strings.LastIndexByte(bad, '\n') {
			t.Errorf("%s: %q is delivered, %v", name, got, err)
		}
		if n, again := g.Read(make([]byte, 10)); n > 0 || !errors.Is(again, err) {
			t.Errorf("%s: after the error %d bytes are read, %v", name, n, again)
		}
	}
}

// The limits are those of an exchange: the next one begins anew.
func TestGuardCountsExchanges(t *testing.T) {
	answer := "$500000\r\n" + strings.Repeat("a", 500000) + "\r\n"
	g := newGuard(&scripted{answers: strings.NewReader("+hello\r\n" + answer + answer + answer)}, ordinaryLimits)
	for _, size := range []int{len("+hello\r\n"), len(answer), len(answer)} {
		if _, err := g.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, g, int64(size)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(io.Discard, g); !tooLong(err) {
		t.Errorf("a second answer in one exchange: %v", err)
	}
}

// worstNodes is CLUSTER NODES of the largest cluster that admission allows, with the longest names, every second slot on
// another master, some nodes that are gone and many open slots.
func worstNodes() string {
	const instances, shards, gone, open = 1000, 500, 100, 3000
	domain := "." + strings.Repeat("h", 63) + "." + strings.Repeat("n", 63) + ".svc"
	var text strings.Builder
	for i := range instances + gone {
		flags := "slave,fail?"
		if i == 0 {
			flags = "myself,master,nofailover"
		}
		fmt.Fprintf(&text,
			"%040x fd00:1234:5678:9abc:def0:1234:5678:%04x:6379@16379,%s-%03d-0%s %s %040x 1764000000000 1764000000000 18446744073709551615 disconnected",
			i, i, strings.Repeat("p", 45), i%shards, domain, flags, i%shards)
		for slot := i; i < shards && slot < slots.Count; slot += shards {
			fmt.Fprintf(&text, " %d", slot)
		}
		for slot := 0; i == 0 && slot < open; slot++ {
			fmt.Fprintf(&text, " [%d->-%040x]", slots.Count-1-slot, 1)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// Nothing is refused that honest servers answer at the limits of admission.
func TestGuardLetsThroughWhatHonestServersAnswer(t *testing.T) {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	array := func(elements ...string) string {
		return fmt.Sprintf("*%d\r\n%s", len(elements), strings.Join(elements, ""))
	}
	repeated := func(n int, element string) string { return fmt.Sprintf("*%d\r\n%s", n, strings.Repeat(element, n)) }
	// An entry of CLUSTER GETSLOTMIGRATIONS of Valkey 9, which remembers 1000 (cluster-slot-migration-log-max-len).
	var job []string
	for _, name := range []string{"name", "operation", "slot_ranges", "target_node", "source_node", "create_time", "last_update_time",
		"last_ping_time",
		"state", "message", "cow_size", "remaining_repl_size"} {
		job = append(job, bulk(name), bulk("0-16383 and more"))
	}
	nodes := worstNodes()
	for name, answer := range map[string]string{
		"CLUSTER NODES":             bulk(nodes),
		"CLUSTER GETSLOTMIGRATIONS": repeated(1000, array(job...)),
		"ACL LIST of 200 users":     repeated(201, bulk("user "+strings.Repeat("u", 64)+" "+strings.Repeat("r", 3000))),
		"keys of slots": array(repeated(2000, bulk(strings.Repeat("k", 100))), repeated(2000, bulk(strings.Repeat("k", 100))),
			repeated(2000, bulk("k"))),
		"answers to a pipeline":      strings.Repeat(":9223372036854775807\r\n", commandsAtOnce),
		"refusals of a pipeline":     strings.Repeat("-ERR "+strings.Repeat("x", 150)+"\r\n", commandsAtOnce),
		"CONFIG GET of all settings": repeated(800, bulk(strings.Repeat("v", 200))),
	} {
		g := newGuard(&scripted{answers: strings.NewReader("+hello\r\n" + answer)}, ordinaryLimits)
		_, _ = io.CopyN(io.Discard, g, int64(len("+hello\r\n")))
		_, _ = g.Write([]byte("x"))
		if got, err := io.ReadAll(g); err != nil || len(got) != len(answer) {
			t.Errorf("%s of %d bytes: %d are delivered, %v", name, len(answer), len(got), err)
		}
	}
	parsed, err := parseNodes(nodes)
	if err != nil || len(parsed.peers) != 1100 || len(parsed.migrating) != 3000 {
		t.Errorf("%d nodes and %d open slots, %v", len(parsed.peers), len(parsed.migrating), err)
	}
}

// What users decide the size of is read within larger limits, and refused beyond those with a remedy.
func TestLargeAnswers(t *testing.T) {
	payload := strings.Repeat("f", 2<<20)
	text, err := answers(t, noGreeting, fmt.Appendf(nil, "$%d\r\n%s\r\n", len(payload), payload)).Functions(t.Context())
	if err != nil || text != payload {
		t.Errorf("functions of %d bytes: %d, %v", len(payload), len(text), err)
	}
	_, err = answers(t, noGreeting, []byte("+OK\r\n+string\r\n")).Fingerprint(t.Context(), "key")
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("the connection ends: %v", err)
	}
}

// BenchmarkGuard compares reading an ordinary answer, of 20 nodes, through the guard with reading it without one.
func BenchmarkGuard(b *testing.B) {
	table := strings.Repeat(
		"07c37dfeb235213a872192d90877d0cd55635b91 10.0.0.7:6379@16379,c-0-0.c.n.svc master - 0 1764000000000 5 connected 0-5460\n", 20)
	answer := []byte("+hello\r\n" + fmt.Sprintf("$%d\r\n%s\r\n", len(table), table) + "*2\r\n$20\r\ncluster-node-timeout\r\n$4\r\n5000\r\n")
	buffer := make([]byte, 8<<10)
	read := func(b *testing.B, wrap func(net.Conn) net.Conn) {
		b.SetBytes(int64(len(answer)))
		for b.Loop() {
			conn := wrap(&scripted{answers: bytes.NewReader(answer)})
			for n := 0; n < len(answer); {
				more, err := conn.Read(buffer)
				if err != nil {
					b.Fatal(err)
				}
				n += more
			}
		}
	}
	b.Run("without", func(b *testing.B) { read(b, func(conn net.Conn) net.Conn { return conn }) })
	b.Run("guarded", func(b *testing.B) { read(b, func(conn net.Conn) net.Conn { return newGuard(conn, ordinaryLimits) }) })
}

// BenchmarkDescribe is what the guard's share is to be compared with: asking a node of 20 everything, without a network.
func BenchmarkDescribe(b *testing.B) {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	table := "07c37dfeb235213a872192d90877d0cd55635b91 10.0.0.7:6379@16379 myself,master - 0 0 5 connected 0-5460\n"
	for i := range 19 {
		table += fmt.Sprintf("%040x 10.0.0.7:6379@16379,c-0-0.c.n.svc master - 0 1764000000000 5 connected %d\n", i, 6000+i)
	}
	text := bulk(readCapture(b, engines[0], "replica.info")) + bulk(readCapture(b, engines[0], "replica.clusterinfo")) + bulk(table) +
		"*2\r\n$20\r\ncluster-node-timeout\r\n$4\r\n5000\r\n*2\r\n*-1\r\n*-1\r\n"
	pool := NewPool(Options{Dialer: func(context.Context, string) (net.Conn, error) { return &repeating{text: text}, nil }})
	b.Cleanup(pool.Close)
	node := pool.Node("10.0.0.7:6379", Credentials{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := node.Describe(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// repeating gives the same answer again and again, after a greeting.
type repeating struct {
	scripted
	text    string
	greeted bool
}

func (c *repeating) Write(p []byte) (int, error) {
	c.answers = strings.NewReader(c.text)
	if !c.greeted {
		c.answers, c.greeted = strings.NewReader(noGreeting), true
	}
	return len(p), nil
}

// Numbers, counts and lengths that no honest server has are refused where they would be worked with.
func TestImplausibleAnswers(t *testing.T) {
	const beyond = ":9223372036854775807\r\n"
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	for name, tt := range map[string]struct {
		answer, want string
		call         func(context.Context, *Node) error
	}{
		"memory of a key": {beyond, "more than a key can take", func(ctx context.Context, n *Node) error {
			_, err := n.MemoryUsage(ctx, []string{"a"}, false)
			return err
		}},
		"keys of a slot": {beyond, "more than a server can have", func(ctx context.Context, n *Node) error {
			_, err := n.CountKeysInSlots(ctx, slots.Of(1))
			return err
		}},
		"negative keys": {":-1\r\n", "more than a server can have", func(ctx context.Context, n *Node) error {
			_, err := n.CountKeysInSlots(ctx, slots.Of(1))
			return err
		}},
		"more keys than asked for": {"*2\r\n+a\r\n+b\r\n", "2 keys instead of 1 at most", func(ctx context.Context, n *Node) error {
			_, err := n.KeysInSlots(ctx, slots.Of(1), 1)
			return err
		}},
		"many users": {"*1001\r\n" + strings.Repeat(bulk("user a on"), 1001) + "*0\r\n", "1001 users",
			func(ctx context.Context, n *Node) error { _, err := n.Access(ctx); return err }},
		"a digest": {"*1\r\n" + bulk("user default on #abc") + "*0\r\n", "a digest has 3 characters",
			func(ctx context.Context, n *Node) error { _, err := n.Access(ctx); return err }},
		"a value": {"*2\r\n+hz\r\n" + bulk(strings.Repeat("1", longestValue+1)), "16385 of 16384",
			func(ctx context.Context, n *Node) error { _, err := n.ConfigGet(ctx, "hz"); return err }},
		"many settings": {"*2002\r\n" + strings.Repeat("+a\r\n", 2002), "1001 settings",
			func(ctx context.Context, n *Node) error { _, err := n.ConfigGet(ctx, "hz"); return err }},
	} {
		err := tt.call(t.Context(), answers(t, noGreeting, []byte(tt.answer)))
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, tt.want)
		}
	}
}
