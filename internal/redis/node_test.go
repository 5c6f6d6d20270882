// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
)

const (
	addr     = "10.0.0.7:6379"
	password = "s3cret-s3cret"
)

// oneNode is a world of one node at addr that requires the password, and a pool that reaches it.
func oneNode(t *testing.T, options redis.Options) (*redistest.World, *redistest.Node, *redis.Pool) {
	t.Helper()
	world := redistest.New(redistest.Options{InstantGossip: true})
	t.Cleanup(world.Close)
	node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.7", Password: password})
	if options.Dialer == nil {
		options.Dialer = world.Dial
	}
	if options.IOTimeout == 0 {
		options.IOTimeout = time.Minute // which a busy machine does not reach
	}
	options.DialTimeout = options.IOTimeout
	pool := redis.NewPool(options)
	t.Cleanup(pool.Close)
	return world, node, pool
}

var credentials = redis.Credentials{Password: password}

func TestCommands(t *testing.T) {
	_, simulated, pool := oneNode(t, redis.Options{})
	ctx, node := t.Context(), pool.Node(addr, credentials)
	steps := []struct {
		name string
		do   func() error
	}{
		{"Ping", func() error { return node.Ping(ctx) }},
		{"SetConfigEpoch", func() error { return node.SetConfigEpoch(ctx, 7) }},
		{"AddSlots", func() error { return node.AddSlots(ctx, slots.Range(0, 99).Union(slots.Of(200))) }},
		{"AddSlots of none", func() error { return node.AddSlots(ctx, slots.Set{}) }},
		{"SaveConfig", func() error { return node.SaveConfig(ctx) }},
		{"ConfigSet", func() error { return node.ConfigSet(ctx, "maxmemory", "100mb") }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	if id, err := node.Identify(ctx); err != nil || id != simulated.ID() {
		t.Errorf("Identify: %q, %v", id, err)
	}
	got, err := node.ConfigGet(ctx, "maxmemory", "save")
	if diff := cmp.Diff(map[string]string{"maxmemory": "104857600", "save": "3600 1 300 100 60 10000"}, got); err != nil || diff != "" {
		t.Errorf("ConfigGet: %v (-want +got):\n%s", err, diff)
	}
	view, err := node.Describe(ctx, "maxmemory", "no-such-setting")
	if err != nil {
		t.Fatal(err)
	}
	if view.NodeID != simulated.ID() || view.Slots.String() != "0-99,200" || view.ConfigEpoch != 7 || view.SlotsAssigned != 101 {
		t.Errorf("view %+v", view)
	}
	if err := node.Reset(ctx, redis.ResetHard); err != nil {
		t.Fatal(err)
	}
	if after, err := node.Describe(ctx); err != nil || after.NodeID == view.NodeID || !after.Slots.IsEmpty() {
		t.Errorf("after the reset: %+v, %v", after, err)
	}
}

func TestErrorsTellTheirClass(t *testing.T) {
	const nobody = "07c37dfeb235213a872192d90877d0cd55635b91"
	type call = func(ctx context.Context, node *redis.Node) error
	ping := func(ctx context.Context, node *redis.Node) error { return node.Ping(ctx) }
	describe := func(ctx context.Context, node *redis.Node) error { _, err := node.Describe(ctx); return err }
	replyTo := func(command, reply string) func(*redistest.World, *redistest.Node) {
		return func(w *redistest.World, n *redistest.Node) {
			w.FailNext(n, command, redistest.Failure{Kind: redistest.ReplyError, Reply: reply})
		}
	}
	fail := func(command string, kind redistest.FailureKind) func(*redistest.World, *redistest.Node) {
		return func(w *redistest.World, n *redistest.Node) { w.FailNext(n, command, redistest.Failure{Kind: kind}) }
	}
	nothing := func(*redistest.World, *redistest.Node) {}
	for _, tc := range []struct {
		name        string
		prepare     func(*redistest.World, *redistest.Node)
		credentials redis.Credentials
		call        call
		want        error
		command     string
		refused     bool
	}{
		{"dead node", func(w *redistest.World, n *redistest.Node) { w.Kill(n) }, credentials, ping, redis.ErrUnreachable, "PING", false},
		{"node behind a partition", func(w *redistest.World, n *redistest.Node) { w.Partition(n) }, credentials, ping, redis.ErrUnreachable,
			"PING", false},
		{"hanging node", fail("PING", redistest.Hang), credentials, ping, redis.ErrUnreachable, "PING", false},
		{"hanging description", fail("CLUSTER NODES", redistest.Hang), credentials, describe, redis.ErrUnreachable, "INFO", false},
		{"hanging authentication", fail("HELLO", redistest.Hang), credentials, ping, redis.ErrUnreachable, "PING", false},
		{"connection lost before", fail("PING", redistest.DropBefore), credentials, ping, redis.ErrUnreachable, "PING", false},
		{"answer lost", fail("PING", redistest.DropAfter), credentials, ping, redis.ErrUnreachable, "PING", false},
		{"wrong password", nothing, redis.Credentials{Password: "guessed-guessed"}, ping, redis.ErrAuth, "PING", true},
		{"no password", nothing, redis.Credentials{}, ping, redis.ErrAuth, "PING", true},
		{"no permission", replyTo("PING", "NOPERM this user has no permissions"), credentials, ping, redis.ErrAuth, "PING", true},
		{"loading", func(_ *redistest.World, n *redistest.Node) { n.SetLoading(true) }, credentials, ping, redis.ErrLoading, "PING", true},
		{"cluster down", replyTo("PING", "CLUSTERDOWN The cluster is down"), credentials, ping, redis.ErrClusterDown, "PING", true},
		{"unknown node", nothing, credentials, func(ctx context.Context, node *redis.Node) error {
			return node.Forget(ctx, nobody)
		}, redis.ErrUnknownNode, "CLUSTER FORGET", true},
		{"busy slot", nothing, credentials, func(ctx context.Context, node *redis.Node) error {
			return errors.Join(node.AddSlots(ctx, slots.Of(5)), node.AddSlots(ctx, slots.Of(5)))
		}, redis.ErrSlotBusy, "CLUSTER ADDSLOTSRANGE", true},
		{"unsupported", replyTo("PING", "ERR unknown command 'PING'"), credentials, ping, redis.ErrUnsupported, "PING", true},
		{"no cluster", replyTo("CLUSTER", "ERR This instance has cluster support disabled"), credentials, describe, redis.ErrNotCluster,
			"CLUSTER INFO", true},
		{"another refusal", nothing, credentials, func(ctx context.Context, node *redis.Node) error {
			return node.Failover(ctx, redis.FailoverDefault)
		}, redis.ErrRefused, "CLUSTER FAILOVER", true},
		{"replies that name the password", func(w *redistest.World, n *redistest.Node) {
			reply := redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR unknown command, with args beginning with: '" + password + "'"}
			w.FailNext(n, "HELLO", reply)
			w.FailNext(n, "AUTH", reply)
		}, credentials, ping, redis.ErrUnsupported, "PING", true},
		{"reply that names a new password", replyTo("CONFIG SET", "ERR bad value s3cret-too"), credentials,
			func(ctx context.Context, node *redis.Node) error {
				return node.ConfigSet(ctx, "masterauth", "s3cret-too")
			}, redis.ErrRefused, "CONFIG SET masterauth", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // those that hang last as long as the timeout
			world, simulated, pool := oneNode(t, redis.Options{IOTimeout: 5 * time.Second})
			tc.prepare(world, simulated)
			err := tc.call(t.Context(), pool.Node(addr, tc.credentials))
			if !errors.Is(err, tc.want) || errors.Is(err, redis.ErrRefused) != tc.refused {
				t.Fatalf("error %v: is not %v, or refused is not %t", err, tc.want, tc.refused)
			}
			for _, part := range []string{addr, tc.command + ":"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %s", err, part)
				}
			}
			for _, secret := range []string{"s3cret", "guessed"} {
				if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) {
					t.Errorf("the error shows a password: %s", text)
				}
			}
		})
	}
}

func TestNodeThatLoadsShowsWhatIsKnown(t *testing.T) {
	_, simulated, pool := oneNode(t, redis.Options{})
	simulated.SetLoading(true)
	view, err := pool.Node(addr, credentials).Describe(t.Context())
	if !errors.Is(err, redis.ErrLoading) || !view.Loading || view.Version != "7.0.15" || view.RunID == "" || view.NodeID != "" {
		t.Errorf("%+v, %v", view, err)
	}
}

func TestCallerThatGivesUpIsNotAnUnreachableNode(t *testing.T) {
	world, simulated, pool := oneNode(t, redis.Options{})
	world.FailNext(simulated, "PING", redistest.Failure{Kind: redistest.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := pool.Node(addr, credentials).Ping(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, redis.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}

// Where no connection was made, nobody heard the command; where one was, somebody may have.
func TestUnsent(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tt := range map[string]struct {
		prepare func(*redistest.World, *redistest.Node)
		ctx     context.Context
		unsent  bool
	}{
		"a dead node":     {func(w *redistest.World, n *redistest.Node) { w.Kill(n) }, t.Context(), true},
		"it was given up": {func(*redistest.World, *redistest.Node) {}, ended, true},
		"a lost command": {func(w *redistest.World, n *redistest.Node) {
			w.FailNext(n, "PING", redistest.Failure{Kind: redistest.DropBefore})
		}, t.Context(), false},
		"a lost answer": {func(w *redistest.World, n *redistest.Node) {
			w.FailNext(n, "PING", redistest.Failure{Kind: redistest.DropAfter})
		}, t.Context(), false},
	} {
		world, simulated, pool := oneNode(t, redis.Options{})
		tt.prepare(world, simulated)
		if err := pool.Node(addr, credentials).Ping(tt.ctx); err == nil || errors.Is(err, redis.ErrUnsent) != tt.unsent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A command whose answer was lost may have been executed; the client must not send it again.
func TestNothingIsRetried(t *testing.T) {
	world, simulated, pool := oneNode(t, redis.Options{})
	ctx, node := t.Context(), pool.Node(addr, credentials)
	world.FailNext(simulated, "CLUSTER ADDSLOTSRANGE", redistest.Failure{Kind: redistest.DropAfter})
	if err := node.AddSlots(ctx, slots.Of(5)); !errors.Is(err, redis.ErrUnreachable) {
		t.Fatalf("lost reply: %v", err)
	}
	if view, err := node.Describe(ctx); err != nil || !view.Slots.Contains(5) {
		t.Errorf("the command was not executed: %+v, %v", view, err)
	}
	world.FailNext(simulated, "CLUSTER ADDSLOTSRANGE", redistest.Failure{Kind: redistest.DropBefore})
	if err := node.AddSlots(ctx, slots.Of(6)); !errors.Is(err, redis.ErrUnreachable) {
		t.Fatalf("lost command: %v", err)
	}
	if view, err := node.Describe(ctx); err != nil || view.Slots.Contains(6) {
		t.Errorf("the command was sent again: %+v, %v", view, err)
	}
}

func TestNodeThatComesBackIsReachedAtOnce(t *testing.T) {
	world, simulated, pool := oneNode(t, redis.Options{})
	ctx, node := t.Context(), pool.Node(addr, credentials)
	for range 20 { // more often than any limit of failed dials in the library
		if err := node.Ping(ctx); err != nil {
			t.Fatal(err)
		}
		world.Kill(simulated)
		if err := node.Ping(ctx); !errors.Is(err, redis.ErrUnreachable) {
			t.Fatalf("dead node: %v", err)
		}
		world.Restart(simulated, "10.0.0.7", true)
	}
}

// An address may have gone to something that is no Redis at all.
func TestStrangerAtTheAddress(t *testing.T) {
	for name, answer := range map[string]string{
		"web server":        "HTTP/1.1 400 Bad Request\r\n\r\n",
		"another kind":      "*1\r\n$2\r\nOK\r\n",
		"unexpected answer": "+HELLO\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			dial := func(context.Context, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close() // the test is over
					for buffer := make([]byte, 1024); ; {
						if _, err := theirs.Read(buffer); err != nil {
							return
						}
						if _, err := theirs.Write([]byte(answer)); err != nil {
							return
						}
					}
				}()
				return ours, nil
			}
			_, _, pool := oneNode(t, redis.Options{Dialer: dial})
			if _, err := pool.Node(addr, credentials).Describe(t.Context()); !errors.Is(err, redis.ErrProtocol) {
				t.Errorf("Describe: %v", err)
			}
			if _, err := pool.Node(addr, credentials).Identify(t.Context()); !errors.Is(err, redis.ErrProtocol) {
				t.Errorf("Identify: %v", err)
			}
		})
	}
}

// counted counts the connections that are open.
func counted(dial func(context.Context, string) (net.Conn, error), open *atomic.Int64) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestPoolKeepsFewConnectionsAndClosesIdleOnes(t *testing.T) {
	world := redistest.New(redistest.Options{})
	t.Cleanup(world.Close)
	world.AddNode(redistest.NodeOptions{IP: "10.0.0.7", Password: password})
	var open atomic.Int64
	pool := redis.NewPool(redis.Options{Dialer: counted(world.Dial, &open), IdleTimeout: time.Minute, Now: world.Now})
	t.Cleanup(pool.Close)

	var calls sync.WaitGroup
	for range 30 {
		calls.Go(func() {
			if err := pool.Node(addr, credentials).Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := open.Load(); n < 1 || n > 2 {
		t.Errorf("%d connections are kept after a burst, want 1 or 2", n)
	}
	world.Advance(59 * time.Second)
	pool.CloseIdle()
	if n := open.Load(); n < 1 {
		t.Error("closed before the idle timeout")
	}
	world.Advance(time.Second)
	pool.CloseIdle()
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections are open after the idle timeout", n)
	}

	if err := pool.Node(addr, credentials).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Close()
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
	if err := pool.Node(addr, credentials).Ping(t.Context()); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestStartClosesThePoolAtTheEnd(t *testing.T) {
	_, _, pool := oneNode(t, redis.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pool.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := pool.Node(addr, credentials).Ping(t.Context()); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestPasswordsAreNeverPrinted(t *testing.T) {
	node := redis.NewPool(redis.Options{}).Node(addr, credentials)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", credentials, "s", struct{ C redis.Credentials }{credentials}, "n", node)
	encoded, err := json.Marshal(map[string]any{"c": credentials, "n": node})
	if err != nil {
		t.Fatal(err)
	}
	text := log.String() + string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		text += fmt.Sprintf(verb+verb+verb, credentials, struct{ C redis.Credentials }{credentials}, node)
	}
	if strings.Contains(text, password) || strings.Contains(text, fmt.Sprintf("%x", password)) {
		t.Errorf("printed: %s", text)
	}
	if !strings.Contains(fmt.Sprint(node), addr) {
		t.Errorf("a node prints as %v", node)
	}
}

// Only a refusal proves that nobody listens: an address that nothing leads to may be that of a server all the same.
func TestRefuses(t *testing.T) {
	world, node, pool := oneNode(t, redis.Options{IOTimeout: 50 * time.Millisecond})
	nobody := "10.0.0.9:6379"
	cutOff := false
	refuses := func(want bool, addrs ...string) {
		t.Helper()
		refuse, accepts := pool.Refuses(t.Context(), addrs...)
		if listens := !cutOff && slices.Contains(addrs, addr); refuse != want || accepts != listens {
			t.Errorf("%v refuse: %t, want %t; one accepts: %t, want %t", addrs, refuse, want, accepts, listens)
		}
	}
	refuses(false)
	refuses(false, addr)
	refuses(true, nobody)
	refuses(false, nobody, addr)
	world.Partition(node)
	cutOff = true
	refuses(false, addr)
	world.Heal()
	world.Kill(node)
	refuses(true, addr, nobody)
}
