// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis/replication"
)

// TestOnlyDataIsPassedOn: of all commands that an engine has, a replica gets none that it calls admin, but for the one that asks how far it
// is, and every one that writes, but for those that servers never send: scripts may call what is called admin.
func TestOnlyDataIsPassedOn(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		s := startPlain(t, e, newPool(t))
		client := goredis.NewClient(&goredis.Options{Addr: s.addr(), Password: password, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { _ = client.Close() }) // the test is over either way
		all, err := client.Do(t.Context(), "COMMAND").Slice()
		must(t, err)
		refused := 0
		for _, entry := range all {
			command := entry.([]any)
			name := command[0].(string)
			admin, writes := flagged(command, "admin"), flagged(command, "write") || flagged(command, "may_replicate")
			if slices.Contains([]string{"replconf", "pfdebug"}, name) { // asks for an answer; a test's
				admin = false
			}
			// What they did comes as commands of its own; of CLUSTER one is left out, and others are refused.
			if name == "migrate" || name == "cluster" || strings.HasPrefix(name, "eval") || strings.HasPrefix(name, "fcall") {
				admin, writes = true, false
			}
			passed := passes(t, name)
			switch {
			case admin && !writes && passed:
				t.Errorf("%s is passed on", name)
			case writes && !passed:
				t.Errorf("%s is not passed on", name)
			case !passed:
				refused++
			}
		}
		t.Logf("%d of %d commands are refused", refused, len(all))
	})
}

// flagged reports whether a command of COMMAND, or one below it, has a flag.
func flagged(command []any, flag string) bool {
	const flags, below = 2, 9
	if slices.Contains(command[flags].([]any), any(flag)) {
		return true
	}
	return len(command) > below && slices.ContainsFunc(command[below].([]any), func(sub any) bool { return flagged(sub.([]any), flag) })
}

// passes reports whether a command of the stream is passed on.
func passes(t *testing.T, name string) bool {
	t.Helper()
	server, client := net.Pipe()
	go func() {
		_, _ = fmt.Fprintf(server, "+CONTINUE\r\n*2\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(name), name) // it may end in the middle
		_ = server.Close()
	}()
	var got strings.Builder
	err := replication.Watch(client, &got, func() {})
	if err == nil || !errors.Is(err, replication.ErrRefused) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%s: %v", name, err)
	}
	return !errors.Is(err, replication.ErrRefused)
}
