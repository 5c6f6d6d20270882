// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// written are values as users write them, where a change of the default's number or word does not show how.
var written = map[string][]string{
	"maxmemory":              {"100mb", "1GB", "1g", "123456789", "0"},
	"maxmemory-clients":      {"5%", "10mb", "0"},
	"maxmemory-policy":       {"allkeys-lru", "AllKeys-LFU", "volatile-ttl"},
	"save":                   {"900 1 300 10", "60 1", ""},
	"notify-keyspace-events": {"KEA", "Ex", "AKE", "Kg$lshzxetd", ""},
	"client-output-buffer-limit": {"normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", "replica 64mb 16mb 60",
		"pubsub 1mb 1mb 60 normal 1k 1k 0"},
	"oom-score-adj-values":              {"0 100 200"},
	"oom-score-adj":                     {"no", "yes", "relative", "absolute"},
	"latency-tracking-info-percentiles": {"50.0 99.90", "50"},
	"repl-diskless-load":                {"swapdb", "on-empty-db"},
	"appendfsync":                       {"always", "NO", "everysec"},
	"loglevel":                          {"debug", "Warning", "notice"},
	"sanitize-dump-payload":             {"yes", "clients"},
	"list-max-listpack-size":            {"-3", "64"},
	"tracking-table-max-keys":           {"10"},
	"proc-title-template":               {"{title} {listen-addr} x"},
	"propagation-error-behavior":        {"panic", "ignore"},
	"acl-pubsub-default":                {"allchannels"},
	"proto-max-bulk-len":                {"1gb"},
	"repl-backlog-size":                 {"2mb", "1m"},
	"cluster-link-sendbuf-limit":        {"1gb"},
}

// others are values other than the default to try.
func others(name, byDefault string) []string {
	if known, ok := written[name]; ok {
		return known
	}
	switch n, err := strconv.ParseInt(byDefault, 10, 64); {
	case byDefault == "yes":
		return []string{"no", "No"}
	case byDefault == "no":
		return []string{"yes", "YES"}
	case err == nil:
		return []string{strconv.FormatInt(n+1, 10), strconv.FormatInt(max(n/2, 1), 10)}
	}
	return nil
}

// Every setting that can be changed at run time is changed to its default and to other values, and what CONFIG GET then says
// is found to be the same: nothing would be set for ever.
func TestSettingsReadBack(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		node := startBare(t, e, pool)
		engine := column(t, node)
		tried, refused := 0, map[string]error{}
		for _, name := range slices.Sorted(maps.Keys(redisconf.Defaults(engine))) {
			byDefault := redisconf.Defaults(engine)[name]
			if redisconf.Immutable(name, engine) {
				if err := node.ConfigSet(t.Context(), name, byDefault); !errors.Is(err, redis.ErrImmutable) {
					t.Errorf("%s: %v, want one that is %q", name, err, redis.ErrImmutable)
				}
				continue
			}
			for _, value := range append(others(name, byDefault), byDefault) {
				whole := redisconf.Whole(name, value, byDefault)
				if err := node.ConfigSet(t.Context(), name, whole); err != nil {
					refused[name+" "+value] = err
					continue
				}
				tried++
				shown, err := node.ConfigGet(t.Context(), name)
				must(t, err)
				if !redisconf.Equal(name, whole, shown[name]) {
					t.Errorf("%s was set to %q and is %q", name, whole, shown[name])
				}
			}
		}
		t.Logf("%d values were set and read back", tried)
		for what, err := range refused {
			// Builds without defragmentation refuse it; that is the engine's to say.
			if name, _, _ := strings.Cut(what, " "); name != "activedefrag" {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// column is the engine of the table that the node is.
func column(t testing.TB, node *redis.Node) string {
	t.Helper()
	view, err := node.Describe(t.Context())
	must(t, err)
	version := strings.Split(view.Version, ".")
	return string(view.Engine) + "-" + version[0] + "." + version[1]
}

// What CONFIG GET says, as a line of redis.conf, is what the server starts with.
func TestSettingsAsLines(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		engine := column(t, startBare(t, e, pool))
		want := redisconf.Defaults(engine)
		for name, value := range map[string]string{"maxmemory": "123456789", "save": "900 1 300 10",
			"client-output-buffer-limit": "normal 1000000001 1000000002 3 slave 4 5 6 pubsub 7 8 9",
			"notify-keyspace-events":     "AKE", "tcp-backlog": "128", "proc-title-template": "{title} x", "oom-score-adj-values": "0 100 200"} {
			want[name] = value
		}
		var lines []string
		for name, value := range want {
			if value == "" && name != "save" {
				continue // an empty one is not written
			}
			lines = append(lines, redisconf.Setting{Name: name, Args: redisconf.Arguments(value)}.Line())
			if name == "proc-title-template" {
				lines[len(lines)-1] = redisconf.Setting{Name: name, Args: []string{value}}.Line()
			}
		}
		dir, port := t.TempDir(), strconv.Itoa(freePort(t))
		lines = append(lines, "port "+port, "bind 127.0.0.1", "cluster-enabled yes", "cluster-port "+strconv.Itoa(freePort(t)), "dir "+dir)
		file := filepath.Join(dir, "redis.conf")
		must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
		process := exec.Command(e.command, file)
		output := &strings.Builder{}
		process.Stdout, process.Stderr = output, output
		must(t, process.Start())
		ended := make(chan error, 1)
		go func() { ended <- process.Wait() }()
		t.Cleanup(func() { _ = process.Process.Kill() }) // it may have ended
		node := pool.Node(net.JoinHostPort("127.0.0.1", port), redis.Credentials{})
		eventually(t, func() error {
			select {
			case err := <-ended:
				t.Fatalf("it ended: %v\n%s", err, output)
			default:
			}
			return node.Ping(t.Context())
		})
		shown, err := node.ConfigGet(t.Context(), slices.Collect(maps.Keys(want))...)
		must(t, err)
		for name, value := range want {
			if name != "databases" && !redisconf.Equal(name, value, shown[name]) { // some engines have one in a cluster, whatever is said
				t.Errorf("%s is %q in the file and %q at run time", name, value, shown[name])
			}
		}
	})
}

// A server that does not start says which setting it is about, in words that the operator finds.
func TestFatalSettings(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		for _, bad := range []redisconf.Setting{
			{Name: "maxmemory-policy", Args: []string{"least-loved"}},
			{Name: "made-up", Args: []string{"a b", "c"}},
			{Name: "maxmemory", Args: []string{"much"}},
		} {
			dir := t.TempDir()
			file := filepath.Join(dir, "redis.conf")
			lines := []string{"port " + strconv.Itoa(freePort(t)), "dir " + dir, bad.Line()}
			must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
			output, err := exec.Command(e.command, file).CombinedOutput()
			if err == nil {
				t.Fatalf("it started with %s", bad.Line())
			}
			fatal, ok := redisconf.ReadFatal(string(output))
			if !ok || fatal.Name != bad.Name || fatal.Reason == "" {
				t.Errorf("%s: %+v of\n%s", bad.Line(), fatal, output)
			}
			t.Logf("%s: %s", fatal.Name, fatal.Reason)
		}
	})
}

// Settings change on running instances, the replicas first, and no command of clients fails.
func TestSettingsChangeUnderLoad(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 3)
		l := startLoad(c)
		for _, change := range []map[string]string{
			{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru", "hz": "20",
				"client-output-buffer-limit": "normal 0 0 0 replica 64mb 16mb 60 pubsub 1mb 1mb 60"},
			{"save": "1 1", "repl-backlog-size": "4mb", "slowlog-log-slower-than": "1000"},
			{"appendonly": "no", "repl-diskless-sync": "no", "tcp-keepalive": "60"},
			{"appendonly": "yes", "appendfsync": "always", "cluster-require-full-coverage": "no"},
			{"save": "", "maxmemory": "0", "maxmemory-policy": "noeviction", "appendfsync": "everysec", "hz": "10"},
		} {
			for _, i := range []int{3, 4, 5, 0, 1, 2} {
				must(t, c.node(i).ConfigSetAll(t.Context(), change))
				shown, err := c.node(i).ConfigGet(t.Context(), slices.Collect(maps.Keys(change))...)
				must(t, err)
				for name, value := range change {
					if !redisconf.Equal(name, value, shown[name]) {
						t.Errorf("%s was set to %q and is %q", name, value, shown[name])
					}
				}
			}
		}
		l.end()
	})
}

// One refused setting refuses all that are set with it, and nothing has changed.
func TestSettingsChangeTogether(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		node := startBare(t, e, pool)
		err := node.ConfigSetAll(t.Context(), map[string]string{"maxmemory": "1gb", "maxmemory-policy": "least-loved", "hz": "20"})
		if !errors.Is(err, redis.ErrRefused) || !strings.Contains(err.Error(), "maxmemory-policy") {
			t.Errorf("%v", err)
		}
		shown, err := node.ConfigGet(t.Context(), "maxmemory", "maxmemory-policy", "hz", "made-up")
		must(t, err)
		if !maps.Equal(shown, map[string]string{"maxmemory": "0", "maxmemory-policy": "noeviction", "hz": "10"}) {
			t.Errorf("settings %v", shown)
		}
	})
}
