// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

var update = flag.Bool("update", false, "write internal/redis/redisconf/known.tsv anew")

// startBare runs a server of whose settings only those are set that a test cannot do without,
// and returns how to reach it.
func startBare(t testing.TB, e engine, pool *redis.Pool) *redis.Node {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	process := exec.Command(e.command, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--cluster-enabled", "yes",
		"--cluster-port", strconv.Itoa(freePort(t)))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended
		_ = process.Wait()
	})
	node := pool.Node(net.JoinHostPort("127.0.0.1", port), redis.Credentials{})
	eventually(t, func() error { return node.Ping(t.Context()) })
	return node
}

// ownedAndLive are settings of the operator's own that it keeps as they are at run time.
var ownedAndLive = []string{"cluster-allow-replica-migration", "protected-mode"}

// tabled reports whether a setting is in the table: under the name that the operator uses, and one
// that it sets itself or lets users set.
func tabled(name string) bool {
	_, reserved := redisconf.Reserved(name)
	return redisconf.Canonical(name) == name && !strings.Contains(name, "_") && (!reserved || slices.Contains(ownedAndLive, name))
}

// TestSettingsTable compares what the operator knows of settings with what the engines say:
// which they have, what each is by default, and which a running server refuses to change.
func TestSettingsTable(t *testing.T) {
	pool := newPool(t)
	table := map[string]map[string]string{}
	var columns []string
	for _, e := range engines(t) {
		node := startBare(t, e, pool)
		view, err := node.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		version := strings.Split(view.Version, ".")
		engine := fmt.Sprintf("%s-%s.%s", view.Engine, version[0], version[1])
		columns = append(columns, engine)
		defaults, err := node.ConfigGet(t.Context(), "*")
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range defaults {
			if !tabled(name) {
				continue
			}
			if table[name] == nil {
				table[name] = map[string]string{}
			}
			table[name][engine] = strconv.Quote(value)
			if err := node.ConfigSet(t.Context(), name, value); errors.Is(err, redis.ErrImmutable) {
				table[name][engine] = "!" + strconv.Quote(value)
			} else if err != nil {
				t.Errorf("%s: %s is %q, and refuses to be set to that: %v", engine, name, value, err)
			}
		}
	}
	slices.Sort(columns)
	if got := tsv(table, columns); *update {
		path := filepath.Join("..", "..", "internal", "rediscluster", "settings", "known.tsv")
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(redisconf.Table, got); diff != "" {
		t.Errorf("the engines say something else than known.tsv; run with -update when all engines are tested (-table +engines):\n%s", diff)
	}
}

func tsv(table map[string]map[string]string, columns []string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "setting\t%s\n", strings.Join(columns, "\t"))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		b.WriteString(name)
		for _, column := range columns {
			cell, has := table[name][column]
			if !has {
				cell = "-"
			}
			b.WriteString("\t" + cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestMemorySizes: what the operator takes for a memory size is one to every engine, of the same
// number of bytes.
func TestMemorySizes(t *testing.T) {
	pool := newPool(t)
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			node := startBare(t, e, pool)
			for _, text := range []string{"0", "7mb", "7m", "7MB", "2gB", "2G", "2097152kb", "3000000k", "123456789", "123456789b", "8589934591gb",
				"9223372036854775807"} {
				size, ok := redisconf.Memory(text)
				if err := node.ConfigSet(t.Context(), "maxmemory", text); err != nil || !ok {
					t.Errorf("%q: %v, and a size to the operator: %t", text, err, ok)
					continue
				}
				if got, err := node.ConfigGet(t.Context(), "maxmemory"); err != nil || got["maxmemory"] != strconv.FormatInt(size, 10) {
					t.Errorf("%q is %d, and %s to the engine (%v)", text, size, got["maxmemory"], err)
				}
			}
			for _, text := range []string{"2Gi", "-1", "+1gb", "1.5gb", "2 gb", "1bk", "0x10"} {
				if err := node.ConfigSet(t.Context(), "maxmemory", text); err == nil {
					t.Errorf("the engine takes %q", text)
				}
			}
		})
	}
}
