// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/redisconf"
)

func TestSplitArguments(t *testing.T) {
	cases := []struct {
		text string
		want []string
		bad  bool
	}{
		{text: ""},
		{text: " \t ", want: nil},
		{text: "900 1  300\t10", want: []string{"900", "1", "300", "10"}},
		{text: `""`, want: []string{""}},
		{text: `"two words" one`, want: []string{"two words", "one"}},
		{text: `'it\'s' "\x41\n\"\q"`, want: []string{"it's", "A\n\"q"}},
		{text: `pre"fix"`, want: []string{"prefix"}},
		{text: `"\x4"`, want: []string{"x4"}},
		{text: `back\slash`, want: []string{`back\slash`}},
		{text: `"open`, bad: true},
		{text: `'open`, bad: true},
		{text: `"a"b`, bad: true},
		{text: `"ends in \`, bad: true},
	}
	for _, test := range cases {
		got, err := redisconf.SplitArguments(test.text)
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.bad {
			t.Errorf("SplitArguments(%q): error %v (want one: %t), (-want +got):\n%s", test.text, err, test.bad, diff)
		}
	}
}

func lines(settings []redisconf.Setting) map[string]string {
	all := map[string]string{}
	for _, s := range settings {
		all[s.Name] = s.Line()
	}
	return all
}

// TestSettingsPrecedence: operator, spec.config, ConfigMap, defaults.
func TestSettingsPrecedence(t *testing.T) {
	got := lines(redisconf.Settings(
		map[string]string{"maxmemory": "2gb", "port": "1", "slave-priority": "7", "save": "", "loadmodule": "/x.so"},
		map[string]string{"maxmemory": "1gb", "appendonly": "no", "replica-priority": "8", "cluster-enabled": "no"},
	))
	for name, want := range map[string]string{
		"port":                 `port "6379"`,
		"cluster-enabled":      `cluster-enabled "yes"`,
		"maxmemory":            `maxmemory "2gb"`,
		"appendonly":           `appendonly "no"`,
		"replica-priority":     `replica-priority "7"`,
		"slave-priority":       "",
		"save":                 `save ""`,
		"loadmodule":           "",
		"cluster-node-timeout": `cluster-node-timeout "5000"`,
	} {
		if got[name] != want {
			t.Errorf("%s: line %q, want %q", name, got[name], want)
		}
	}
}

func TestParseConfig(t *testing.T) {
	const text = "# comment\n\n  MaxMemory 1gb \r\nsave 900 1\nsave 300 10\n" +
		"proc-title-template \"{title} x\"\nslave-read-only yes\nmaxmemory 2gb\n" +
		"client-output-buffer-limit normal 0 0 0\nclient-output-buffer-limit pubsub 1mb 1mb 60\n"
	want := map[string]string{
		"maxmemory":                  "2gb",
		"save":                       "900 1 300 10",
		"proc-title-template":        `"{title} x"`,
		"replica-read-only":          "yes",
		"client-output-buffer-limit": "normal 0 0 0 pubsub 1mb 1mb 60",
	}
	got, err := redisconf.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"save 900 1\nsave \"\"\nsave 60 1": "60 1",
		"save 900 1\nsave \"\"":            `""`,
	} {
		if got, err := redisconf.ParseConfig(text); err != nil || got["save"] != want {
			t.Errorf("%q: save is %q (%v), want %q", text, got["save"], err, want)
		}
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"maxmemory 1gb\ninclude /etc/passwd": `line 2: "include": cannot be set: it would load other files or code into the server; remove it`,
		"LoadModule /x.so":                   `line 1: "loadmodule": cannot be set: modules are set with spec.modules; remove it`,
		"rename-command FLUSHALL \"\"":       `line 1: "rename-command": cannot be set: the operator needs every command under its own name; remove it`,
		"slaveof host 6379": `line 1: "replicaof": cannot be set: ` +
			`the operator manages the cluster's members and slots; remove it`,
		"dir /":                     `line 1: "dir": cannot be set: the operator decides where an instance keeps its files; remove it`,
		"tls-port 6380":             `line 1: "tls-port": cannot be set: TLS is set with spec.tls; remove it`,
		"enable-module-command yes": `line 1: "enable-module-command": cannot be set: it would open commands that read and write files or crash the server; remove it`,
		"server_cpulist 0":          `line 1: "server_cpulist": is no name of a redis.conf setting: use lower-case letters, digits and hyphens, beginning with a letter, such as maxmemory-policy`,
		"maxmemory":                 `line 1: "maxmemory" has no value: write the setting's name, a space and its value`,
		"cluster-node-timeout soon": `line 1: "cluster-node-timeout": must be a whole number from 1000 to 600000 (milliseconds; less than a second takes every hiccup for a failure)`,
		"port 1\nbind 0.0.0.0":      "line 1: \"port\": cannot be set: the operator decides which addresses and ports an instance uses; remove it\nline 2: \"bind\": cannot be set: the operator decides which addresses and ports an instance uses; remove it",
	} {
		if _, err := redisconf.ParseConfig(text); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := redisconf.ParseConfig(`maxmemory "1gb`); err == nil || !strings.Contains(err.Error(), "quotes are not balanced") {
		t.Errorf("an open quote: %v", err)
	}
}

// A ConfigMap holds 1 MiB of whatever its author likes: neither reading it nor what is said of it grows with that.
func TestParseConfigIsBounded(t *testing.T) {
	var distinct strings.Builder
	for i := range 200 {
		fmt.Fprintf(&distinct, "s%d %s\n", i, strings.Repeat("x", 1000))
	}
	for name, tt := range map[string]struct{ text, want string }{
		"comments":        {strings.Repeat("# nothing\n", 30_000), "has 300000 bytes: 262144 at most"},
		"many mistakes":   {strings.Repeat("port 1\n", 30_000), "line 20: "},
		"a long line":     {strings.Repeat("x", 200_000), "has no value"},
		"a long name":     {strings.Repeat("x", 65) + " y", "is no name of a redis.conf setting"},
		"many saves":      {strings.Repeat("save 900 1\n", 20_000), `"save": its lines together cannot be longer than 1024 bytes`},
		"many long ones":  {distinct.String(), "200 settings with values of 200000 bytes: at most 500, with 131072 bytes"},
		"an engine's own": {strings.Repeat("# what a setting is for\n", 6000) + "maxclients 1000\n", ""},
	} {
		got, err := redisconf.ParseConfig(tt.text)
		if tt.want == "" && (err != nil || len(got) != 1) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 5000) {
			t.Errorf("%s: %.300v, want …%s…", name, err, tt.want)
		}
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"port": true, "PORT": true, "cluster-announce-ip": true, "cluster-slave-no-failover": true,
		"masterauth": true, "primaryauth": true, "slave-announce-ip": true, "replica-announced": true,
		"syslog-ident": true, "enable-debug-command": true, "rdma-port": true, "sentinel": true,
		"maxmemory": false, "cluster-node-timeout": false, "cluster-slave-validity-factor": false,
		"cluster-require-full-coverage": false, "appendonly": false, "tcp-keepalive": false,
	} {
		if _, reserved := redisconf.Reserved(name); reserved != want {
			t.Errorf("%s is reserved: %t, want %t", name, reserved, want)
		}
	}
}
