// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// runStart runs start.sh as the container of an instance does, in its directory and with a server that only says that it would
// start, and returns what was printed.
func (c *cluster) runStart(i int) string {
	c.t.Helper()
	return <-c.goStart(i, "")
}

// goStart is runStart that does not wait. before is a shell command that runs before redis-cli has CLUSTER FAILOVER sent.
func (c *cluster) goStart(i int, before string) <-chan string {
	c.t.Helper()
	command := c.startScript(i, before, "/bin/echo", "the server starts")
	printed := make(chan string, 1)
	go func() {
		out, err := command.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "the server starts\n") {
			c.t.Errorf("start.sh: %v: %s", err, out)
		}
		printed <- string(out)
	}()
	return printed
}

// startScript is start.sh for the directory of an instance, with the server that args name.
func (c *cluster) startScript(i int, before string, args ...string) *exec.Cmd {
	c.t.Helper()
	dir := c.t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "helm-charts", "rediscluster", "start.sh"))
	must(c.t, err)
	script := strings.NewReplacer("/data/", c.servers[i].dir+"/", "/etc/redis/", dir+"/").Replace(string(text))
	must(c.t, os.WriteFile(filepath.Join(dir, "start.sh"), []byte(script), 0o600))
	must(c.t, os.WriteFile(filepath.Join(dir, "redis.conf"), []byte("port 6379\ncluster-node-timeout \"2000\"\n"), 0o600))
	must(c.t, os.MkdirAll(filepath.Join(dir, "auth"), 0o700))
	must(c.t, os.WriteFile(filepath.Join(dir, "auth", "password"), []byte(password), 0o600))
	writeProgram(c.t, filepath.Join(dir, "redis-cli"), fmt.Sprintf("#!/bin/sh\ncase $* in *FAILOVER*) %s ;; esac\nexec %q \"$@\"\n",
		cmp.Or(before, ":"), cli(c.t, c.servers[i].engine)))
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	c.t.Cleanup(cancel)
	command := exec.CommandContext(ctx, "sh", append([]string{filepath.Join(dir, "start.sh")}, args...)...)
	command.Env = append(os.Environ(), "PATH="+imagePath(c.t, dir))
	return command
}

// writeAcknowledged writes keys of the first master's slots and waits until so many replicas have them.
func (c *cluster) writeAcknowledged(prefix string, replicas int) (keys []string) {
	c.t.Helper()
	client := c.direct(0)
	for _, tag := range tags(slots.All().Split(3)[0], 20) {
		key := prefix + "{" + tag + "}"
		must(c.t, client.Set(c.t.Context(), key, key, 0).Err())
		keys = append(keys, key)
	}
	n, err := client.Do(c.t.Context(), "wait", replicas, 5000).Int()
	must(c.t, err)
	must(c.t, want(n >= replicas, "%d of %d replicas have the keys", n, replicas))
	return keys
}

func (c *cluster) wantKeys(keys []string) {
	c.t.Helper()
	client := c.client()
	for _, key := range keys {
		if got, err := client.Get(c.t.Context(), key).Result(); err != nil || got != key {
			c.t.Errorf("%s is %q (%v)", key, got, err)
		}
	}
}

// remembers is nil when the instance's append-only file has a key.
func (s *server) remembers(key string) error {
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	for _, file := range files {
		text, failed := os.ReadFile(file)
		if failed == nil && strings.Contains(string(text), key) {
			return nil
		}
		err = errors.Join(err, failed)
	}
	return errors.Join(err, fmt.Errorf("no append-only file has %s", key))
}

// forget empties what an instance has on its disk of the last writes, as if a slow disk had kept it from writing them.
func (s *server) forget() {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	must(s.t, err)
	must(s.t, want(len(files) > 0, "no append-only file in %s", s.dir))
	for _, file := range files {
		stat, err := os.Stat(file)
		must(s.t, err)
		must(s.t, os.Truncate(file, 0))
		must(s.t, os.Chtimes(file, stat.ModTime(), stat.ModTime()))
	}
}

// A master that has crashed lets the replica take over that followed it to its end: what replicas had acknowledged is there,
// although the master's own file lacks it.
func TestCrashedMasterIsSucceeded(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 1)
		keys := c.writeAcknowledged("acknowledged", 1)
		c.servers[0].kill()
		c.servers[0].forget()
		if out := c.runStart(0); !strings.Contains(out, "takes over first") {
			t.Errorf("start.sh printed %q", out)
		}
		if view := c.view(3); view.Role != redis.RoleMaster {
			t.Errorf("the server starts while the replica is a %s", view.Role)
		}
		c.servers[0].run()
		eventually(t, func() error { return inSync(t, c.node(0), c.ids[3]) })
		c.wantKeys(keys)
	})
}

// A replica that was told to take over and hangs does so when it goes on: the server does not start before that, and no write that it
// would take is lost.
func TestCrashedMasterAwaitsWhomItTold(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		for _, masters := range []int{1, 3} {
			c := startCluster(t, e, masters, masters, 1)
			c.servers[0].kill()
			replica := c.servers[masters].process.Process
			told := filepath.Join(t.TempDir(), "told")
			printed := c.goStart(0, fmt.Sprintf("[ -e %[1]q ] || kill -STOP %[2]d; echo >%[1]q", told, replica.Pid))
			eventually(t, func() error {
				_, err := os.Stat(told)
				return err
			})
			time.Sleep(3 * time.Second) // redis-cli has given up
			select {
			case out := <-printed:
				t.Errorf("%d masters: the server starts while a replica hangs that was told: %q", masters, out)
				printed = nil
			default:
			}
			must(t, replica.Signal(syscall.SIGCONT))
			if printed != nil {
				<-printed
			}
			if view := c.view(masters); view.Role != redis.RoleMaster {
				t.Errorf("%d masters: the server starts while the replica is a %s", masters, view.Role)
			}
		}
	})
}

// A replica that was cut off before the end lacks what the master's file has: the master goes on.
func TestCrashedMasterWithALateReplicaGoesOn(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 1)
		replica := c.node(3)
		must(t, replica.ConfigSet(t.Context(), "cluster-replica-no-failover", "yes")) // a machine that is busy is not to have it elected
		must(t, replica.ConfigSet(t.Context(), "masterauth", "wrong"))
		must(t, c.direct(0).Do(t.Context(), "client", "kill", "type", "replica").Err())
		eventually(t, func() error {
			view, err := replica.Describe(t.Context())
			if err != nil {
				return err
			}
			return want(view.MasterLinkDownFor > 4*time.Second, "the link is down for %v", view.MasterLinkDownFor)
		})
		keys := c.writeAcknowledged("late", 0)
		eventually(t, func() error { return c.servers[0].remembers(keys[len(keys)-1]) }) // it answers before it writes
		c.servers[0].kill()
		if out := c.runStart(0); strings.Contains(out, "takes over") {
			t.Errorf("start.sh printed %q", out)
		}
		c.servers[0].run()
		eventually(t, c.formed)
		must(t, replica.ConfigSet(t.Context(), "masterauth", password))
		c.wantKeys(keys)
	})
}

// Whoever is no master starts at once, and so does a master whose replicas do not run.
func TestOthersStartAtOnce(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 1)
		c.servers[3].kill()
		c.runStart(3)
		c.servers[0].kill()
		for _, i := range []int{0, 3} {
			if out := c.runStart(i); strings.Contains(out, "takes over") {
				t.Errorf("start.sh of instance %d printed %q", i, out)
			}
		}
	})
}
