// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// operatorDefaults are the settings that the operator gives an instance when nobody says anything else.
func operatorDefaults() []string {
	var arguments []string
	for _, setting := range redisconf.Settings(nil, nil) {
		if setting.Source == redisconf.FromDefaults {
			arguments = append(arguments, append([]string{"--" + setting.Name}, setting.Args...)...)
		}
	}
	return arguments
}

// terminationMessage are the end of a log as Kubernetes keeps it with a container that has ended (FallbackToLogsOnError): at most 80 lines
// and 2048 bytes.
func terminationMessage(log string) string {
	const mostLines, mostBytes = 80, 2048
	lines := strings.SplitAfter(log, "\n")
	log = strings.Join(lines[max(0, len(lines)-mostLines):], "")
	return log[max(0, len(log)-mostBytes):]
}

// swapped is a nodes.conf of a replica whose shard ID is not that of its master, as Valkey 8.1.1 itself writes it when it is
// killed soon after it began to follow, and does not read afterwards.
const swapped = `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 127.0.0.1:1@2,,shard-id=1111111111111111111111111111111111111111 master - 0 0 1 connected 0-16383
cccccccccccccccccccccccccccccccccccccccc 127.0.0.1:3@4,,shard-id=1111111111111111111111111111111111111111 slave aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 1 connected
bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 127.0.0.1:5@6,,shard-id=2222222222222222222222222222222222222222 myself,slave aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 1 connected
vars currentEpoch 1 lastVoteEpoch 0
`

// A server that cannot read its own files ends, and says so in what Kubernetes keeps of its log: on that the operator decides to
// give the instance new files.
func TestDamagedFilesAreTold(t *testing.T) {
	for name, damage := range map[string]struct {
		file, content string
		// refusedBy is the engine that refuses it when others start with it; empty: all refuse.
		refusedBy string
	}{
		"nodes.conf":                  {file: "nodes.conf", content: "damaged\n"},
		"shard IDs that do not fit":   {file: "nodes.conf", content: swapped, refusedBy: "valkey-8.1"},
		"the base of the append-only": {file: "appendonlydir/appendonly.aof.1.base.rdb", content: "damaged"},
		"the middle of the append-only": {file: "appendonlydir/appendonly.aof.1.incr.aof",
			content: "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\ndamaged\r\n*1\r\n$4\r\nPING\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			forEveryEngine(t, func(t *testing.T, e engine) {
				pool, busPort := newPool(t), freePort(t)
				s := startWith(t, pool, &server{t: t, engine: e, busPort: busPort, settings: slices.Concat(clusterMode(busPort), operatorDefaults())})
				must(t, s.node(pool).AddSlots(t.Context(), slots.All()))
				s.kill()
				path := filepath.Join(s.dir, filepath.FromSlash(damage.file))
				if _, err := os.Stat(path); err != nil {
					t.Fatal(err)
				}
				must(t, os.WriteFile(path, []byte(damage.content), 0o600))
				s.run()
				if !strings.HasPrefix(e.name, damage.refusedBy) {
					eventually(t, func() error { return s.node(pool).Ping(t.Context()) })
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				select {
				case <-s.ended:
				case <-ctx.Done():
					t.Fatal("it runs with that file")
				}
				if words := terminationMessage(s.output.String()); plan.Corruption(words) == "" {
					t.Errorf("%s says nothing of a damaged file that the operator knows:\n%s", e.name, words)
				}
			})
		})
	}
}
