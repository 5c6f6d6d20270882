// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// BenchmarkReshard moves a quarter of all slots from three masters to a fourth one, with redis-cli and with this operator's
// code, on the same cluster and data:
//
//	ENGINES=… KEYS=300000 REDIS_CLI=redis-cli go test -run - -bench Reshard -benchtime 1x -timeout 30m ./test/engine
//
// Beside the times it tells the longest time that a client which pings one node had to wait, over all nodes.
func BenchmarkReshard(b *testing.B) {
	for _, e := range engines(b) {
		b.Run(e.name, func(b *testing.B) { benchmarkReshard(b, e) })
	}
}

func benchmarkReshard(b *testing.B, e engine) {
	keys, err := strconv.Atoi(cmp.Or(os.Getenv("KEYS"), "300000"))
	must(b, err)
	c := startCluster(b, e, 4, 3, 0)
	fill(b, c.client(), keys)
	var there, back []reshard.Move
	for i, part := range slots.Range(0, 4095).Split(3) {
		set := c.view(i).Slots.Take(part.Len())
		there, back = append(there, c.move(i, 3, set)), append(back, c.move(3, i, set))
	}
	for b.Loop() {
		c.measure(b, "redis-cli 3->1", there, func() time.Duration { return redisCLI(b, c) })
		c.measure(b, "classic 1->3", back, func() time.Duration { return complete(b, reshard.Classic, reshard.Options{}, back...).LongestBlock })
		c.measure(b, "classic 3->1", there,
			func() time.Duration { return complete(b, reshard.Classic, reshard.Options{}, there...).LongestBlock })
		if c.view(0).Atomic == slots.AtomicNone {
			continue
		}
		c.measure(b, "atomic 1->3", back, func() time.Duration { return complete(b, reshard.Atomic, reshard.Options{}, back...).LongestBlock })
		c.measure(b, "atomic 3->1", there, func() time.Duration { return complete(b, reshard.Atomic, reshard.Options{}, there...).LongestBlock })
		c.measure(b, "atomic 1->3", back, func() time.Duration { return complete(b, reshard.Atomic, reshard.Options{}, back...).LongestBlock })
		c.measure(b, "engine alone 3->1", there, func() time.Duration { return engineAlone(b, there) })
	}
}

// fill writes strings, four of five of 100 bytes, most others of 1 KiB, one of fifty of 10 KiB.
func fill(t testing.TB, client *goredis.ClusterClient, keys int) {
	t.Helper()
	const chunk, writers = 1000, 4
	sizes := []int{100, 100, 100, 100, 1 << 10}
	value := strings.Repeat(fmt.Sprintf("%032x", rand.Uint64()), 10<<10/32)
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for first := w * chunk; first < keys; first += writers * chunk {
				pipe := client.Pipeline()
				for i := first; i < min(first+chunk, keys); i++ {
					size := sizes[i%len(sizes)]
					if i%50 == 0 {
						size = len(value)
					}
					pipe.Set(t.Context(), fmt.Sprintf("key:%d", i), value[:size], 0)
				}
				if _, err := pipe.Exec(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// measure prints how fast the slots were moved, and how long clients had to wait.
func (c *cluster) measure(b *testing.B, name string, moves []reshard.Move, work func() time.Duration) {
	b.Helper()
	before := c.keysIn(moves)
	ctx, cancel := context.WithCancel(b.Context())
	stall := c.ping(ctx)
	cpu := c.cpu()
	start := time.Now()
	block := work()
	took := time.Since(start)
	cancel()
	used := c.cpu()
	for i := range used {
		used[i] -= cpu[i]
	}
	var total int
	for _, m := range moves {
		total += m.Slots.Len()
	}
	b.Logf("%-20s %6.2f s  %7.0f slots/s  %8.0f keys/s  longest wait %3d ms  longest MIGRATE %3d ms  CPU %.1f s", name, took.Seconds(),
		float64(total)/took.Seconds(), float64(before)/took.Seconds(), stall().Milliseconds(), block.Milliseconds(), used)
	for _, m := range moves {
		view, err := m.To.Node.Describe(b.Context())
		must(b, err)
		must(b, want(m.Slots.Subtract(view.Slots).IsEmpty(), "%s did not receive all slots", m.To.Node))
	}
}

// cpu is the seconds of processor time that each server has used, and this process at last (proc_pid_stat(5)).
func (c *cluster) cpu() []float64 {
	const userAndSystem = 2
	pids := []string{"self"}
	for _, s := range c.servers {
		pids = append(pids, strconv.Itoa(s.process.Process.Pid))
	}
	var used []float64
	for _, pid := range append(pids[1:], pids[0]) {
		used = append(used, ticks(c.t, pid, userAndSystem))
	}
	return used
}

// ticks is the sum of some of the times of a process, in seconds: user, system, and the same two of its children that have ended.
func ticks(t testing.TB, pid string, of int) (sum float64) {
	t.Helper()
	const ticksPerSecond, userTime = 100, 13
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	must(t, err)
	for _, field := range strings.Fields(string(stat))[userTime : userTime+of] {
		n, err := strconv.ParseFloat(field, 64)
		must(t, err)
		sum += n / ticksPerSecond
	}
	return sum
}

func (c *cluster) keysIn(moves []reshard.Move) (keys int64) {
	for _, m := range moves {
		counts, err := m.From.Node.CountKeysInSlots(c.t.Context(), m.Slots)
		must(c.t, err)
		for _, n := range counts {
			keys += n
		}
	}
	return keys
}

// ping asks each master every millisecond until the context ends; the function it returns tells the longest wait.
func (c *cluster) ping(ctx context.Context) func() time.Duration {
	var wait sync.WaitGroup
	longest := make([]time.Duration, c.masters)
	for i := range c.masters {
		wait.Go(func() {
			client := goredis.NewClient(&goredis.Options{Addr: c.servers[i].addr(), Password: password, PoolSize: 1})
			defer func() { _ = client.Close() }()
			for ctx.Err() == nil {
				start := time.Now()
				_ = client.Ping(context.Background()).Err() // how long it takes is what counts
				longest[i] = max(longest[i], time.Since(start))
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() time.Duration {
		wait.Wait()
		var most time.Duration
		for _, d := range longest {
			most = max(most, d)
		}
		return most
	}
}

// redisCLI moves slots as an administrator does by hand. It takes the lowest slots of each source, as the moves do.
func redisCLI(b *testing.B, c *cluster) time.Duration {
	b.Helper()
	cli := exec.Command(cmp.Or(os.Getenv("REDIS_CLI"), "redis-cli"), "--no-auth-warning", "-a", password, "--cluster",
		"reshard", c.servers[0].addr(), "--cluster-from", strings.Join(c.ids[:3], ","), "--cluster-to", c.ids[3],
		"--cluster-slots", "4096", "--cluster-pipeline", "100", "--cluster-yes")
	if output, err := cli.CombinedOutput(); err != nil {
		b.Fatalf("redis-cli: %v\n%.2000s", err, output)
	}
	return 0 // it does not tell how long its MIGRATEs took
}

// engineAlone gives the command for all moves and waits for the engine.
func engineAlone(t testing.TB, moves []reshard.Move) time.Duration {
	t.Helper()
	for _, m := range moves {
		must(t, m.From.Node.MigrateSlots(t.Context(), m.Slots, m.To.ID))
	}
	for _, m := range moves {
		eventually(t, func() error {
			view, err := m.From.Node.Describe(t.Context())
			if err != nil {
				return err
			}
			return want(view.Slots.Intersect(m.Slots).IsEmpty(), "%s still owns slots", m.From.Node)
		})
	}
	return 0
}
