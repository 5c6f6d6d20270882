// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// load is an application that writes and reads while the test does something. Each command that ends with anything but an
// answer or a redirection is a failure, even if the client repeats it with success.
type load struct {
	t      testing.TB
	word   string
	client *goredis.ClusterClient
	stop   context.CancelFunc
	wait   sync.WaitGroup

	mu       sync.Mutex
	failures []string
	commands int
	moved    time.Time        // when a command was redirected last
	written  []map[string]int // by writer: the last acknowledged value of each key
}

const loadWriters, loadKeys = 4, 300

func startLoad(c *cluster) *load { return startLoadOf(c, c.client()) }

// startLoadOf is startLoad with a client.
func startLoadOf(c *cluster, client *goredis.ClusterClient) *load {
	c.bearSilence()
	return startLoadBy(c.t, client, "load")
}

// startLoadBy is startLoad with a client, and keys that begin with a word.
func startLoadBy(t testing.TB, client *goredis.ClusterClient, word string) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{t: t, word: word, client: client, stop: stop, written: make([]map[string]int, loadWriters)}
	l.client.OnNewNode(func(node *goredis.Client) { node.AddHook(l) })
	for w := range loadWriters {
		l.written[w] = map[string]int{}
		l.wait.Go(func() { l.run(ctx, w) })
	}
	return l
}

// run writes ever higher values to keys of its own, and reads them back.
func (l *load) run(ctx context.Context, w int) {
	background := context.Background() // a command that was begun is finished
	for n := 1; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s:%d:%d", l.word, w, rand.IntN(loadKeys))
		if l.client.Set(background, key, n, 0).Err() == nil {
			l.written[w][key] = n
		}
		key = fmt.Sprintf("%s:%d:%d", l.word, w, rand.IntN(loadKeys))
		l.check(background, w, key)
	}
}

func (l *load) check(ctx context.Context, w int, key string) {
	value, err := l.client.Get(ctx, key).Result()
	if want := l.written[w][key]; want != 0 && (err != nil || value != strconv.Itoa(want)) {
		l.fail("%s reads %q, %v; %d was acknowledged", key, value, err, want)
	}
}

// count is how many commands have been answered.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commands
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// end stops the load, reads back all that was acknowledged and fails the test when anything went wrong on the way.
func (l *load) end() {
	l.t.Helper()
	l.stop()
	l.wait.Wait()
	for w, keys := range l.written {
		for key := range keys {
			l.check(context.Background(), w, key)
		}
	}
	l.t.Logf("%d commands of clients, %d failed", l.commands, len(l.failures))
	if len(l.failures) > 0 {
		l.t.Errorf("failures of clients:\n%.2000s", strings.Join(l.failures, "\n"))
	}
}

// DialHook implements goredis.Hook.
func (l *load) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements goredis.Hook: it sees each attempt at a node.
func (l *load) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		l.attempted(cmd, err)
		return err
	}
}

// ProcessPipelineHook implements goredis.Hook: ASKING and its command are a pipeline.
func (l *load) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			l.attempted(cmd, cmd.Err())
		}
		return err
	}
}

// attempted counts an attempt of the application. CLUSTER and COMMAND are the client's own questions: it asks any node, and another one
// when that has died. HELLO begins a connection, to a replica, too; where the application needed it, its own command fails with it.
func (l *load) attempted(cmd goredis.Cmder, err error) {
	if slices.Contains([]string{"cluster", "command", "hello"}, cmd.Name()) {
		return
	}
	redirected := err != nil && (strings.HasPrefix(err.Error(), "MOVED ") || strings.HasPrefix(err.Error(), "ASK "))
	if err != nil && !errors.Is(err, goredis.Nil) && !redirected {
		l.fail("%s: %v", cmd.Name(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands++
	if redirected {
		l.moved = time.Now()
	}
}

// settled waits until clients have gone where they were redirected to, for as long as switchover.sh would.
func (l *load) settled() {
	const quiet, most = 300 * time.Millisecond, 12 * time.Second
	for deadline := time.Now().Add(most); time.Now().Before(deadline); time.Sleep(quiet / 10) {
		l.mu.Lock()
		since := time.Since(l.moved)
		l.mu.Unlock()
		if since > quiet {
			return
		}
	}
}
