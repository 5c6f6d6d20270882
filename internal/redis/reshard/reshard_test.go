// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// pair is two simulated masters. The first one owns all slots in the beginning.
type pair struct {
	t     *testing.T
	world *redistest.World
	nodes [2]*redistest.Node
	ends  [2]reshard.End
}

func newPair(t *testing.T) *pair {
	t.Helper()
	return newPairOf(t, redistest.Options{InstantGossip: true}, redistest.NodeOptions{})
}

// newPairOf is a pair of nodes of an engine.
func newPairOf(t *testing.T, of redistest.Options, engine redistest.NodeOptions) *pair {
	t.Helper()
	const password = "s3cret-s3cret"
	p := &pair{t: t, world: redistest.New(of)}
	t.Cleanup(p.world.Close)
	// On a busy machine a pipeline of a thousand commands takes the race detector seconds.
	pool := redis.NewPool(redis.Options{Dialer: p.world.Dial, DialTimeout: time.Minute, IOTimeout: time.Minute})
	t.Cleanup(pool.Close)
	for i := range p.nodes {
		ip := fmt.Sprintf("10.0.0.%d", i+1)
		engine.IP, engine.Password = ip, password
		p.nodes[i] = p.world.AddNode(engine)
		p.ends[i] = reshard.End{
			Node: pool.Node(p.nodes[i].Addr(), redis.Credentials{Password: password}), ID: p.nodes[i].ID(), IP: ip, Port: 6379,
		}
	}
	ctx := t.Context()
	p.must(p.ends[0].Node.SetConfigEpoch(ctx, 1))
	p.must(p.ends[1].Node.SetConfigEpoch(ctx, 2))
	p.must(p.ends[0].Node.AddSlots(ctx, slots.All()))
	p.must(p.ends[0].Node.Meet(ctx, "10.0.0.2", 6379, 16379))
	p.world.Run(10 * time.Second)
	return p
}

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// write has an ordinary client without redirections write to the node.
func (p *pair) write(i int, keys ...string) {
	p.t.Helper()
	conn, err := p.world.Dial(p.t.Context(), p.nodes[i].Addr())
	p.must(err)
	defer func() { _ = conn.Close() }() // the test is over
	for _, command := range append([]string{"AUTH s3cret-s3cret"}, keys...) {
		words := strings.Fields(command)
		if len(words) == 1 {
			words = []string{"SET", words[0], "value of " + words[0]}
		}
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
		_, err := conn.Write([]byte(b.String()))
		p.must(err)
		answer := make([]byte, 512)
		n, err := conn.Read(answer)
		p.must(err)
		if text := string(answer[:n]); !strings.HasPrefix(text, "+OK") {
			p.t.Fatalf("%s: %s", command, text)
		}
	}
}

// moved checks that the second node alone has the slots and the keys, and that nothing is open.
func (p *pair) moved(set slots.Set, keys []string) {
	p.t.Helper()
	p.world.Run(5 * time.Second)
	for i, end := range p.ends {
		view, err := end.Node.Describe(p.t.Context())
		p.must(err)
		owned := set
		if i == 0 {
			owned = slots.All().Subtract(set)
		}
		if !view.Slots.Equal(owned) || len(view.Migrating)+len(view.Importing) > 0 {
			p.t.Errorf("node %d owns %s, migrating %v, importing %v", i, view.Slots, view.Migrating, view.Importing)
		}
	}
	want := map[string]string{}
	for _, key := range keys {
		want[key] = "value of " + key
	}
	if diff := cmp.Diff(want, p.nodes[1].Keys()); diff != "" {
		p.t.Errorf("keys (-want +got):\n%s", diff)
	}
	if left := p.nodes[0].Keys(); len(left) > 0 {
		p.t.Errorf("left behind: %v", left)
	}
}

// Whichever command is the one that does not get through, calling again finishes the move.
func TestClassicAfterAnyCommandWasLost(t *testing.T) {
	keys := []string{"{b}1", "{b}2", "{b}3", "{c}1", "{x}1"}
	set := slots.Of(slots.KeySlot("b"), slots.KeySlot("c"), slots.KeySlot("x"), 5)
	lose := func(kind redistest.FailureKind) func(*pair, *redistest.Node, string, context.CancelFunc) {
		return func(p *pair, n *redistest.Node, command string, _ context.CancelFunc) {
			p.world.FailNext(n, command, redistest.Failure{Kind: kind})
		}
	}
	for name, fail := range map[string]func(*pair, *redistest.Node, string, context.CancelFunc){
		"command lost":           lose(redistest.DropBefore),
		"answer lost":            lose(redistest.DropAfter),
		"target's answer lost":   lose(redistest.TargetReplyLost),
		"the operator is killed": func(_ *pair, _ *redistest.Node, _ string, kill context.CancelFunc) { kill() },
		"the target is restarted": func(p *pair, _ *redistest.Node, _ string, _ context.CancelFunc) {
			p.world.Kill(p.nodes[1])
			p.world.Restart(p.nodes[1], "10.0.0.2", true)
			p.world.Run(5 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for nth, reached := int64(1), true; reached; nth++ {
				p := newPair(t)
				p.write(0, keys...)
				ctx, kill := context.WithCancel(t.Context())
				var seen atomic.Int64
				struck := make(chan struct{}) // the failure may outlast the call that it ends
				p.world.OnCommand(func(n *redistest.Node, args []string) {
					if seen.Add(1) == nth {
						defer close(struck)
						command := strings.ToUpper(args[0])
						if command == "CLUSTER" || command == "MEMORY" {
							command += " " + strings.ToUpper(args[1])
						}
						fail(p, n, command, kill)
					}
				})
				options := reshard.Options{Pipeline: 2, Slice: time.Minute} // however busy the machine is
				moves := []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
				_, err := reshard.Classic(ctx, moves, options) // it may fail: that is the point
				kill()
				lost := strings.HasPrefix(name, "command lost") || strings.HasPrefix(name, "answer lost")
				if lost && seen.Load() >= nth && (err == nil || strings.Contains(err.Error(), "neither end owns them")) {
					t.Errorf("command %d was lost, and what is said is %v", nth, err)
				}
				if reached = seen.Load() >= nth; reached {
					<-struck
				}
				p.world.OnCommand(nil)
				p.world.Run(5 * time.Second)
				if _, err := reshard.Classic(t.Context(), moves, options); err != nil {
					t.Fatalf("command %d: %v", nth, err)
				}
				p.moved(set, keys)
				if t.Failed() {
					t.Fatalf("after command %d was lost", nth)
				}
			}
		})
	}
}

// A source that is told who owns its slots before it heard so from the owner takes older messages of that one for a loss.
func TestSourceHearsOfTheOwnerBeforeItIsTold(t *testing.T) {
	p, set := newPair(t), slots.Of(slots.KeySlot("b"))
	p.write(0, "{b}1")
	var silent, told atomic.Bool
	var asked atomic.Int64
	p.world.OnCommand(func(n *redistest.Node, args []string) {
		switch command := strings.ToUpper(strings.Join(args, " ")); {
		case strings.HasPrefix(command, "CLUSTER SETSLOT") && args[3] == "NODE" && n == p.nodes[1]:
			silent.Store(true)
			p.world.Silence(true)
		case command == "CLUSTER NODES" && n == p.nodes[0] && silent.Load() && asked.Add(1) == 3:
			silent.Store(false)
			p.world.Silence(false)
			p.world.Run(time.Second)
		case strings.HasPrefix(command, "CLUSTER SETSLOT") && args[3] == "NODE":
			told.Store(true)
			if silent.Load() {
				t.Errorf("the source was told before it could hear: %v", args)
			}
		}
	})
	_, err := reshard.Classic(t.Context(), []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}, reshard.Options{})
	p.must(err)
	if !told.Load() {
		t.Error("the source was not told in the end")
	}
	p.moved(set, []string{"{b}1"})
}

func TestConflictsAreSettledForTheOneThatServes(t *testing.T) {
	p, ctx := newPair(t), t.Context()
	set := slots.Of(slots.KeySlot("b"))
	p.write(0, "{b}1", "{b}2", "{b}3")
	p.world.FailNext(p.nodes[0], "MIGRATE", redistest.Failure{Kind: redistest.TargetReplyLost})
	moves := []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
	_, err := reshard.Classic(ctx, moves, reshard.Options{KeysPerSecond: 20}) // the third key stays at the source alone
	if err == nil || !strings.Contains(err.Error(), "moving slots from 10.0.0.1:6379 to 10.0.0.2:6379") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("error %v", err)
	}
	p.write(0, "SET {b}1 changed")
	done, err := reshard.Classic(ctx, moves, reshard.Options{})
	if err != nil || done.Conflicts != 1 || done.Keys != 3 || !done.Slots.Equal(set) {
		t.Errorf("%+v, %v", done, err)
	}
	want := map[string]string{"{b}1": "changed", "{b}2": "value of {b}2", "{b}3": "value of {b}3"}
	if diff := cmp.Diff(want, p.nodes[1].Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// A slice that is over begins nothing; a slot that is too large for it stays open and is gone on with.
func TestSlices(t *testing.T) {
	p, ctx := newPair(t), t.Context()
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprintf("{b}%d", i))
	}
	p.write(0, keys...)
	now := time.Unix(0, 0)
	options := reshard.Options{Pipeline: 10, Slice: time.Second, KeysPerSecond: 1000000, Now: func() time.Time {
		now = now.Add(150 * time.Millisecond) // each look at the clock, so that the time is over in the middle
		return now
	}}
	set := slots.Of(slots.KeySlot("b"))
	moves := []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
	calls, total := 0, int64(0)
	for moved := (slots.Set{}); !moved.Equal(set); calls++ {
		done, err := reshard.Classic(ctx, moves, options)
		p.must(err)
		moved, total = done.Slots, total+done.Keys
	}
	if calls < 2 || total != 50 {
		t.Errorf("%d keys in %d calls", total, calls)
	}
	p.moved(set, keys)
}

// Where a node waits for its replicas before it answers that a slot has changed (Valkey), many slots wait at the same time.
func TestSlotsWaitAtTheSameTime(t *testing.T) {
	p := newPairOf(t, redistest.Options{InstantGossip: true}, redistest.NodeOptions{Valkey: true})
	synctest.Test(t, func(t *testing.T) {
		pool := redis.NewPool(redis.Options{Dialer: p.world.Connect, IOTimeout: time.Minute})
		defer pool.Close()
		for i := range p.ends {
			p.ends[i].Node = pool.Node(p.nodes[i].Addr(), redis.Credentials{Password: "s3cret-s3cret"})
		}
		p.world.OnCommand(func(_ *redistest.Node, args []string) {
			if len(args) > 1 && strings.EqualFold(args[1], "SETSLOT") {
				time.Sleep(time.Millisecond) // for the replicas
			}
		})
		begin := time.Now()
		done, err := reshard.Classic(t.Context(), p.move(slots.Range(0, 99)), reshard.Options{Slice: time.Minute})
		if took := time.Since(begin); err != nil || done.Slots.Len() != 100 || took > 100*time.Millisecond { // 400 one after the other
			t.Errorf("%+v, %v, after %v", done, err, took)
		}
	})
}
