// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// kubectl is told which cluster and pod, as whom, and a script that is the same for all: what a person writes for redis-cli is words
// that no shell reads.
func TestWhatKubectlIsTold(t *testing.T) {
	p := newProgram(Environment{Out: io.Discard, Lookup: nothing})
	command, rest, err := p.root().Find([]string{"cli", "--context=prod", "-n", "shop", "--as=eve", "--token=hunter2"})
	if err != nil || command.ParseFlags(rest) != nil {
		t.Fatal(err)
	}
	got := p.execArguments("shop", "cache-0-0", []string{"-i", "-t"}, redisCLI, []string{"GET", "a; rm -rf / $(id)"})
	want := []string{"exec", "--namespace=shop", "--container=redis", "-i", "-t", "--as=eve", "--context=prod", "--token=hunter2", "cache-0-0",
		"--", "sh", "-c", redisCLI, "redis-cli", "GET", "a; rm -rf / $(id)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// The script gives redis-cli the words as they are, and no password among them.
func TestTheScriptPassesWordsOn(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Fatal("a shell is needed: ", err)
	}
	folder := t.TempDir()
	const print = "#!/bin/sh\nprintf '[%s]' \"$@\"\necho \" $REDISCLI_HISTFILE\"\n"
	if err := os.WriteFile(filepath.Join(folder, "redis-cli"), []byte(print), 0o700); err != nil {
		t.Fatal(err)
	}
	const secured = "[--tls][--cacert][DIR/tls/ca.crt][--cert][DIR/tls/tls.crt][--key][DIR/tls/tls.key]"
	for settings, want := range map[string]string{
		"":                                   "[-p][6379]",
		"port \"6379\"":                      "[-p][6379]",
		"port \"0\"\ntls-port \"6379\"\n":    secured + "[-p][6379]",
		"port \"6379\"\ntls-port \"6380\"\n": secured + "[-p][6380]", // spec.tls.mode: Both
	} {
		if err := os.WriteFile(filepath.Join(folder, "redis.conf"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		script := strings.ReplaceAll(redisCLI, "/etc/redis", folder)
		command := exec.CommandContext(t.Context(), shell, "-c", script, "redis-cli", "SET", "a b", "$(id) `id` \"'; exit")
		command.Env = []string{"PATH=" + folder + ":/usr/bin:/bin"}
		out, err := command.CombinedOutput()
		want = strings.ReplaceAll(want, "DIR", folder) + "[-c][SET][a b][$(id) `id` \"'; exit] /dev/null\n"
		if err != nil || string(out) != want {
			t.Errorf("%q: %v: %s", settings, err, out)
		}
	}
}

// Only what can be an instance of the RedisCluster is run in.
func TestInstancesThatAreNamed(t *testing.T) {
	for named, refused := range map[string]bool{"cache-0-1": false, "cache-12-0": false, "other-0-0": true, "--help": true, "cache-0": true} {
		_, err := (&cluster{}).instance(t.Context(), keyOf("cache"), named)
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "is no instance of RedisCluster shop/cache") {
			t.Errorf("%q: %v", named, err)
		}
	}
}

// kubectl asks the cluster that this connection is to, also when somebody has chosen another context meanwhile, and so does what the page
// says to type.
func TestKubectlKeepsToTheContext(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	write := func(current string) {
		t.Helper()
		text := strings.ReplaceAll(`{apiVersion: v1, kind: Config, current-context: "CURRENT", clusters: [{name: a, cluster: {server: "https://a"}},
{name: b, cluster: {server: "https://b"}}], users: [], contexts: [{name: "to a", context: {cluster: a, namespace: shop}},
{name: b, context: {cluster: b}}]}`, "CURRENT", current)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for given, want := range map[string]string{"": "--context=to a", "b": "--context=b"} {
		write("to a")
		p := newProgram(Environment{Out: io.Discard, Lookup: nothing})
		arguments := []string{"cli", "--kubeconfig=" + config}
		if given != "" {
			arguments = append(arguments, "--context="+given)
		}
		command, rest, err := p.root().Find(arguments)
		if err != nil || command.ParseFlags(rest) != nil || p.connection.pin() != nil {
			t.Fatal(err)
		}
		write("b")
		host := map[string]string{"": "https://a", "b": "https://b"}[given]
		if cfg, err := p.connection.config(); err != nil || cfg.Host != host {
			t.Errorf("%q: %v, %+v", given, err, cfg)
		}
		flags := p.connection.repeated()
		if n := strings.Count(strings.Join(flags, " "), "--context="); n != 1 || !slices.Contains(flags, want) {
			t.Errorf("%q: %q", given, flags)
		}
		short := p.connection.typed("kubectl x")
		p.connection.lasts = true
		if long := p.connection.typed("kubectl x"); given == "" && (strings.Contains(short, "--context") ||
			!strings.HasSuffix(long, "--context='to a'")) || given != "" && strings.Count(long, "--context=b") != 1 {
			t.Errorf("%q: %s, %s", given, short, long)
		}
	}
	p := newProgram(Environment{Out: io.Discard, Lookup: nothing})
	p.root()
	p.connection.rules.ExplicitPath, p.connection.rules.Precedence = "", nil // in a pod
	if err := p.connection.pin(); err != nil || len(p.connection.repeated()) > 0 {
		t.Errorf("%v: %q", err, p.connection.repeated())
	}
	if p.connection.set.Lookup("proxy-url") != nil {
		t.Error("kubectl has no --proxy-url, and would ask the cluster without it")
	}
}
