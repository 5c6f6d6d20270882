// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/archive"
)

// BenchmarkBackupSizes backs up clusters of three masters with a replica each, of so many MB of mixed data, and brings them back, beside
// redis-cli --rdb on the same data, and prints a table:
//
//	ENGINES=… MINIO=… BACKUP=bin/backup SIZES=100,1000 REDIS_CLI=redis-cli \
//	  go test -run - -bench BackupSizes -benchtime 1x -timeout 60m ./test/engine
//
// The recovery point is how old the data is when the last byte of it is safe, the recovery time how long it takes from an empty directory
// until all instances have loaded and met. While the backup and the copy are taken an application writes and reads 3,600 times a second:
// the table has its longest command, and that of the same application while nothing else happens.
func BenchmarkBackupSizes(b *testing.B) {
	const most = 4000 // MB, twice in memory
	for _, e := range engines(b) {
		for text := range strings.SplitSeq(cmp.Or(os.Getenv("SIZES"), "100"), ",") {
			size, err := strconv.Atoi(text)
			must(b, err)
			must(b, want(size > 0 && size <= most, "SIZES: %d MB, and %d are the most", size, most))
			b.Run(fmt.Sprintf("%s/%d MB", e.name, size), func(b *testing.B) {
				for b.Loop() {
					benchmarkSize(b, e, size)
				}
			})
		}
	}
}

// work is what something cost.
type work struct {
	what           string
	bytes          int64
	took           time.Duration
	program        time.Duration // of a processor
	instances      float64       // the same, in seconds
	point, recover time.Duration // zero: not asked
	longest        time.Duration // of a command of the application; zero: none ran
}

func (w work) row() string {
	const mega, giga = 1e6, 1e9
	gigabytes := float64(w.bytes) / giga
	seconds := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	longest := ""
	if w.longest > 0 {
		longest = fmt.Sprintf("%d ms", w.longest.Milliseconds())
	}
	return fmt.Sprintf("| %s | %.0f MB | %.1f s | %.0f MB/s | %.1f s | %.1f s | %s | %s | %s |", w.what, float64(w.bytes)/mega,
		w.took.Seconds(), float64(w.bytes)/mega/w.took.Seconds(), w.program.Seconds()/gigabytes, w.instances/gigabytes, seconds(w.point),
		seconds(w.recover), longest)
}

// serving runs an application beside some work: 3,600 commands a second, half of them writes. It fails if one of them does.
func (c *cluster) serving(work func() work) work {
	const workers, pause = 36, 10 * time.Millisecond
	ctx, cancel := context.WithCancel(c.t.Context())
	client := c.client()
	longest := make([]time.Duration, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				begun, key := time.Now(), fmt.Sprintf("serving:%d:%d", i, rand.IntN(1000))
				err := client.Set(c.t.Context(), key, n, 0).Err()
				if n%2 == 1 {
					err = client.Get(c.t.Context(), key).Err()
				}
				if err != nil && !errors.Is(err, goredis.Nil) {
					c.t.Errorf("a command of the application: %v", err)
				}
				longest[i] = max(longest[i], time.Since(begun))
				time.Sleep(pause - min(time.Since(begun), pause))
			}
		})
	}
	w := work()
	cancel()
	all.Wait()
	w.longest = slices.Max(longest)
	return w
}

// costing is what work costs that runs programs, some of them at once.
func (c *cluster) costing(what string, do func(run func(*exec.Cmd))) work {
	c.t.Helper()
	const withChildren = 4
	instances := func() (sum float64) {
		for _, s := range c.servers {
			sum += ticks(c.t, strconv.Itoa(s.process.Process.Pid), withChildren)
		}
		return sum
	}
	var mu sync.Mutex
	w, before, began := work{what: what}, instances(), time.Now()
	do(func(process *exec.Cmd) {
		out, err := process.CombinedOutput()
		if err != nil {
			c.t.Errorf("%s: %v: %s", what, err, out)
		}
		mu.Lock()
		defer mu.Unlock()
		w.program += process.ProcessState.UserTime() + process.ProcessState.SystemTime()
	})
	w.took, w.instances = time.Since(began), instances()-before
	return w
}

func benchmarkSize(b *testing.B, e engine, megabytes int) {
	c, m := startCluster(b, e, 3, 3, 3), startMinIO(b)
	fillMixed(b, c.client(), megabytes)
	c.taking("", nil) // the user
	program, store := m.command(m.root()), m.store(m.root(), archive.Keys{})
	passwordFile := filepath.Join(b.TempDir(), "password")
	must(b, os.WriteFile(passwordFile, []byte("backup-password"), 0o600))

	alone := c.serving(func() work { time.Sleep(10 * time.Second); return work{} }).longest
	taken := c.serving(func() work {
		return c.costing("`backup take`, all shards", func(run func(*exec.Cmd)) {
			run(program.process(b.Context(), b, "take", "backup", "--from", c.servers[0].addr(), "--user", "backup",
				"--password-file", passwordFile))
		})
	})
	ended := time.Now()
	manifest, err := store.Manifest(b.Context(), "backup")
	must(b, err)
	stored, plain := manifest.Bytes()
	taken.bytes, taken.point = plain, ended.Sub(manifest.Marked)

	dumps := b.TempDir()
	dump := func(shard int) string { return filepath.Join(dumps, strconv.Itoa(shard)) }
	copied := c.serving(func() work {
		return c.costing("`redis-cli --rdb`, one master after the other", func(run func(*exec.Cmd)) {
			for i := range c.masters {
				run(exec.CommandContext(b.Context(), cmp.Or(os.Getenv("REDIS_CLI"), "redis-cli"), "--no-auth-warning", "-a", password, "-p",
					strconv.Itoa(c.servers[i].port), "--rdb", dump(i)))
			}
		})
	})
	copied.bytes, copied.point = plain, copied.took // the first master's data is as old as that

	rows := []work{taken, copied,
		c.bringingBack(b, e, manifest, "`backup restore`, all shards at once", func(shard int, dir string) *exec.Cmd {
			return program.process(b.Context(), b, "restore", "backup", "--shard", strconv.Itoa(shard), "--directory", dir)
		}),
		c.bringingBack(b, e, manifest, "the files of `redis-cli --rdb`, copied", func(shard int, dir string) *exec.Cmd {
			return byCopy(b, manifest, shard, dump(shard), dir)
		}),
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%s, %d MB of data, %d MB stored; the longest command of the application alone: %d ms\n", e.name, plain/1e6,
		stored/1e6, alone.Milliseconds())
	table.WriteString("| | data | time | | processor, a GB | of the instances, a GB | recovery point | recovery time | longest command |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range rows {
		table.WriteString(row.row() + "\n")
	}
	b.Log(table.String())
}

// bringingBack is what it costs to bring a backup back in some way, all shards at once, and to start it.
func (c *cluster) bringingBack(b *testing.B, e engine, m *archive.Manifest, what string,
	restore func(shard int, dir string) *exec.Cmd) work {
	b.Helper()
	dirs := make([]string, len(m.Shards))
	for shard := range dirs {
		dirs[shard] = b.TempDir()
	}
	began := time.Now()
	w := c.costing(what, func(run func(*exec.Cmd)) {
		var all sync.WaitGroup
		for shard, dir := range dirs {
			all.Go(func() { run(restore(shard, dir)) })
		}
		all.Wait()
	})
	again := startRestored(b, e, m, func(shard int, dir string) {
		must(b, os.Remove(dir))
		must(b, os.Rename(dirs[shard], dir))
	})
	_, w.bytes = m.Bytes()
	w.recover = time.Since(began)
	for _, s := range again.servers {
		s.kill()
	}
	return w
}

// byCopy copies a file of redis-cli --rdb to where an instance loads it from, as the owner of the same slots.
func byCopy(b *testing.B, m *archive.Manifest, shard int, file, dir string) *exec.Cmd {
	b.Helper()
	data := filepath.Join(dir, "appendonlydir")
	must(b, os.Mkdir(data, 0o700))
	const base = "appendonly.aof.1.base.rdb"
	must(b, os.WriteFile(filepath.Join(data, "appendonly.aof.manifest"), []byte("file "+base+" seq 1 type b\n"), 0o600))
	must(b, os.WriteFile(filepath.Join(dir, "nodes.conf"), fmt.Appendf(nil,
		"%s :0@0 myself,master - 0 0 %d connected %s\nvars currentEpoch %d lastVoteEpoch 0\n", strings.Repeat(strconv.Itoa(shard+1), 40), shard+1,
		strings.ReplaceAll(m.Shards[shard].Slots.String(), ",", " "), len(m.Shards)), 0o600))
	return exec.CommandContext(b.Context(), "cp", file, filepath.Join(data, base))
}

// fillMixed writes strings, hashes, lists, sets, sorted sets and streams of so many MB in all, as an RDB has them.
func fillMixed(t testing.TB, client *goredis.ClusterClient, megabytes int) {
	t.Helper()
	const writers, chunk, unit = 4, 100, 6100 // bytes of one key of each type
	text := func(n int) string {
		b := make([]byte, 0, n+16)
		for len(b) < n {
			b = fmt.Appendf(b, "%016x", rand.Uint64())
		}
		return string(b[:n])
	}
	many := func(n int) (list []any) {
		for range n {
			list = append(list, text(60))
		}
		return list
	}
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for first := w * chunk; first < megabytes*1e6/unit; first += writers * chunk {
				pipe, ctx := client.Pipeline(), t.Context()
				for i := first; i < first+chunk; i++ {
					pipe.Set(ctx, fmt.Sprint("string:", i), text(1024), 0)
					pipe.HSet(ctx, fmt.Sprint("hash:", i), many(20)...)
					pipe.RPush(ctx, fmt.Sprint("list:", i), many(20)...)
					pipe.SAdd(ctx, fmt.Sprint("set:", i), many(20)...)
					for _, member := range many(20) {
						pipe.ZAdd(ctx, fmt.Sprint("sorted:", i), goredis.Z{Score: rand.Float64(), Member: member})
					}
					pipe.XAdd(ctx, &goredis.XAddArgs{Stream: fmt.Sprint("stream:", i), Values: many(2)})
				}
				if _, err := pipe.Exec(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}
