// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"middleware.hc.cn/operator/internal/gateway/protocol"
	"middleware.hc.cn/operator/internal/redis/resp"
)

// instance plays one: it keeps what it hears, and answers by the first word.
type instance struct {
	net.Listener
	answers  map[string]string
	takes    atomic.Int64 // nanoseconds to answer
	accepted atomic.Int64
	mu       sync.Mutex
	heard    []string
}

func startInstance(t testing.TB, answers map[string]string) *instance {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	i := &instance{Listener: listener, answers: answers}
	go func() {
		for {
			conn, err := i.Accept()
			if err != nil {
				return
			}
			i.accepted.Add(1)
			go i.serve(conn)
		}
	}()
	return i
}

func (i *instance) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		words, err := resp.ReadCommand(in)
		if err != nil {
			return
		}
		i.mu.Lock()
		i.heard = append(i.heard, strings.Join(words, " "))
		i.mu.Unlock()
		time.Sleep(time.Duration(i.takes.Load()))
		if _, err := io.WriteString(conn, i.answers[words[0]]); err != nil {
			return
		}
	}
}

func (i *instance) said() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.heard)
}

// running is a gateway of a test.
type running struct {
	*Gateway
	t     testing.TB
	path  string
	stop  context.CancelFunc
	ended chan struct{}

	mu  sync.Mutex
	log []string
}

func (r *running) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func writeMap(t testing.TB, path string, instances ...Instance) {
	t.Helper()
	writeWhole(t, path, Map{Instances: instances})
}

func writeWhole(t testing.TB, path string, m Map) {
	t.Helper()
	text, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startGateway runs a gateway on a map.
func startGateway(t testing.TB, set func(*Options), instances ...Instance) *running {
	t.Helper()
	r := &running{t: t, path: filepath.Join(t.TempDir(), "map.json"), ended: make(chan struct{})}
	writeMap(t, r.path, instances...)
	o := Options{MapFile: r.path, Host: "127.0.0.1", MaxConnections: 100, MaxPerSource: 100, MaxPerInstance: 100,
		DrainTimeout: 20 * time.Second,
		Log: funcr.New(func(_, args string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.log = append(r.log, args)
		}, funcr.Options{})}
	if set != nil {
		set(&o)
	}
	g, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Gateway = g
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		if err := g.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { r.stop(); <-r.ended })
	eventually(t, g.ready)
	return r
}

// ready reports whether all ports of a map are open.
func (g *Gateway) ready() bool { return g.served.Load().Map != "" }

func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not come true")
}

// free is a port that nobody listens on.
func free(t testing.TB) uint16 {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return uint16(listener.Addr().(*net.TCPAddr).Port)
}

func (i *instance) on(port uint16) Instance {
	return Instance{Name: "cache-0-0", Port: port, Outside: "redis.example.com:7000", Inside: []string{i.Addr().String()}}
}

func connect(t testing.TB, port uint16) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

// ask says something, and returns the line that is answered.
func ask(conn net.Conn, in *bufio.Reader, text string) (string, error) {
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	return in.ReadString('\n')
}

func TestGateway(t *testing.T) {
	i := startInstance(t, map[string]string{"PING": "+PONG\r\n", "gateway-refused": "-ERR unknown command\r\n"})
	i.answers["GET"] = "-MOVED 1 " + i.Addr().String() + "\r\n"
	port := free(t)
	g := startGateway(t, nil, i.on(port))
	conn, in := connect(t, port)
	for said, want := range map[string]string{
		"PING\r\n":                       "+PONG\r\n",
		"*2\r\n$3\r\nGET\r\n$1\r\na\r\n": "-MOVED 1 redis.example.com:7000\r\n",
		"PSYNC ? -1\r\n":                 "-ERR the gateway does not pass on this command: it is for the cluster's administration\r\n",
	} {
		if got, err := ask(conn, in, said); got != want {
			t.Errorf("%q is answered %q, %v", said, got, err)
		}
	}
	if heard := i.said(); len(heard) != 3 || slices.Contains(heard, "PSYNC ? -1") {
		t.Errorf("the instance heard %q", heard)
	}
	// What cannot be understood ends the connection, and is told without what was said.
	if got, err := ask(conn, in, "AUTH \"s3cret\"\r\n"); err == nil {
		t.Errorf("%q is answered", got)
	}
	eventually(t, func() bool { return strings.Contains(g.logged(), "the client's commands cannot be understood") })
	if strings.Contains(g.logged(), "s3cret") {
		t.Errorf("a password is logged:\n%s", g.logged())
	}
	// A client that ends its side gets what it asked for.
	conn, in = connect(t, port)
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(in); string(all) != "+PONG\r\n" {
		t.Errorf("%q, %v", all, err)
	}
	answer := httptest.NewRecorder()
	g.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, line := range []string{
		"redis_gateway_connections_total 2", "redis_gateway_commands_refused_total 1", "redis_gateway_addresses_rewritten_total 1",
		`redis_gateway_protocol_errors_total{side="client"} 1`, `redis_gateway_connections_refused_total{reason="limit"} 0`,
	} {
		if !strings.Contains(answer.Body.String(), line+"\n") {
			t.Errorf("%q is not among the metrics:\n%s", line, answer.Body)
		}
	}
}

// What is served is told with the digest of the map, and what is not known of it.
func TestReadiness(t *testing.T) {
	i := startInstance(t, nil)
	port, taken := free(t), i.Addr().(*net.TCPAddr).Port
	first, second := i.on(port), i.on(uint16(taken))
	second.Name, second.Outside, second.Inside = "cache-0-1", "redis.example.com:7001", []string{"pod.invalid.:6379"}
	g := startGateway(t, nil, first)
	told := func(status int, want string) func() bool {
		return func() bool {
			answer := httptest.NewRecorder()
			g.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
			return answer.Code == status && answer.Body.String() == want+"\n"
		}
	}
	digest := func() string {
		text, err := os.ReadFile(g.path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(text))
	}
	addresses := fmt.Sprintf(`"addresses":{"cache-0-0":[%q]}`, i.Addr())
	eventually(t, told(200, `{"map":"`+digest()+`",`+addresses+`}`))
	writeMap(t, g.path, first, second)
	eventually(t, told(503, `{"reason":"not all ports of the map are open"}`))
	second.Port = free(t)
	writeMap(t, g.path, first, second)
	eventually(t, told(200, `{"map":"`+digest()+`","unknown":["cache-0-1"],`+addresses+`}`))
	served := digest()
	if err := os.WriteFile(g.path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return g.figures.filesInvalid.Load() == 1 })
	eventually(t, told(200, `{"map":"`+served+`","unknown":["cache-0-1"],`+addresses+`}`))
	g.stop()
	<-g.ended
	eventually(t, told(503, `{"reason":"it ends"}`))
}

// The map may change, and a wrong one changes nothing.
func TestMapChanges(t *testing.T) {
	first, second := startInstance(t, map[string]string{"PING": "+FIRST\r\n"}), startInstance(t, map[string]string{"PING": "+SECOND\r\n"})
	port, another := free(t), free(t)
	g := startGateway(t, nil, first.on(port))
	old, oldIn := connect(t, port)
	if got, err := ask(old, oldIn, "PING\r\n"); err != nil {
		t.Fatal(got, err)
	}
	pings := func(port uint16, want string) bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return want == ""
		}
		defer func() { _ = conn.Close() }()
		got, _ := ask(conn, bufio.NewReader(conn), "PING\r\n")
		return got == want
	}
	if err := os.WriteFile(g.path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return g.figures.filesInvalid.Load() == 1 })
	if !pings(port, "+FIRST\r\n") || !g.ready() {
		t.Error("a wrong map changed something")
	}
	third := startInstance(t, map[string]string{"PING": "+THIRD\r\n"})
	added := third.on(another)
	added.Name, added.Outside = "cache-0-1", "redis.example.com:7001"
	writeMap(t, g.path, second.on(port), added)
	eventually(t, func() bool { return pings(port, "+SECOND\r\n") && pings(another, "+THIRD\r\n") })
	writeMap(t, g.path, added)
	eventually(t, func() bool { return pings(port, "") && pings(another, "+THIRD\r\n") })
	if got, err := ask(old, oldIn, "PING\r\n"); got != "+FIRST\r\n" {
		t.Errorf("a connection from before is answered %q, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	i := startInstance(t, map[string]string{"PING": "+PONG\r\n"})
	port := free(t)
	g := startGateway(t, func(o *Options) { o.MaxPerSource = 2 }, i.on(port))
	first, in := connect(t, port)
	if got, err := ask(first, in, "PING\r\n"); err != nil {
		t.Fatal(got, err)
	}
	connect(t, port)
	_, third := connect(t, port)
	if got, _ := third.ReadString('\n'); got != "-ERR max number of clients reached\r\n" && got != "" {
		t.Errorf("the third of a source is told %q", got)
	}
	if n := g.figures.refused[tooManyOfSource].Load(); n != 1 {
		t.Errorf("%d were refused", n)
	}
	_ = first.Close()
	eventually(t, func() bool {
		conn, in := connect(t, port)
		got, _ := ask(conn, in, "PING\r\n")
		_ = conn.Close()
		return got == "+PONG\r\n"
	})
	l := limits{total: 2, perSource: 2, perInstance: 1}
	v6 := func(text string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(text), Port: 1} }
	for n, tc := range []struct {
		from net.Addr
		want refusal
	}{{v6("2001:db8::1"), admitted}, {v6("2001:db8::2"), admitted}, {v6("2001:db8:1::1"), tooMany}} {
		if _, why := l.enter(tc.from); why != tc.want {
			t.Errorf("%d: %d", n, why)
		}
	}
	leave, ok := l.reach("a")
	_, again := l.reach("a")
	_, other := l.reach("b")
	leave()
	if _, later := l.reach("a"); !ok || again || !other || !later {
		t.Errorf("an instance with room for one: %t, %t; another: %t; once there is room: %t", ok, again, other, later)
	}
	if l.total = 9; len(l.sources) != 1 {
		t.Errorf("a network of IPv6 is %d sources", len(l.sources))
	}
}

// A gateway that ends closes who is at rest, waits for who is not, and closes all at last.
func TestDrain(t *testing.T) {
	i := startInstance(t, map[string]string{"PING": "+PONG\r\n", "MULTI": "+OK\r\n", "EXEC": "*0\r\n"})
	port := free(t)
	g := startGateway(t, nil, i.on(port))
	resting, restingIn := connect(t, port)
	busy, busyIn := connect(t, port)
	for _, e := range []error{
		func() error { _, err := ask(resting, restingIn, "PING\r\n"); return err }(),
		func() error { _, err := ask(busy, busyIn, "MULTI\r\n"); return err }(),
	} {
		if e != nil {
			t.Fatal(e)
		}
	}
	g.stop()
	if _, err := restingIn.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("the one at rest: %v", err)
	}
	if g.ready() {
		t.Error("it is ready while it ends")
	}
	if got, err := ask(busy, busyIn, "EXEC\r\n"); got != "*0\r\n" {
		t.Errorf("the one in a transaction is answered %q, %v", got, err)
	}
	<-g.ended
	last := startGateway(t, func(o *Options) { o.DrainTimeout = 10 * time.Millisecond }, i.on(port))
	busy, busyIn = connect(t, port)
	if _, err := ask(busy, busyIn, "MULTI\r\n"); err != nil {
		t.Fatal(err)
	}
	last.stop()
	<-last.ended
	if _, err := busyIn.ReadString('\n'); err == nil {
		t.Error("a connection outlives the gateway")
	}
}

// What a client has sent before a gateway ends is answered as far as an instance has got it, however many commands are under way, and the
// end comes after the last answer.
func TestDrainAnswersWhatWasPassedOn(t *testing.T) {
	i := startInstance(t, map[string]string{"PING": "+PONG\r\n"})
	const takes = 5 * time.Millisecond
	i.takes.Store(int64(takes))
	port := free(t)
	g := startGateway(t, func(o *Options) { o.DrainTimeout = 3 * time.Second }, i.on(port))
	conn, in := connect(t, port)
	ended := make(chan struct{})
	go func() { // never waits for an answer, and says more after the end
		defer close(ended)
		for text := strings.Repeat("PING\r\n", 20); ; text = "PING\r\n" {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
			time.Sleep(takes)
		}
	}()
	time.AfterFunc(100*time.Millisecond, g.stop)
	answered := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		if line != "+PONG\r\n" {
			t.Errorf("%q is answered", line)
		}
		answered++
	}
	<-g.ended
	_ = conn.Close()
	<-ended
	if heard := len(i.said()); answered != heard || heard < 10 {
		t.Errorf("%d commands were carried out, and %d answered", heard, answered)
	}
}

// Who only connects reaches no instance, and who is not let in is closed; both do not hold a gateway up that ends.
func TestClientsThatAreNotLetIn(t *testing.T) {
	i := startInstance(t, map[string]string{"GET": "-NOAUTH log in\r\n", "AUTH": "+OK\r\n"})
	port := free(t)
	g := startGateway(t, nil, i.on(port))
	check := func() {
		for _, c := range g.connections() {
			c.checkEntry()
		}
	}
	_, silent := connect(t, port)
	eventually(t, func() bool { return len(g.connections()) == 1 })
	if n := i.accepted.Load(); n != 0 {
		t.Errorf("the instance is connected to %d times before anything was said", n)
	}
	check()
	if _, err := silent.ReadString('\n'); err == nil {
		t.Error("a silent client is told something")
	}
	stranger, strangerIn := connect(t, port)
	friend, friendIn := connect(t, port)
	waiting, waitingIn := connect(t, port)
	for _, said := range []struct {
		conn       net.Conn
		in         *bufio.Reader
		text, want string
	}{
		{stranger, strangerIn, "GET a\r\n", "-NOAUTH log in\r\n"}, {friend, friendIn, "AUTH x\r\n", "+OK\r\n"},
		{waiting, waitingIn, "GET a\r\nBLPOP\r\n", "-NOAUTH log in\r\n"},
	} {
		if got, err := ask(said.conn, said.in, said.text); got != said.want {
			t.Errorf("%q is answered %q, %v", said.text, got, err)
		}
	}
	eventually(t, func() bool { return slices.Contains(i.said(), "BLPOP") })
	check()
	eventually(t, func() bool { return len(g.connections()) == 2 && g.figures.refused[noEntry].Load() == 2 })
	if _, err := strangerIn.ReadString('\n'); err == nil {
		t.Error("a client that was not let in stays")
	}
	if got, err := ask(friend, friendIn, "AUTH y\r\n"); got != "+OK\r\n" {
		t.Errorf("a client that was let in is answered %q, %v", got, err)
	}
}

// A client that was not let in may be in the middle of a command for a while, and not for ever; one whose command is carried out may wait.
func TestClientsThatTrickle(t *testing.T) {
	i := startInstance(t, map[string]string{"GET": "-NOAUTH log in\r\n"})
	port := free(t)
	g := startGateway(t, nil, i.on(port))
	waiting, _ := connect(t, port)
	trickling, tricklingIn := connect(t, port)
	for conn, text := range map[net.Conn]string{waiting: "BLPOP\r\n", trickling: "*2\r\n$4\r\nAUTH\r\n$50000\r\nsecret"} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool {
		return len(g.connections()) == 2 && slices.Contains(i.said(), "BLPOP") && i.accepted.Load() == 2
	})
	check := func(since time.Duration) {
		for _, c := range g.connections() {
			c.accepted = time.Now().Add(-since)
			c.checkEntry()
		}
	}
	check(enterWithin)
	if n := g.figures.refused[noEntry].Load(); n != 0 {
		t.Errorf("%d clients are closed that have said something within the time", n)
	}
	check(toldWithin + time.Second)
	if _, err := tricklingIn.ReadString('\n'); err == nil {
		t.Error("a client that trickles is told something")
	}
	eventually(t, func() bool { return len(g.connections()) == 1 && g.figures.refused[noEntry].Load() == 1 })
}

func TestNewRefusesWhatIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.json")
	writeMap(t, path)
	for name, o := range map[string]Options{
		"no map":         {MapFile: "/none"},
		"no certificate": {MapFile: path, CertFile: "/none", KeyFile: "/none"},
		"no authority":   {MapFile: path, CAFile: path, ServerName: "x"},
	} {
		o.Log = logr.Discard()
		if _, err := New(t.Context(), o); err == nil {
			t.Errorf("%s: it starts", name)
		}
	}
}

// deadlines is a connection that notes when it has a deadline set.
type deadlines struct {
	net.Conn
	set []bool
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, !at.IsZero())
	return nil
}

// The first words of a command have one deadline, however they drip in; each command has one of its own, also where the client is never
// waited for between two; and a client that rests has none.
func TestSlowClients(t *testing.T) {
	const waits = protocol.Phase(255)
	for name, tc := range map[string]struct {
		phases []protocol.Phase
		want   []bool
	}{
		"resting":               {[]protocol.Phase{protocol.Idle, waits, waits}, nil},
		"dripping":              {[]protocol.Phase{protocol.Idle, waits, protocol.Head, waits, waits, waits}, []bool{true}},
		"resting after that":    {[]protocol.Phase{protocol.Head, waits, protocol.Body, protocol.Idle, waits, waits}, []bool{true, false}},
		"many in a row":         {[]protocol.Phase{protocol.Head, waits, protocol.Idle, protocol.Head, waits}, []bool{true, true}},
		"a large value":         {[]protocol.Phase{protocol.Head, protocol.Body, waits, waits}, []bool{true, true}},
		"the head and the rest": {[]protocol.Phase{protocol.Head, waits, protocol.Body, waits, protocol.Idle, waits}, []bool{true, true, false}},
	} {
		noted := &deadlines{}
		c := &connection{client: noted}
		for _, phase := range tc.phases {
			if phase != waits {
				c.pace(phase)
				continue
			}
			if atRest, err := c.limit(); err != nil || atRest != (c.phase == protocol.Idle) {
				t.Errorf("%s: at rest %t, %v", name, atRest, err)
			}
		}
		if !slices.Equal(noted.set, tc.want) {
			t.Errorf("%s: deadlines %v, want %v", name, noted.set, tc.want)
		}
	}
}
