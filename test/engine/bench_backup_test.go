// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/archive"
)

// BenchmarkBackup takes a backup of three masters with a replica each into a real object store, and brings it back; beside it what
// redis-cli does, one master after the other and into files, which is no one moment:
//
//	ENGINES=… MINIO=… BACKUP=bin/backup KEYS=1000000 REDIS_CLI=redis-cli \
//	  go test -run - -bench Backup -benchtime 1x -timeout 30m ./test/engine
//
// Beside the times it tells the processor time and memory of the program, and the longest time that a client which pings one node had to
// wait, over all nodes.
func BenchmarkBackup(b *testing.B) {
	for _, e := range engines(b) {
		b.Run(e.name, func(b *testing.B) { benchmarkBackup(b, e) })
	}
}

// benched is a cluster with data and an object store, and the arguments that lead to the cluster.
func benched(b *testing.B, e engine) (c *cluster, m *minio, source []string) {
	b.Helper()
	keys, err := strconv.Atoi(cmp.Or(os.Getenv("KEYS"), "300000"))
	must(b, err)
	c = startCluster(b, e, 3, 3, 3)
	fill(b, c.client(), keys)
	file := filepath.Join(b.TempDir(), "password")
	must(b, os.WriteFile(file, []byte("backup-password"), 0o600))
	c.taking("", nil) // the user
	return c, startMinIO(b), []string{"--from", c.servers[0].addr(), "--user", "backup", "--password-file", file}
}

func benchmarkBackup(b *testing.B, e engine) {
	c, m, source := benched(b, e)
	store := m.command(m.root())
	number := 0
	for b.Loop() {
		number++
		name := "bench-" + strconv.Itoa(number)
		var bytes float64
		c.program(b, "backup take", &bytes, func(ctx context.Context) *exec.Cmd {
			return store.process(ctx, b, append([]string{"take", name}, source...)...)
		}, func(out string) { bytes = field(b, out, " bytes of data") })
		for shard := range c.masters {
			c.program(b, "backup restore, a shard", &bytes, func(ctx context.Context) *exec.Cmd {
				return store.process(ctx, b, "restore", name, "--shard", strconv.Itoa(shard), "--directory", b.TempDir())
			}, nil)
		}
		for i := range c.masters {
			c.program(b, "redis-cli --rdb, a shard", &bytes, func(ctx context.Context) *exec.Cmd {
				return exec.CommandContext(ctx, cmp.Or(os.Getenv("REDIS_CLI"), "redis-cli"), "--no-auth-warning", "-a", password,
					"-p", strconv.Itoa(c.servers[i].port), "--rdb",
					filepath.Join(b.TempDir(), "dump.rdb"))
			}, nil)
		}
	}
}

// BenchmarkArchive writes an archive of such a cluster for a while (FOR, by default a minute) while an application writes and reads as
// fast as it can, and restores a shard from it. It tells how old the last moment in the store was at worst: what would be lost with the
// cluster.
func BenchmarkArchive(b *testing.B) {
	for _, e := range engines(b) {
		b.Run(e.name, func(b *testing.B) {
			for b.Loop() {
				benchmarkArchive(b, e)
			}
		})
	}
}

func benchmarkArchive(b *testing.B, e engine) {
	span, err := time.ParseDuration(cmp.Or(os.Getenv("FOR"), "1m"))
	must(b, err)
	c, m, source := benched(b, e)
	command, store := m.command(m.root()), m.store(m.root(), archive.Keys{})
	application := startLoad(c)
	process := command.process(b.Context(), b, append([]string{"archive", "bench"}, source...)...)
	must(b, process.Start())
	last := func() (archive.Span, error) { return store.Span(b.Context(), "bench") }
	eventually(b, func() error { _, err := last(); return err })
	ctx, cancel := context.WithCancel(b.Context())
	stall, began, before := c.ping(ctx), time.Now(), application.count()
	var oldest time.Duration
	for time.Since(began) < span {
		moments, err := last()
		must(b, err)
		oldest = max(oldest, time.Since(moments.Last.Marked))
		time.Sleep(100 * time.Millisecond)
	}
	rate := float64(application.count()-before) / time.Since(began).Seconds()
	cancel()
	application.end()
	must(b, process.Process.Signal(syscall.SIGTERM))
	must(b, process.Wait())
	usage, ok := process.ProcessState.SysUsage().(*syscall.Rusage)
	must(b, want(ok, "the usage is %T", process.ProcessState.SysUsage()))
	cpu := process.ProcessState.UserTime() + process.ProcessState.SystemTime()
	b.Logf("backup archive: %.0f commands/s, last moment %.1f s ago at worst, CPU %.3f of a core, %d MiB of memory, longest wait %d ms", rate,
		oldest.Seconds(), cpu.Seconds()/time.Since(began).Seconds(), usage.Maxrss>>10, stall().Milliseconds())
	var bytes float64
	c.program(b, "backup restore --to latest, a shard", &bytes, func(ctx context.Context) *exec.Cmd {
		return command.process(ctx, b, "restore", "bench", "--to", "latest", "--directory", b.TempDir())
	}, nil)
}

// program runs a program, and prints what it cost, with what there is of data in all.
func (c *cluster) program(b *testing.B, name string, bytes *float64, make func(context.Context) *exec.Cmd, read func(out string)) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	stall := c.ping(ctx)
	process := make(ctx)
	var out, problem strings.Builder
	process.Stdout, process.Stderr = &out, &problem
	start := time.Now()
	if err := process.Run(); err != nil {
		b.Fatalf("%s: %v: %s", name, err, &problem)
	}
	took := time.Since(start)
	cancel()
	if read != nil {
		read(out.String())
	}
	usage, ok := process.ProcessState.SysUsage().(*syscall.Rusage)
	must(b, want(ok, "the usage is %T", process.ProcessState.SysUsage()))
	cpu := process.ProcessState.UserTime() + process.ProcessState.SystemTime()
	const kilo, mega = 1 << 10, 1e6
	b.Logf("%-26s %6.2f s  %5.0f MB in all  CPU %5.2f s  %4d MiB of memory  longest wait %3d ms", name, took.Seconds(), *bytes/mega,
		cpu.Seconds(), usage.Maxrss/kilo, stall().Milliseconds())
}

// field is the number before some words.
func field(b *testing.B, text, words string) float64 {
	b.Helper()
	before, _, found := strings.Cut(text, words)
	must(b, want(found, "it says %q", text))
	n, err := strconv.ParseFloat(before[strings.LastIndex(before, " ")+1:], 64)
	must(b, err)
	return n
}
