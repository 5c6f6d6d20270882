// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
)

const password = "engine-test-password"

// TestMain runs more tests at once than there are processors: they wait for servers most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// engine is one entry of ENGINES.
type engine struct {
	name, command string
	// preload is a library that servers of a cluster which is operated load before others; empty: none.
	preload string
}

// forEachEngine runs the test on the oldest engine, which is a Redis, and on the newest, a Valkey: between them lies most of what
// engines differ in. With E2E=all it runs on every one.
func forEachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	all := engines(t)
	if os.Getenv("E2E") != "all" && len(all) > 2 {
		all = []engine{all[0], all[len(all)-1]}
	}
	forEach(t, all, test)
}

// forOneEngine runs the test on the oldest engine or on the newest, as the test's name has it: what it shows is what a program of ours or
// the operator does, on whichever engine. With E2E=all it runs on every one.
func forOneEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	all := engines(t)
	if os.Getenv("E2E") != "all" && len(all) > 2 {
		name := fnv.New32a()
		_, _ = name.Write([]byte(t.Name())) // never fails
		all = []engine{[]engine{all[0], all[len(all)-1]}[name.Sum32()%2]}
	}
	forEach(t, all, test)
}

// forEveryEngine runs the test on all engines: it says which commands, settings and answers each has.
func forEveryEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	forEach(t, engines(t), test)
}

func forEach(t *testing.T, some []engine, test func(t *testing.T, e engine)) {
	t.Helper()
	t.Parallel()
	for _, e := range some {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// engines are those of ENGINES, at least one.
func engines(t testing.TB) []engine {
	t.Helper()
	var all []engine
	for entry := range strings.FieldsSeq(os.Getenv("ENGINES")) {
		name, command, found := strings.Cut(entry, "=")
		if !found {
			t.Fatalf("ENGINES: %q is not NAME=COMMAND", entry)
		}
		all = append(all, engine{name: name, command: command})
	}
	if len(all) == 0 {
		t.Fatal("ENGINES is not set: it must list the servers to test as NAME=COMMAND, " +
			"such as ENGINES=redis-7.0.15=/usr/bin/redis-server")
	}
	return all
}

// server is one running process.
type server struct {
	t             testing.TB
	engine        engine
	dir           string
	port, busPort int
	// ipv6 makes the server announce ::1, and listen where engines do when nobody says.
	ipv6     bool
	settings []string
	// access is the file that says who may log in, a whole redis.conf; empty when that is on the command line. password is
	// what the test logs in with.
	access, password string
	// secured makes the server listen with TLS only.
	secured *redis.TLS
	output  *bytes.Buffer // read it only after the process ended
	process *exec.Cmd
	ended   chan struct{}
}

// clusterMode are the settings of a server that belongs to a cluster.
func clusterMode(busPort int) []string {
	return []string{
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(busPort), "--cluster-node-timeout", "2000",
		"--cluster-announce-ip", "127.0.0.1", "--cluster-announce-hostname", "pod-0.example.svc",
		"--cluster-allow-replica-migration", "no", // as the chart sets it
	}
}

// start runs a server in cluster mode with an empty directory and waits until it answers.
func start(t testing.TB, e engine, pool *redis.Pool) *server {
	t.Helper()
	busPort := freePort(t)
	return startWith(t, pool, &server{t: t, engine: e, busPort: busPort, settings: clusterMode(busPort)})
}

// startPlain is start without cluster mode.
func startPlain(t testing.TB, e engine, pool *redis.Pool) *server {
	t.Helper()
	return startWith(t, pool, &server{t: t, engine: e})
}

func startWith(t testing.TB, pool *redis.Pool, s *server) *server {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	if s.password == "" {
		s.password = password
	}
	s.port = freePort(t)
	s.run()
	t.Cleanup(s.kill)
	eventually(t, func() error {
		select {
		case <-s.ended:
			t.Fatalf("%s ended at once", s.engine.name)
		default:
		}
		return s.node(pool).Ping(t.Context())
	})
	return s
}

func (s *server) run() {
	s.t.Helper()
	s.output = &bytes.Buffer{}
	settings := append(s.portSettings(), "--dir", s.dir, "--appendonly", "yes", "--save", "", "--repl-diskless-sync-delay", "0")
	if !s.ipv6 {
		settings = append(settings, "--bind", "127.0.0.1")
	}
	settings = append(settings, s.settings...)
	if s.access != "" {
		settings = append([]string{s.access}, settings...)
	} else {
		settings = append(settings, "--requirepass", password, "--masterauth", password)
	}
	s.process = exec.Command(s.engine.command, settings...) // the tests exist to run what ENGINES names
	s.process.Stdout, s.process.Stderr = s.output, s.output
	if err := s.process.Start(); err != nil {
		s.t.Fatalf("starting %s: %v", s.engine.name, err)
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() {
		_ = process.Wait() // that it ends is what counts; why is in its output
		close(ended)
	}()
}

// kill ends the process as a lost machine does. The last of what it wrote is shown when the test failed.
func (s *server) kill() {
	_ = s.process.Process.Kill() // it may have ended
	<-s.ended
	if s.t.Failed() {
		const shown = 30
		lines := strings.SplitAfter(s.output.String(), "\n")
		s.t.Logf("%s on port %d wrote %d lines, in the end:\n%s", s.engine.name, s.port, len(lines),
			strings.Join(lines[max(0, len(lines)-shown):], ""))
	}
}

func (s *server) addr() string { return net.JoinHostPort(s.ip(), strconv.Itoa(s.port)) }

// ip is where the server is, for others.
func (s *server) ip() string {
	if s.ipv6 {
		return "::1"
	}
	return "127.0.0.1"
}

func (s *server) node(pool *redis.Pool) *redis.Node {
	return pool.Node(s.addr(), redis.Credentials{Password: s.password, TLS: s.secured})
}

func newPool(t testing.TB) *redis.Pool {
	t.Helper()
	pool := redis.NewPool(redis.Options{DialTimeout: timeout, IOTimeout: timeout})
	t.Cleanup(pool.Close)
	return pool
}

// given are the ports that freePort has returned: tests run in parallel, and a server takes its port a little later.
var given sync.Map

// freePort is a port that nobody listens on. It is below those that the system gives to outgoing connections (32768 and
// up on Linux), so that none takes it before the server does.
func freePort(t testing.TB) int {
	t.Helper()
	const low, high, attempts = 20000, 32768, 100
	for range attempts {
		port := low + rand.IntN(high-low)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close() // nothing was sent
			return port
		}
	}
	t.Fatalf("no free port from %d to %d in %d attempts", low, high-1, attempts)
	return 0
}

// timeout is how long an answer may take: a busy machine stalls for seconds. What is tested is what is answered; what
// hangs for good is found all the same.
const timeout = 20 * time.Second

// eventually repeats the check until it succeeds, and fails with its last error. The limit only ends a test that
// hangs.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after a minute still: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// want is nil when the condition holds, else an error made of the format.
func want(condition bool, format string, args ...any) error {
	if condition {
		return nil
	}
	return fmt.Errorf(format, args...)
}
