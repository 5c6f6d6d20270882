// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// switchoverLimit is what the grace period of a pod leaves for switchover.sh.
const switchoverLimit = 40 * time.Second

// stopping is a shard of one master and some replicas, each in a pod of its own in the eyes of switchover.sh.
type stopping struct {
	*cluster
	cli string
}

// podAddress is the address under which an instance's replication shows it: the script asks it there.
func podAddress(i int) string { return fmt.Sprintf("192.0.2.%d", i+1) }

func startStopping(t *testing.T, e engine, replicas int) *stopping {
	t.Helper()
	started := 0
	begin := func(pool *redis.Pool) *server {
		busPort := freePort(t)
		settings := slices.Concat(clusterMode(busPort), []string{"--replica-announce-ip", podAddress(started)})
		started++
		return startWith(t, pool, &server{t: t, engine: e, busPort: busPort, settings: settings})
	}
	s := &stopping{cluster: startClusterOf(t, newPool(t), 1, 1, 1, begin), cli: cli(t, e)}
	for i := 2; i <= replicas; i++ {
		more := begin(s.pool)
		s.servers, s.ids = append(s.servers, more), append(s.ids, mustIdentify(t, more.node(s.pool)))
		must(t, s.node(0).Meet(t.Context(), "127.0.0.1", more.port, more.busPort))
		eventually(t, func() error { return knows(t, s.node(i), s.ids[0]) })
		must(t, s.node(i).Replicate(t.Context(), s.ids[0]))
		eventually(t, func() error { return inSync(t, s.node(i), s.ids[0]) })
	}
	eventually(t, s.formed)
	return s
}

// cli is the command of redis-cli that belongs to an engine: beside its server, also when the command is a script that runs it.
func cli(t testing.TB, e engine) string {
	t.Helper()
	const beside = "redis-cli"
	if path := filepath.Join(filepath.Dir(e.command), beside); exec.Command(path, "--version").Run() == nil {
		return path
	}
	script, err := os.ReadFile(e.command)
	must(t, err)
	path := filepath.Join(t.TempDir(), beside)
	writeProgram(t, path, regexp.MustCompile(`/[a-z]+-server"`).ReplaceAllString(string(script), "/"+beside+`"`))
	must(t, exec.Command(path, "--version").Run())
	return path
}

// writeProgram writes a script that can be run at once. Another process writes it: what this one has open for writing may be
// inherited by a server that another test starts at this moment, and Linux runs no file that somebody may write to.
func writeProgram(t testing.TB, path, script string) {
	t.Helper()
	write := exec.Command("sh", "-c", `cat >"$0" && chmod 700 "$0"`, path)
	write.Stdin = strings.NewReader(script)
	must(t, write.Run())
}

// stop runs switchover.sh as the kubelet does in the pod of an instance. meanwhile is a shell command that runs once, right after
// the script has first asked for the instance's role; ask is redis-cli to that instance.
func (s *stopping) stop(i int, meanwhile string) error {
	dir := s.t.TempDir()
	var ports strings.Builder
	for other, server := range s.servers {
		fmt.Fprintf(&ports, "%s) port=%d;; ", podAddress(other), server.port)
	}
	wrapper := fmt.Sprintf(`#!/bin/sh
PATH=%q
shift # --raw
port=%d
ask() { %q -p "$port" --raw "$@"; }
if [ "$1" = -h ]; then case "$2" in %s esac; shift 2; fi
ask "$@"
if [ "$1" = ROLE ] && mkdir %q 2>/dev/null; then %s; fi
`, os.Getenv("PATH"), s.servers[i].port, s.cli, ports.String(), filepath.Join(dir, "asked"), meanwhile)
	writeProgram(s.t, filepath.Join(dir, "redis-cli"), wrapper)
	ctx, cancel := context.WithTimeout(s.t.Context(), switchoverLimit)
	defer cancel()
	script := exec.CommandContext(ctx, "sh", filepath.Join("..", "..", "helm-charts", "rediscluster", "switchover.sh"))
	script.Env = append(os.Environ(), "PATH="+imagePath(s.t, dir), "REDISCLI_AUTH="+password)
	start := time.Now()
	out, err := script.CombinedOutput()
	s.t.Logf("instance %d may stop after %.1f s", i, time.Since(start).Seconds())
	if err != nil || len(out) > 0 {
		return fmt.Errorf("switchover.sh: %w: %s", err, out)
	}
	return nil
}

// suspend makes an instance hang until the test ends.
func (s *stopping) suspend(i int) {
	must(s.t, s.servers[i].process.Process.Signal(syscall.SIGSTOP))
}

// writing writes with an ordinary client until it is told to end, and returns the first error.
func (s *stopping) writing() (end func() error) {
	client, done, result := s.client(), make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				result <- nil
				return
			default:
			}
			if err := client.Set(context.Background(), fmt.Sprintf("key:%d", n%100), n, 0).Err(); err != nil {
				result <- err
				return
			}
		}
	}()
	return func() error { close(done); return <-result }
}

// A master that is to stop switches over to a replica that answers, and clients notice nothing.
func TestMasterSwitchesOverBeforeItStops(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 1)
		end := s.writing()
		must(t, s.stop(0, "true"))
		must(t, end())
		eventually(t, func() error { return inSync(t, s.node(0), s.ids[1]) })
	})
}

// A master that slots are moving from waits until they have been closed, though not for ever.
func TestMasterSwitchesOverWhenNoSlotsMove(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		for name, closes := range map[string]bool{"closed meanwhile": true, "left open": false} {
			t.Run(name, func(t *testing.T) {
				s := startStopping(t, e, 1)
				destination := start(t, e, s.pool)
				id := mustIdentify(t, destination.node(s.pool))
				must(t, s.node(0).Meet(t.Context(), "127.0.0.1", destination.port, destination.busPort))
				eventually(t, func() error {
					return errors.Join(knows(t, s.node(0), id), knows(t, destination.node(s.pool), s.ids[0]))
				})
				must(t, s.node(0).SetSlots(t.Context(), slots.Of(5), redis.SlotMigrating, id))
				role := filepath.Join(t.TempDir(), "role")
				meanwhile := "true"
				if closes {
					meanwhile = fmt.Sprintf("{ sleep 1; ask ROLE | head -n 1 >%q; ask CLUSTER SETSLOT 5 STABLE; } >/dev/null 2>&1 & true", role)
				}
				must(t, s.stop(0, meanwhile))
				eventually(t, func() error { return inSync(t, s.node(0), s.ids[1]) })
				if was, err := os.ReadFile(role); closes && (err != nil || string(was) != "master\n") {
					t.Errorf("when the slot was closed it was a %q (%v)", was, err)
				}
			})
		}
	})
}

func TestMasterSwitchesOverToAReplicaThatAnswers(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		for hung := 1; hung <= 2; hung++ { // the one of them that has received most, too
			s := startStopping(t, e, 2)
			s.suspend(hung)
			must(t, s.stop(0, "true"))
			eventually(t, func() error { return inSync(t, s.node(0), s.ids[3-hung]) })
		}
	})
}

// An instance that has been succeeded a moment before it is told to stop stays as long as a client takes it for the master.
func TestFormerMasterStaysWhileItRedirectsClients(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 1)
		must(t, s.node(1).Failover(t.Context(), redis.FailoverDefault))
		eventually(t, func() error { return inSync(t, s.node(0), s.ids[1]) })
		ended := make(chan error, 1)
		go func() { ended <- s.stop(0, "true") }()
		for range 25 {
			if err := s.direct(0).Get(t.Context(), "key").Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
				t.Fatalf("it answers %v, and is a replica", err)
			}
			select {
			case err := <-ended:
				t.Fatalf("it may stop, and a client was redirected a moment ago (%v)", err)
			case <-time.After(200 * time.Millisecond):
			}
		}
		must(t, <-ended)
	})
}

// A replica that becomes the master while it is about to stop hands back.
func TestReplicaThatIsPromotedSwitchesOverBeforeItStops(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 1)
		end := s.writing()
		must(t, s.stop(1, "ask CLUSTER FAILOVER >/dev/null; until ask ROLE | grep -q master; do sleep 0.05; done"))
		must(t, end())
		eventually(t, func() error { return inSync(t, s.node(1), s.ids[0]) })
		if epoch := s.view(0).ConfigEpoch; epoch < 3 {
			t.Errorf("the epoch is %d: the replica was never promoted", epoch)
		}
	})
}

// Instances that stop at the same time do not switch over to each other again and again.
func TestWholeShardStops(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 2)
		var group sync.WaitGroup
		for i := range s.servers {
			group.Go(func() {
				if err := s.stop(i, "true"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for i := range s.servers {
			if epoch := s.view(i).ConfigEpoch; epoch > 3 {
				t.Errorf("%d switchovers, want one for each of two replicas at most", epoch-1)
			}
		}
	})
}

// A server that hangs does not hold its pod.
func TestHungInstanceMayStop(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 1)
		s.suspend(0)
		must(t, s.stop(0, "true"))
	})
}
