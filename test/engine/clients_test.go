// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/gateway"
)

// front is a gateway as clients of any language reach it. Where they use TLS, they reach nothing else: instances speak plain.
type front struct {
	seeds   [][2]any // HOST, PORT
	outside []string // HOST:PORT of all instances
	ca      string   // empty: clients speak plain
}

// startFront runs a gateway: with a port for each instance at a host, or, without a host, with one for all that their names tell apart.
func startFront(c *cluster, host string, ca *authority) front {
	c.t.Helper()
	m, f := gateway.Map{}, front{}
	if host == "" {
		m.Port = uint16(freePort(c.t))
	}
	for i, s := range c.servers {
		port, at := freePort(c.t), host
		if host == "" {
			port, at = int(m.Port), fmt.Sprintf("cache-0-%d.redis.example.com", i)
		}
		instance := gateway.Instance{Name: fmt.Sprintf("cache-0-%d", i), Outside: net.JoinHostPort(at, strconv.Itoa(port)),
			Inside: []string{s.addr()}}
		if host != "" {
			instance.Port = uint16(port)
		}
		m.Instances = append(m.Instances, instance)
		f.seeds, f.outside = append(f.seeds, [2]any{at, port}), append(f.outside, instance.Outside)
	}
	var set func(*gateway.Options)
	if ca != nil {
		dir := c.t.TempDir()
		ca.issue(dir, net.ParseIP("127.0.0.1"))
		f.ca = filepath.Join(dir, "ca.crt")
		set = func(o *gateway.Options) {
			o.CertFile, o.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		}
	}
	runGateway(c.t, m, set)
	return f
}

// client is go-redis, which tells each instance by name which one it wants.
func (f front) client(t *testing.T, ca *authority) *goredis.ClusterClient {
	client := goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: f.outside, Password: password, MaxRetries: -1, MaxRedirects: 16, DisableIdentity: true,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		Dialer: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(address)
			if !slices.Contains(f.outside, address) {
				return nil, fmt.Errorf("%s is not reached from outside", address)
			}
			config := ca.clients()
			config.ServerName = host
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		}})
	t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}

// Clients of other languages use a cluster through the gateway as they use any: in plain, with TLS, and with one port for all.
// redis-cli is always there; with NODE_CLIENTS those for Node.js are, and redis-py must be (python3-redis in Debian).
func TestOtherClients(t *testing.T) {
	some := engines(t)
	if os.Getenv("E2E") != "all" {
		some = some[len(some)-1:]
	}
	forEach(t, some, func(t *testing.T, e engine) {
		ca := newAuthority(t)
		c := startCluster(t, e, 3, 3, 3)
		plain, secured, named := startFront(c, "127.0.0.1", nil), startFront(c, "127.0.0.1", ca), startFront(c, "", ca)
		t.Run("go-redis", func(t *testing.T) { useOutside(t, named.client(t, ca), "sni") })
		t.Run("redis-cli", func(t *testing.T) {
			useRedisCLI(t, e, plain, "cli")
			useRedisCLI(t, e, secured, "cli-tls")
		})
		for _, client := range []string{"redis-py", "ioredis", "node-redis"} {
			t.Run(client, func(t *testing.T) {
				fronts := map[string]front{"plain": plain, "tls": secured}
				if client == "redis-py" { // the others tell no server name
					fronts["sni"] = named
				}
				for name, f := range fronts {
					useScript(t, client, f, client+"-"+name)
				}
			})
		}
	})
}

// useScript uses a client of another language, and fails if it knows an instance at another address than the gateway's.
func useScript(t *testing.T, client string, f front, prefix string) {
	t.Helper()
	asked, err := json.Marshal(map[string]any{"client": client, "seeds": f.seeds[:2], "password": password, "ca": f.ca, "prefix": prefix})
	must(t, err)
	command := exec.CommandContext(t.Context(), "node", "clients/use.cjs", string(asked))
	command.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(os.Getenv("NODE_CLIENTS"), "node_modules"))
	if client == "redis-py" {
		command = exec.CommandContext(t.Context(), python(t), "clients/use.py", string(asked))
	} else if os.Getenv("NODE_CLIENTS") == "" {
		t.Skip("NODE_CLIENTS is not set: make test-engine CLIENTS=all")
	}
	var failed *exec.ExitError
	out, err := command.Output()
	if errors.As(err, &failed) {
		t.Fatalf("%s: %v\n%s", prefix, err, failed.Stderr)
	}
	must(t, err)
	var known []string
	must(t, json.Unmarshal(out, &known))
	for _, address := range known {
		if !slices.Contains(f.outside, address) {
			t.Errorf("%s: the client knows an instance at %s, want one of %q", prefix, address, f.outside)
		}
	}
	if len(known) < 3 {
		t.Errorf("%s: the client knows %q", prefix, known)
	}
}

// python is one that has redis-py.
func python(t *testing.T) string {
	t.Helper()
	for _, command := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), command, "-c", "import redis.cluster").Run() == nil {
			return command
		}
	}
	if os.Getenv("NODE_CLIENTS") != "" {
		t.Fatal("no Python has redis-py: apt-get install python3-redis")
	}
	t.Skip("no Python has redis-py")
	return ""
}

// useRedisCLI follows redirections with the engine's own client.
func useRedisCLI(t *testing.T, e engine, f front, prefix string) {
	t.Helper()
	host, port, _ := strings.Cut(f.outside[0], ":")
	args := append(clientOf(t, e), "-c", "-h", host, "-p", port, "-a", password, "--no-auth-warning")
	if f.ca != "" {
		args = append(args, "--tls", "--cacert", f.ca)
	}
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		must(t, errors.Join(err, want(err == nil, "%s", out)))
		return strings.TrimSpace(string(out))
	}
	for i := range 10 {
		key := fmt.Sprintf("%s:%d", prefix, i)
		must(t, want(run(append(args, "SET", key, key)...) == "OK", "SET %s fails", key))
		value := run(append(args, "GET", key)...)
		must(t, want(value == key, "%s is %q", key, value))
	}
	nodes := run(append(args, "CLUSTER", "NODES")...)
	for _, address := range f.outside {
		must(t, want(strings.Contains(nodes, address+"@"), "%s is not in\n%s", address, nodes))
	}
}

var served = regexp.MustCompile(`/[a-z]+-server"`)

// clientOf is the command of the client beside a server.
func clientOf(t *testing.T, e engine) []string {
	t.Helper()
	beside := filepath.Join(filepath.Dir(e.command), "redis-cli")
	if _, err := os.Stat(beside); err == nil {
		return []string{beside}
	}
	script, err := os.ReadFile(e.command) // hack/engines.sh makes it
	must(t, errors.Join(err, want(served.Match(script), "there is no redis-cli beside %s", e.command)))
	path := filepath.Join(t.TempDir(), "redis-cli")
	must(t, os.WriteFile(path, served.ReplaceAll(script, []byte(`/redis-cli"`)), 0o700))
	return []string{path}
}
