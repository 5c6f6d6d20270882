// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// DataDir is the directory of the Redis container that holds the append-only file, the snapshot and nodes.conf.
const DataDir = "/data"

// ownedSettings win over everything: an instance that lacks one of them is not an
// instance the operator can look after.
var ownedSettings = map[string]string{
	"port":                strconv.Itoa(int(v1alpha1.PortRedis)),
	"cluster-port":        strconv.Itoa(int(v1alpha1.PortBus)),
	"cluster-enabled":     "yes",
	"cluster-config-file": "nodes.conf",
	"dir":                 DataDir,
	// A replica that wanders to another shard, or a master that turns into a replica
	// because its last slot left, would be the server deciding topology beside the
	// operator.
	"cluster-allow-replica-migration": "no",
	// Protected mode refuses all but loopback while no password is set. The password
	// and the NetworkPolicy do its work, and a cluster without a password was asked for.
	"protected-mode": "no",
}

// defaultSettings are what users get when they say nothing. Where the engine's own
// default is right it is not repeated here.
var defaultSettings = map[string]string{
	// Without a file an instance that restarts quickly comes back empty as a master,
	// and its replicas copy the emptiness.
	"appendonly": "yes",
	// Failure is noticed in 5 s instead of 15 s.
	"cluster-node-timeout": "5000",
	// yes would stop all shards because one slot has no master; with no, clients of
	// the other shards notice nothing.
	"cluster-require-full-coverage": "no",
	// A new replica is copied to from memory at once: no snapshot on a slow volume
	// first, no 5 s wait for more replicas.
	"repl-diskless-sync":       "yes",
	"repl-diskless-sync-delay": "0",
	// Seconds that a stopping master waits for its replicas to catch up: below the
	// part of the pod's grace period that switching over leaves, so that the shutdown is never cut short.
	"shutdown-timeout": "10",
	// Valkey reports a nodes.conf that it cannot read as a crash. Of what a container wrote
	// before it ended Kubernetes keeps the last 2 KiB; behind a crash report of 10 KiB the
	// reason is lost, and the operator could not tell that the file is damaged.
	"crash-log-enabled": "no",
	// How often a second an instance does its regular work, which is the engines' own default. A
	// switchover lowers it for a moment (redis.SuppressPings), and one that is interrupted leaves it low.
	"hz": "10",
}

// Momentary are settings that the operator changes for a moment (redis.SuppressPings) and that not every
// engine has, so that they cannot stand in redis.conf. Where nobody asks for them they are kept
// at the engine's default: an operator that is killed in that moment changes nothing for good.
func Momentary() []string { return []string{"dynamic-hz"} }

// NoFailover is the setting that keeps a replica from being elected. An instance has it while it stops (switchover.sh), and from the
// operator before all of a cluster stop.
const NoFailover = "cluster-replica-no-failover"

// Source is who wants a setting.
type Source int

// The sources, the weakest first.
const (
	FromDefaults Source = iota
	// FromLimit is the maxmemory that follows from the container's memory limit.
	FromLimit
	// FromEnv is the maxmemory of the variable MAXMEMORY in pod[0].env.
	FromEnv
	FromConfigMap
	FromSpec
	FromOperator
)

// SparesData reports whether a maxmemory from this source is not put below what an instance uses
// already: it is not an explicit setting, and writes would fail, or keys go, because of it.
func (s Source) SparesData() bool { return s == FromLimit || s == FromEnv }

// Setting is one directive of redis.conf.
type Setting struct {
	Name   string
	Args   []string
	Source Source
}

// Value is the setting as CONFIG SET takes it.
func (s Setting) Value() string { return strings.Join(s.Args, " ") }

// Text is the setting's value as users write it, of which Arguments are the setting's Args.
func (s Setting) Text() string { return joinArguments(s.Args) }

// Field is where the user has set it; empty when it is not the user's.
func (s Setting) Field() string {
	switch s.Source {
	case FromSpec:
		return "spec.config[" + s.Name + "]"
	case FromConfigMap:
		return "spec.pod[0].configmap: " + s.Name
	case FromEnv:
		return "spec.pod[0].env[" + EnvMaxMemory + "]"
	case FromDefaults, FromLimit, FromOperator:
	}
	return ""
}

// Line is the setting as a line of redis.conf, without its end. Every argument is
// quoted, so that none can begin another directive.
func (s Setting) Line() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for _, arg := range s.Args {
		b.WriteByte(' ')
		b.WriteString(Quote(arg))
	}
	return b.String()
}

// Settings merges what stands in redis.conf, sorted by name. What stands first wins:
// the operator's own, spec.config, the user's ConfigMap, the defaults. What CheckSetting
// refuses in spec.config or in the ConfigMap is left out: admission has reported it, and
// an object that came past admission must not do more than one that did not.
func Settings(config, configMap map[string]string) []Setting {
	merged := map[string]Setting{}
	add := func(name, value string, source Source) {
		name = Canonical(name)
		merged[name] = Setting{Name: name, Args: Arguments(value), Source: source}
	}
	for name, value := range defaultSettings {
		add(name, value, FromDefaults)
	}
	for _, layer := range []struct {
		settings map[string]string
		source   Source
	}{{configMap, FromConfigMap}, {config, FromSpec}} {
		for _, name := range slices.Sorted(maps.Keys(layer.settings)) {
			if CheckSetting(name, layer.settings[name]) == nil {
				add(name, layer.settings[name], layer.source)
			}
		}
	}
	for name, value := range ownedSettings {
		add(name, value, FromOperator)
	}
	settings := make([]Setting, 0, len(merged))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		settings = append(settings, merged[name])
	}
	return settings
}

// Arguments are those of a value that CheckSetting accepted. An empty value is one empty
// argument, so that save: "" means what it means in redis.conf.
func Arguments(value string) []string {
	args, err := SplitArguments(value)
	if err != nil {
		return []string{value}
	}
	if len(args) == 0 {
		return []string{""}
	}
	return args
}

var (
	// A module's settings have its name in front: json.max-document-size.
	settingName     = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9_-]*)?$`)
	errSettingName  = errors.New("is no name of a redis.conf setting: use lower-case letters, digits and hyphens, beginning with a letter, such as maxmemory-policy")
	errSettingLines = errors.New("a value cannot hold line breaks or NUL bytes: write it on one line; several groups of a setting such as save go behind each other, 900 1 300 10")
)

const (
	// longestName is twice that of any engine's setting.
	longestName = 64
	// longestValue bounds what the status repeats of a value.
	longestValue = 1024
)

// CheckSetting says why a setting cannot be used: its name is no name, the operator
// owns it, its value is no list of arguments, or the value is out of a range that keeps
// the cluster safe. It is nil when the setting can be used; whether the engine knows
// the setting is for the engine to say.
func CheckSetting(name, value string) error {
	if len(name) > longestName || !settingName.MatchString(name) {
		return errSettingName
	}
	if reason, reserved := Reserved(name); reserved {
		return fmt.Errorf("cannot be set: %s; remove it", reason)
	}
	if strings.ContainsAny(value, "\n\r\x00") {
		return errSettingLines
	}
	if len(value) > longestValue {
		return fmt.Errorf("a value cannot be longer than %d bytes", longestValue)
	}
	args, err := SplitArguments(value)
	if err != nil {
		return err
	}
	if check, ok := checks[Canonical(name)]; ok {
		return check(args)
	}
	return nil
}

// checks are what the values of some settings must be: those that keep the cluster safe, and
// those of settings that a server takes only when it starts, of which no running one can be
// asked whether it would.
var checks = map[string]func(args []string) error{
	"cluster-node-timeout": bounds{1000, 600_000, "milliseconds; less than a second takes every hiccup for a failure"}.check,
	"cluster-replica-validity-factor": bounds{1, 1000,
		"0 would let a replica win that lost contact to its master long ago, with all that was written since"}.check,
	"maxclients": bounds{
		100, 1_000_000, "replicas, the operator and whoever looks for a fault need connections, too"}.check,

	"databases":           bounds{1, 16384, "a cluster uses one"}.check,
	"io-threads":          bounds{1, 128, "threads"}.check,
	"tcp-backlog":         bounds{0, 65535, "connections"}.check,
	"always-show-logo":    yesOrNo,
	"disable-thp":         yesOrNo,
	"io-threads-do-reads": yesOrNo,
	"mptcp":               yesOrNo,
	"rdbchecksum":         yesOrNo,
	"repl-mptcp":          yesOrNo,
	"set-proc-title":      yesOrNo,
	"aof-rewrite-cpulist": listOfCPUs,
	"bgsave-cpulist":      listOfCPUs,
	"bio-cpulist":         listOfCPUs,
	"server-cpulist":      listOfCPUs,
	"hash-seed":           oneWord,
}

// bounds limits a setting that is one whole number.
type bounds struct {
	min, max int64
	reason   string
}

func (b bounds) check(args []string) error {
	if len(args) == 1 {
		if n, err := strconv.ParseInt(args[0], 10, 64); err == nil && n >= b.min && n <= b.max {
			return nil
		}
	}
	return fmt.Errorf("must be a whole number from %d to %d (%s)", b.min, b.max, b.reason)
}

func yesOrNo(args []string) error {
	if len(args) == 1 && (strings.EqualFold(args[0], "yes") || strings.EqualFold(args[0], "no")) {
		return nil
	}
	return errors.New("must be yes or no")
}

var cpus = regexp.MustCompile(`^[0-9]+([,:-][0-9]+)*$`)

func listOfCPUs(args []string) error {
	if len(args) == 1 && cpus.MatchString(args[0]) {
		return nil
	}
	return errors.New("must be a list of processors, such as 0-3,8")
}

func oneWord(args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errors.New("must be one word, or one in quotes")
}
