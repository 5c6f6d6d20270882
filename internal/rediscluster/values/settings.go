// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

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

// Paths in the Redis container.
const (
	// DataDir holds the append-only file, the snapshot and nodes.conf.
	DataDir = "/data"
	// AuthConfigPath is the key auth.conf of the Secret <name>-auth.
	AuthConfigPath = "/etc/redis/auth/auth.conf"
)

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
	// pod's grace period of 30 s, so that the shutdown is never cut short.
	"shutdown-timeout": "10",
}

// Setting is one directive of redis.conf.
type Setting struct {
	Name string
	Args []string
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
	merged := maps.Clone(defaultSettings)
	for _, layer := range []map[string]string{configMap, config} {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			if CheckSetting(name, layer[name]) == nil {
				merged[Canonical(name)] = layer[name]
			}
		}
	}
	maps.Copy(merged, ownedSettings)

	settings := make([]Setting, 0, len(merged))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		settings = append(settings, Setting{Name: name, Args: arguments(merged[name])})
	}
	return settings
}

// arguments are those of a value that CheckSetting accepted. An empty value is one empty
// argument, so that save: "" means what it means in redis.conf.
func arguments(value string) []string {
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
	settingName     = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	errSettingName  = errors.New("is no name of a redis.conf setting: use lower-case letters, digits and hyphens, beginning with a letter, such as maxmemory-policy")
	errSettingLines = errors.New("a value cannot hold line breaks or NUL bytes: write it on one line; several groups of a setting such as save go behind each other, 900 1 300 10")
)

// CheckSetting says why a setting cannot be used: its name is no name, the operator
// owns it, its value is no list of arguments, or the value is out of a range that keeps
// the cluster safe. It is nil when the setting can be used; whether the engine knows
// the setting is for the engine to say.
func CheckSetting(name, value string) error {
	if !settingName.MatchString(name) {
		return errSettingName
	}
	if reason, reserved := Reserved(name); reserved {
		return fmt.Errorf("cannot be set: %s; remove it", reason)
	}
	if strings.ContainsAny(value, "\n\r\x00") {
		return errSettingLines
	}
	args, err := SplitArguments(value)
	if err != nil {
		return err
	}
	if bounds, ok := settingBounds[Canonical(name)]; ok {
		return bounds.check(args)
	}
	return nil
}

// bounds limits a setting that is one whole number.
type bounds struct {
	min, max int64
	reason   string
}

var settingBounds = map[string]bounds{
	"cluster-node-timeout":            {1000, 600_000, "milliseconds; less than a second takes every hiccup for a failure"},
	"cluster-replica-validity-factor": {1, 1000, "0 would let a replica win that lost contact to its master long ago, with all that was written since"},
}

func (b bounds) check(args []string) error {
	if len(args) == 1 {
		if n, err := strconv.ParseInt(args[0], 10, 64); err == nil && n >= b.min && n <= b.max {
			return nil
		}
	}
	return fmt.Errorf("must be a whole number from %d to %d (%s)", b.min, b.max, b.reason)
}
