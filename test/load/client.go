// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// server says where a cluster is and how to get in.
type server struct {
	addresses   []string
	password    string
	authority   string        // certificates to trust, in PEM; empty: without TLS
	dialTimeout time.Duration // 0: the library's own
	refresh     time.Duration // how often to ask who owns what; 0: the library's own
}

// connect makes an ordinary cluster client: it follows MOVED and ASK. What it repeats
// beyond that by itself is written down in attempts. connections bounds the connections
// to one instance; it is to be at least the number of commands under way, so that no
// command waits for a connection.
func connect(ctx context.Context, to server, connections int, attempts *attempts) (*redis.ClusterClient, error) {
	var idle time.Duration // the library's own
	if to.tls() != nil {
		idle = time.Second // it does not notice that a connection by TLS was closed, and its address may be that of a restarted instance
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: to.addresses, Password: to.password, ConnMaxIdleTime: idle,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: to.dialTimeout, ClusterStateReloadInterval: to.refresh,
		PoolSize: connections, TLSConfig: to.tls(),
		// Commands that an older engine answers with an error would be written down as failed.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if attempts != nil {
		client.OnNewNode(func(node *redis.Client) { node.AddHook(hook{attempts, node.Options().Addr}) })
	}
	if err := found(ctx, client, attempts); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("reach the cluster at %s: %w", strings.Join(to.addresses, ","), err)
	}
	return client, nil
}

// foundWithin is how long the first command is sent again while a name server does not answer, or the machine stalls: what they are late
// with says nothing of a cluster.
const foundWithin = time.Minute

// found sends the first command.
func found(ctx context.Context, client *redis.ClusterClient, attempts *attempts) error {
	for deadline := time.Now().Add(foundWithin); ; {
		begun := time.Now()
		err := client.Ping(ctx).Err()
		unanswered := (*net.DNSError)(nil)
		late := errors.As(err, &unanswered) && unanswered.IsTimeout
		stalls := !late && attempts != nil && attempts.judge("ping", begun, err) == stalled
		if !late && !stalls || time.Now().After(deadline) {
			return err
		}
		if stalls {
			attempts.noteStalled()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// tls is how instances are trusted, each under the name that it is reached by; nil: without TLS.
func (s server) tls() *tls.Config {
	if s.authority == "" {
		return nil
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(s.authority)) // without any, no connection is made
	return &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
}

// administrative are commands that the client library sends for itself.
var administrative = map[string]bool{
	"asking": true, "auth": true, "client": true, "cluster": true, "command": true, "hello": true, "ping": true, "readonly": true,
	"select": true,
}

// kind of an attempt's end.
type kind int

const (
	fine kind = iota
	redirected
	tryAgain
	closedByClient
	stalled
	failed
)

// several are the commands of this program that have more than one key.
var several = map[string]bool{"mset": true, "mget": true}

// judgeAttempt tells how one attempt of a command ended. TRYAGAIN is the classic
// migration's answer to a command whose keys are on both sides; to a command with one
// key it is a failure. closedByClient is when the client closed the connection itself; no
// instance and no network can bring that error about. go-redis does with instances that it
// knows from MOVED alone, also while it uses them (https://github.com/redis/go-redis/issues/3284).
func judgeAttempt(command string, err error) kind {
	if err == nil || errors.Is(err, redis.Nil) {
		return fine
	}
	switch text := err.Error(); {
	case errors.Is(err, net.ErrClosed), errors.Is(err, redis.ErrClosed):
		return closedByClient
	case strings.HasPrefix(text, "MOVED "), strings.HasPrefix(text, "ASK "):
		return redirected
	case strings.HasPrefix(text, "TRYAGAIN") && several[command]:
		return tryAgain
	}
	return failed
}

// sample is one failed attempt.
type sample struct {
	At      time.Time `json:"at"`
	Node    string    `json:"node"`
	Command string    `json:"command"`
	Error   string    `json:"error"`
}

const samplesKept = 5

// marked is what a command's context carries, so that what became of its attempts is known.
type marked struct{}

// tries counts the attempts of one command that failed, that were answered with TRYAGAIN, in which the client closed the connection,
// and that were stalled.
type tries struct{ failed, tryAgain, closedByClient, stalled atomic.Int32 }

// perhapsTwice reports whether a command may have been done by an attempt whose answer did not arrive, before the one whose did.
func (t *tries) perhapsTwice() bool {
	return t.closedByClient.Load()+t.stalled.Load()+t.failed.Load() > 0
}

// mark gives a command's context, and the counts of its attempts.
func mark(ctx context.Context) (context.Context, *tries) {
	t := new(tries)
	return context.WithValue(ctx, marked{}, t), t
}

// attempts writes down every attempt that the client made at an instance. Safe for
// concurrent use.
type attempts struct {
	now   func() time.Time
	still *stalls

	mu             sync.Mutex
	failed         int64
	otherwise      int64 // of those, which did not time out
	redirected     int64
	tryAgain       int64
	closedByClient int64
	stalled        int64
	administrative int64
	byError        map[string]int64
	samples        []sample
}

// judge is judgeAttempt with one more end: a timeout is the machine's, and the attempt stalled, if the machine stalled for
// half of the time that the attempt took or more.
func (a *attempts) judge(command string, begun time.Time, err error) kind {
	verdict := judgeAttempt(command, err)
	if verdict == failed && timedOut(err) {
		now := a.now()
		if still := a.still.during(begun, now); still > 0 && 2*still >= now.Sub(begun) {
			return stalled
		}
	}
	return verdict
}

// timedOut reports whether it was for the time that something failed.
func timedOut(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.As(err, &timed) && timed.Timeout()
}

func (a *attempts) note(ctx context.Context, begun time.Time, node, command string, args []any, err error) {
	if err == nil {
		return
	}
	verdict := a.judge(command, begun, err)
	if verdict == fine {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if administrative[command] {
		a.administrative++
		return
	}
	mine, ok := ctx.Value(marked{}).(*tries)
	if !ok {
		mine = new(tries) // of nobody
	}
	switch verdict {
	case fine:
	case redirected:
		a.redirected++
	case tryAgain:
		a.tryAgain++
		mine.tryAgain.Add(1)
	case closedByClient:
		a.closedByClient++
		mine.closedByClient.Add(1)
	case stalled:
		a.stalled++
		mine.stalled.Add(1)
	case failed:
		a.failed++
		if !timedOut(err) {
			a.otherwise++
		}
		mine.failed.Add(1)
		if a.byError == nil {
			a.byError = map[string]int64{}
		}
		a.byError[shorten(err.Error())]++
		if len(a.samples) < samplesKept {
			s := sample{At: a.now().UTC(), Node: node, Command: command, Error: err.Error()}
			if len(args) > 1 {
				s.Command = fmt.Sprintf("%s %v", command, args[1])
			}
			a.samples = append(a.samples, s)
		}
	}
}

// noteStalled takes down a stalled attempt that no command of the application made.
func (a *attempts) noteStalled() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stalled++
}

// shorten makes errors of the same cause alike: without ports of this side.
func shorten(text string) string {
	if before, after, ok := strings.Cut(text, "->"); ok {
		if i := strings.LastIndexByte(before, ' '); i >= 0 {
			return before[:i+1] + after
		}
	}
	return text
}

// errors lists the texts of failed attempts, most frequent first.
func (a *attempts) errors() []errorCount {
	list := make([]errorCount, 0, len(a.byError))
	for text, n := range a.byError {
		list = append(list, errorCount{text, n})
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].Count > list[j].Count || list[i].Count == list[j].Count && list[i].Error < list[j].Error
	})
	return list[:min(len(list), 20)]
}

type errorCount struct {
	Error string `json:"error"`
	Count int64  `json:"count"`
}

// hook takes down the attempts at one instance.
type hook struct {
	attempts *attempts
	node     string // its address
}

// DialHook is part of redis.Hook. A failed dial is the failure of the command it was for.
func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := h.attempts.now()
		err := next(ctx, cmd)
		h.attempts.note(ctx, begun, h.node, cmd.Name(), cmd.Args(), err)
		return err
	}
}

// ProcessPipelineHook is part of redis.Hook. The client sends ASKING and a command this way.
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := h.attempts.now()
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			h.attempts.note(ctx, begun, h.node, cmd.Name(), cmd.Args(), cmd.Err())
		}
		return err
	}
}
