// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// moduleArgs could each begin another argument, another line, or an expansion, if they were not quoted.
var moduleArgs = []string{"two words", `quote " and \`, "port 1\nrequirepass x", "$HOME `id`", ""}

// compileModule builds testdata/number.c. /tmp is no place for modules of a RedisCluster, so the operator is told of
// another one, and the line that it writes is changed to where the file is.
func compileModule(t *testing.T) (line string) {
	t.Helper()
	const inImage = "/usr/lib/modules/number.so"
	file := filepath.Join(t.TempDir(), "number.so")
	output, err := exec.Command("gcc", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-nostdlib", "-o", file,
		"testdata/number.c").CombinedOutput()
	if err != nil {
		t.Fatalf("compiling the module: %v\n%s", err, output)
	}
	cluster := &v1alpha1.RedisCluster{Spec: v1alpha1.RedisClusterSpec{Modules: []v1alpha1.Module{{Name: inImage, Args: moduleArgs}}}}
	for _, setting := range redisconf.File(cluster, redisconf.AskedFor(cluster, nil), redisconf.TLSFor(cluster)) {
		if setting.Name == "loadmodule" {
			return strings.Replace(setting.Line(), inImage, file, 1)
		}
	}
	t.Fatal("redis.conf loads no module")
	return ""
}

// startWithConfig runs a member of a cluster with a redis.conf of these lines besides what every test server has.
func startWithConfig(t *testing.T, e engine, pool *redis.Pool, lines ...string) *server {
	t.Helper()
	busPort, dir := freePort(t), t.TempDir()
	s := &server{t: t, engine: e, busPort: busPort, settings: clusterMode(busPort), dir: dir, access: filepath.Join(dir, "redis.conf")}
	s.configure(lines...)
	return startWith(t, pool, s)
}

// configure writes redis.conf.
func (s *server) configure(lines ...string) {
	s.t.Helper()
	lines = append([]string{"requirepass " + password, "masterauth " + password}, lines...)
	must(s.t, os.WriteFile(s.access, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// numbers writes one number of the module into each of some slots.
func (c *cluster) numbers(set slots.Set, each int) map[string]int64 {
	c.t.Helper()
	written, client := map[string]int64{}, c.client()
	for i, tag := range tags(set, each) {
		key, n := fmt.Sprintf("{%s}number", tag), int64(i)+1
		must(c.t, client.Do(c.t.Context(), "NUMBER.SET", key, n).Err())
		written[key] = n
	}
	return written
}

func (c *cluster) wantNumbers(want map[string]int64) {
	c.t.Helper()
	got, client := map[string]int64{}, c.client()
	for key := range want {
		n, err := client.Do(c.t.Context(), "NUMBER.GET", key).Int64()
		if err != nil {
			c.t.Errorf("%s: %v", key, err)
		}
		got[key] = n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("numbers of the module (-written +read):\n%s", diff)
	}
}

// TestSlotsMoveWithTheDataOfAModule, and arrive with the module's arguments as they were written in the spec.
func TestSlotsMoveWithTheDataOfAModule(t *testing.T) {
	line := compileModule(t)
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startClusterOf(t, newPool(t), 2, 1, 1, func(pool *redis.Pool) *server { return startWithConfig(t, e, pool, line) })
		args, err := c.direct(0).Do(t.Context(), "NUMBER.ARGS").StringSlice()
		must(t, err)
		if diff := cmp.Diff(moduleArgs, args); diff != "" {
			t.Errorf("arguments of the module (-spec +process):\n%s", diff)
		}
		ways := []mover{reshard.Classic}
		if c.view(0).Atomic != slots.AtomicNone {
			ways = append(ways, reshard.Atomic)
		}
		moved := slots.Set{}
		for i, way := range ways {
			// Slots of their own: those that go and come back at once are lost to late messages (ADR 0017).
			set := slots.Range(uint16(100*i), uint16(100*i+99))
			written := c.numbers(set, 5)
			if done := complete(t, way, reshard.Options{}, c.move(0, 1, set)); done.Keys < int64(len(written)) || done.Conflicts != 0 {
				t.Errorf("progress %+v", done)
			}
			moved = moved.Union(set)
			eventually(t, func() error { return c.settled(map[int]slots.Set{0: slots.All().Subtract(moved), 1: moved}) })
			c.wantNumbers(written)
		}
	})
}

// TestNoKeyIsLostWhereTheModuleIsMissing: a move to an instance without the module fails, key by key, and goes on when the
// instance has restarted with it.
func TestNoKeyIsLostWhereTheModuleIsMissing(t *testing.T) {
	line := compileModule(t)
	forEachEngine(t, func(t *testing.T, e engine) {
		without := 1 // the second server
		c := startClusterOf(t, newPool(t), 2, 1, 0, func(pool *redis.Pool) *server {
			if without--; without < 0 {
				return startWithConfig(t, e, pool)
			}
			return startWithConfig(t, e, pool, line)
		})
		set := slots.Range(0, 99)
		written := c.numbers(set, 5)
		_, err := reshard.Classic(t.Context(), []reshard.Move{c.move(0, 1, set)}, reshard.Options{})
		if err == nil {
			t.Fatal("keys of a module have moved to an instance without it")
		}
		t.Logf("the move ends with: %v", err)
		c.wantNumbers(written)

		c.restartWith(1, line)
		complete(t, reshard.Classic, reshard.Options{}, c.move(0, 1, set))
		eventually(t, func() error { return c.settled(map[int]slots.Set{0: slots.All().Subtract(set), 1: set}) })
		c.wantNumbers(written)
	})
}

// restartWith stops a server as a pod is stopped, and starts it with another redis.conf.
func (c *cluster) restartWith(i int, lines ...string) {
	c.t.Helper()
	s := c.servers[i]
	s.stop()
	s.configure(lines...)
	s.run()
	eventually(c.t, func() error { return s.node(c.pool).Ping(c.t.Context()) })
	eventually(c.t, c.formed)
}

// stop ends the process as a kubelet does, and waits for it.
func (s *server) stop() {
	s.t.Helper()
	must(s.t, s.process.Process.Signal(os.Interrupt))
	<-s.ended
}

// TestRolloutOfModulesHaltsAtTheReplica: instances restart with a new module, replicas first, and keep its data through
// restarts. Without it a replica does not come back, says why, and its master serves on; with it, it comes back with all data.
func TestRolloutOfModulesHaltsAtTheReplica(t *testing.T) {
	line := compileModule(t)
	forOneEngine(t, func(t *testing.T, e engine) {
		c := startClusterOf(t, newPool(t), 1, 1, 1, func(pool *redis.Pool) *server { return startWithConfig(t, e, pool) })
		const replica, master = 1, 0
		for _, i := range []int{replica, master} {
			c.restartWith(i, line)
			eventually(t, func() error { return inSync(t, c.node(replica), c.ids[master]) })
		}
		written := c.numbers(slots.All(), 20)
		c.replicaHas(replica, written)
		for _, i := range []int{replica, master} {
			c.restartWith(i, line)
			eventually(t, func() error { return inSync(t, c.node(replica), c.ids[master]) })
		}
		c.wantNumbers(written)

		s := c.servers[replica]
		s.stop()
		s.configure()
		s.run()
		<-s.ended
		if said := s.output.String(); !strings.Contains(said, "number-dt") && !strings.Contains(strings.ToLower(said), "module") &&
			!strings.Contains(strings.ToLower(said), "unknown command") {
			t.Errorf("it does not say what is missing:\n%s", said)
		}
		c.wantNumbers(written) // the master serves

		s.configure(line)
		s.run()
		eventually(t, func() error { return inSync(t, c.node(replica), c.ids[master]) })
		c.replicaHas(replica, written)
	})
}

// replicaHas waits until a replica has the numbers, and reads them from it.
func (c *cluster) replicaHas(i int, want map[string]int64) {
	c.t.Helper()
	replica := goredis.NewClient(&goredis.Options{Addr: c.servers[i].addr(), Password: password, Protocol: 2})
	c.t.Cleanup(func() { _ = replica.Close() }) // the test is over either way
	conn := replica.Conn()
	must(c.t, conn.ReadOnly(c.t.Context()).Err())
	for key, n := range want {
		eventually(c.t, func() error {
			got, err := conn.Do(c.t.Context(), "NUMBER.GET", key).Int64()
			if err != nil || got != n {
				return fmt.Errorf("%s is %d, %w, want %d", key, got, err, n)
			}
			return nil
		})
	}
}
