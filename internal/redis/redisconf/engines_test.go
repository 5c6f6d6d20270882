// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"slices"
	"strings"
	"testing"
)

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		want       bool
	}{
		{"maxmemory", "1gb", "1073741824", true},
		{"maxmemory", "1GB", "1024mb", true},
		{"maxmemory", "1g", "1000000000", true},
		{"maxmemory", "1g", "1gb", false},
		{"maxmemory", "0", "", false},
		{"maxmemory", "99999999999999999999gb", "1gb", false},
		{"maxmemory-clients", "5%", "5%", true},
		{"maxmemory-clients", "5%", "5", false},
		{"appendonly", "YES", "yes", true},
		{"appendonly", "yes", "no", false},
		{"maxmemory-policy", "AllKeys-LRU", "allkeys-lru", true},
		{"save", "900 1 300 10", "900  1 300 10", true},
		{"save", "900 1", "300 10", false},
		{"save", "", "", true},
		{"latency-tracking-info-percentiles", "50.0 99 99.90", "50 99 99.9", true},
		{"oom-score-adj-values", "0 200 800", "0 200 801", false},
		{"oom-score-adj", "yes", "relative", true},
		{"oom-score-adj", "yes", "absolute", false},
		{"list-max-listpack-size", "-2", "-2", true},
		{"notify-keyspace-events", "KEA", "g$lshzxetdKE", true},
		{"notify-keyspace-events", "Ex", "xE", true},
		{"notify-keyspace-events", "Ex", "ex", false},
		{"notify-keyspace-events", "", "K", false},
		{"client-output-buffer-limit", "slave 256mb 64mb 60", "replica 268435456 67108864 60", true},
		{"client-output-buffer-limit", "pubsub 32mb 8mb 60 normal 0 0 0", "normal 0 0 0 pubsub 33554432 8388608 60", true},
		{"client-output-buffer-limit", "normal 1 1 1 normal 0 0 0", "normal 0 0 0", true},
		{"client-output-buffer-limit", "normal 0 0 0", "normal 0 0 1", false},
		{"client-output-buffer-limit", "bogus 0 0 0", "normal 0 0 0", false},
		{"proc-title-template", "{title} A", "{title} a", false},
		{"server-cpulist", "0-3", "0-03", false},
		{"something-new", "0x10", "16", false},
		{"something-new", "1e3", "1000", false},
		{"something-new", "inf", "Inf", true},
	} {
		if got := Equal(tc.name, tc.a, tc.b); got != tc.want || Equal(tc.name, tc.b, tc.a) != got {
			t.Errorf("Equal(%s, %q, %q) is %t, want %t both ways", tc.name, tc.a, tc.b, got, tc.want)
		}
	}
}

// FuzzEqual: every value is equal to itself, the order does not matter, and what is equal to a
// third is equal.
func FuzzEqual(f *testing.F) {
	for _, seed := range []string{"", "1gb", "KEA", "normal 0 0 0 slave 1 1 1", "5%", "50.0 99", "-2", "yes", "\x00", "9223372036854775807kb",
		"bkmg", "normal 0 0"} {
		f.Add("client-output-buffer-limit", seed, seed, "1024")
		f.Add("maxmemory", seed, "1073741824", "1024mb")
		f.Add("notify-keyspace-events", seed, "AKE", "g$lshzxetdEK")
	}
	f.Fuzz(func(t *testing.T, name, a, b, c string) {
		if !Equal(name, a, a) || Equal(name, a, b) != Equal(name, b, a) {
			t.Errorf("%s: %q and %q", name, a, b)
		}
		if Equal(name, a, b) && Equal(name, b, c) && !Equal(name, a, c) {
			t.Errorf("%s: %q is %q is %q, and not", name, a, b, c)
		}
		_ = Whole(name, a, b)
	})
}

// TestMemory: the sizes of memtoull in util.c, as far as they are none that wrap around.
func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "7b": 7, "2k": 2000, "2kb": 2048, "3m": 3_000_000, "3MB": 3 << 20, "2g": 2_000_000_000, "2Gb": 2 << 30,
		"9223372036854775807": 9223372036854775807, "8589934591gb": 8589934591 << 30,
		"": -1, "gb": -1, "-1": -1, "+1": -1, "2Gi": -1, "2 gb": -1, "2gb ": -1, "1.5gb": -1, "0x10": -1, "1bk": -1, "1e3": -1, "1_0": -1,
		"１":                   -1,
		"9223372036854775808": -1, "8589934592gb": -1, "18446744073709551616": -1, strings.Repeat("0", 40): -1, "2gb\nx": -1, "2gb\x00": -1,
	} {
		got, ok := Memory(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestWhole(t *testing.T) {
	const byDefault = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
	for value, want := range map[string]string{
		"pubsub 1mb 1mb 60":               "normal 0 0 0 replica 268435456 67108864 60 pubsub 1048576 1048576 60",
		"normal 1 2 3 replica 4 5 6":      "normal 1 2 3 replica 4 5 6 pubsub 33554432 8388608 60",
		byDefault:                         "normal 0 0 0 replica 268435456 67108864 60 pubsub 33554432 8388608 60",
		"nobody 0 0 0 normal 0 0 0 bad 1": strings.Join(strings.Fields(byDefault+" nobody 0 0 0 normal 0 0 0 bad 1"), " "),
	} {
		if got := Whole("client-output-buffer-limit", value, byDefault); got != want {
			t.Errorf("%q is %q as a whole, want %q", value, got, want)
		}
	}
	if got := Whole("maxmemory", "1gb", "0"); got != "1gb" {
		t.Errorf("maxmemory 1gb is %q as a whole", got)
	}
}

func TestKnowledge(t *testing.T) {
	if want := []string{"redis-7.0", "redis-8.0", "valkey-8.1", "valkey-9.1"}; !slices.Equal(Engines(), want) {
		t.Errorf("engines %v, want %v", Engines(), want)
	}
	for _, tc := range []struct {
		name, engine, version, want string
		known                       bool
	}{
		{"maxmemory-policy", "redis", "7.0.15", "noeviction", true},
		{"maxmemory-policy", "redis", "7.4.1", "noeviction", true},
		{"repl-backlog-size", "redis", "8.0.6", "1048576", true},
		{"repl-backlog-size", "valkey", "9.0.0", "10485760", true},
		{"databases", "valkey", "9.1.2", "16", true},
		{"databases", "valkey", "9.0.0", "", false}, // 1 in 8.1, 16 in 9.1
		{"availability-zone", "redis", "7.0.15", "", false},
		{"made-up", "redis", "7.0.15", "", false},
	} {
		if got, known := Default(tc.name, tc.engine, tc.version); got != tc.want || known != tc.known {
			t.Errorf("%s of %s %s is %q, %t by default; want %q, %t", tc.name, tc.engine, tc.version, got, known, tc.want, tc.known)
		}
	}
	for name, want := range map[string]bool{"maxmemory": false, "save": false, "tcp-backlog": true, "io-threads": true, "made-up": true} {
		if NeedsRestart(name) != want {
			t.Errorf("%s needs a restart: %t, want %t", name, !want, want)
		}
	}
	if !IsDefault("tcp-backlog", "511") || IsDefault("tcp-backlog", "512") || IsDefault("databases", "16") || IsDefault("made-up", "") {
		t.Error("IsDefault")
	}
}

// The words of the four engines, and of one that is no server.
func TestReadFatal(t *testing.T) {
	for name, tc := range map[string]struct {
		log  string
		want Fatal
		ok   bool
	}{
		"redis 7": {
			"\n*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line 2\n>>> 'maxmemory-policy \"foo\"'\nargument(s) must be one of the following: volatile-lru, noeviction\n",
			Fatal{"maxmemory-policy", `"foo"`, "argument(s) must be one of the following: volatile-lru, noeviction"}, true},
		"valkey, cut at the end": {"*** FATAL CONFIG FILE ERROR (Version 8.1.1) ***\nReading the configuration file, at line 1\n>>> 'foo-bar \"x\"'\nBad directive or wrong number of arguments",
			Fatal{"foo-bar", `"x"`, "Bad directive or wrong number of arguments"}, true},
		"redis 8, in its log": {"11200:M 21 Nov 2026 13:34:18.986 # Unresolved Configuration(s) Detected:\n11200:M 21 Nov 2026 13:34:18.986 # >>> 'foo-bar x'\n11200:M 21 Nov 2026 13:34:18.986 # Module Configuration detected without loadmodule directive or no ApplyConfig call: aborting\n",
			Fatal{"foo-bar", "x", "Module Configuration detected without loadmodule directive or no ApplyConfig call: aborting"}, true},
		"another end": {"1:M 21 Nov 2026 13:34:18.986 # Out of memory\n", Fatal{}, false},
		"nothing":     {"", Fatal{}, false},
	} {
		if got, ok := ReadFatal(tc.log); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

func FuzzReadFatal(f *testing.F) {
	f.Add(">>> 'a b'\nc")
	f.Fuzz(func(_ *testing.T, log string) { ReadFatal(log) })
}
