// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// SetConfig changes settings of running instances (CONFIG SET).
type SetConfig struct {
	base
	Changes []InstanceConfig
}

// InstanceConfig is what one instance is to be told. Its settings change all at once.
type InstanceConfig struct {
	On Target
	// Engine is what refuses if it refuses, such as redis 7.0.15.
	Engine   string
	Settings map[string]string
}

// Name implements Step.
func (SetConfig) Name() string { return "SetConfig" }

// ApplyMethod is how a setting comes into force.
type ApplyMethod string

// The methods.
const (
	// Live: CONFIG SET on the running instances.
	Live ApplyMethod = "Live"
	// AtRestart: the instances are restarted one after the other.
	AtRestart ApplyMethod = "AtRestart"
	// Blocked: not now; the reason says what it waits for.
	Blocked ApplyMethod = "Blocked"
)

// SettingChange is a setting that is not yet in force everywhere.
type SettingChange struct {
	Name string
	// From is the value in force on the first of the Instances, To the one asked for.
	From, To  string
	Method    ApplyMethod
	Instances []string
	// Reason is why it is Blocked.
	Reason string
}

// apart are the settings that planConfig leaves alone: those that an instance is started with
// and that no running one is to change, and cluster-node-timeout, which is planTimeout's.
var apart = map[string]bool{
	"port": true, "cluster-port": true, "cluster-enabled": true, "cluster-config-file": true, "dir": true,
	"cluster-node-timeout": true,
}

// planConfig puts settings into force on running instances. The first instance shows whether
// the engine takes them; replicas follow, and masters come last, so that what a setting does
// (a fork, an eviction) does not happen to both copies of the data in one moment.
func planConfig(in input) Step {
	var behind []InstanceConfig
	masters, current := map[string]bool{}, 0
	for _, pod := range in.snap.Reachable() {
		if pod.Terminating || pod.Redis.Settings == nil {
			continue
		}
		change := in.liveChange(pod)
		if len(change.Settings) == 0 {
			current++
			continue
		}
		masters[pod.Name] = pod.Redis.Master
		behind = append(behind, change)
	}
	if len(behind) == 0 {
		return nil
	}
	order := func(c InstanceConfig) int { return cmp.Compare(strconv.FormatBool(masters[c.On.Pod]), "false") }
	slices.SortStableFunc(behind, func(a, b InstanceConfig) int { return cmp.Compare(order(a), order(b)) })
	wave := 1
	for current > 0 && wave < len(behind) && masters[behind[wave].On.Pod] == masters[behind[0].On.Pod] {
		wave++
	}
	names := map[string]bool{}
	for _, change := range behind {
		for name := range change.Settings {
			names[name] = true
		}
	}
	reason := fmt.Sprintf("settings are not in force on %d instances: %s", len(behind), list(slices.Sorted(maps.Keys(names))))
	return SetConfig{base: base{reason}, Changes: behind[:wave]}
}

// liveChange is what an instance is to be told.
func (in input) liveChange(pod *snapshot.Instance) InstanceConfig {
	change := InstanceConfig{On: target(pod), Engine: pod.Redis.EngineVersion(), Settings: map[string]string{}}
	for _, s := range in.desired.Settings {
		if want, ok := in.liveValue(s, pod); ok && !redisconf.Equal(s.Name, want, pod.Redis.Settings[s.Name]) {
			change.Settings[s.Name] = want
		}
	}
	for name, value := range in.withdrawn(pod) {
		change.Settings[name] = value
	}
	return change
}

// liveValue is the value that a setting is to have on a running instance; false when it is
// not to be told.
func (in input) liveValue(s redisconf.Setting, pod *snapshot.Instance) (string, bool) {
	_, has := pod.Redis.Settings[s.Name]
	value := valueOn(s, pod)
	if apart[s.Name] || !has || onlyAtStart(s.Name) || refused(in.snap, s.Name, value, pod) != nil {
		return "", false
	}
	return value, !s.Source.SparesData() || fits(value, pod)
}

// valueOn is a setting's value on one instance.
func valueOn(s redisconf.Setting, pod *snapshot.Instance) string {
	if s.Source == redisconf.FromLimit && pod.MemoryLimit > 0 {
		// A pod of an older template has another limit, until it is restarted.
		return strconv.FormatInt(redisconf.MaxMemory(pod.MemoryLimit), 10)
	}
	byDefault, _ := redisconf.Default(s.Name, pod.Redis.Engine, pod.Redis.Version)
	return redisconf.Whole(s.Name, s.Value(), byDefault)
}

// onlyAtStart reports whether running instances are not told about a setting. Those that nobody
// knows are tried.
func onlyAtStart(name string) bool { return redisconf.Known(name) && redisconf.NeedsRestart(name) }

// withdrawn are the settings that nobody asks for any more and that an instance still has from
// the operator, each with the default that it returns to.
func (in input) withdrawn(pod *snapshot.Instance) map[string]string {
	gone := map[string]string{}
	for _, name := range slices.AppendSeq(redisconf.Momentary(), maps.Keys(in.snap.Settings)) {
		value, has := pod.Redis.Settings[name]
		if in.desired.Settings == nil || in.asksFor(name) || apart[name] || redisconf.NeedsRestart(name) || !has {
			continue
		}
		byDefault, ok := redisconf.Default(name, pod.Redis.Engine, pod.Redis.Version)
		if ok && !redisconf.Equal(name, byDefault, value) && refused(in.snap, name, byDefault, pod) == nil {
			gone[name] = byDefault
		}
	}
	return gone
}

func (in input) asksFor(name string) bool {
	return slices.ContainsFunc(in.desired.Settings, func(s redisconf.Setting) bool { return s.Name == name })
}

// refused is what the instance's engine said to a setting with that value; nil when it did
// not refuse.
func refused(s *snapshot.Snapshot, name, value string, pod *snapshot.Instance) *snapshot.Refusal {
	for i := range s.Refusals {
		if r := &s.Refusals[i]; r.Name == name && r.Value == value && r.Engine == pod.Redis.EngineVersion() {
			return r
		}
	}
	return nil
}

// effectiveSettings are the settings that redis.conf is to hold now. A change of one reaches
// the file when a running instance has taken it, so that an instance which restarts is never
// given what no instance would start with; until then the file keeps what it had. Where no
// instance runs that could be asked, all that is asked for goes in.
func (in input) effectiveSettings() []redisconf.Setting {
	effective := make([]redisconf.Setting, 0, len(in.desired.Settings))
	for _, setting := range in.desired.Settings {
		if setting.Name == appendOnly && in.snap.Hibernated != nil {
			setting.Args = []string{"yes"} // whatever is known of it: without, instances would begin with nothing
			effective = append(effective, setting)
		} else if in.takes(setting) {
			effective = append(effective, setting)
		} else if before, ok := in.snap.Settings[setting.Name]; ok {
			setting.Args = redisconf.Arguments(before)
			effective = append(effective, setting)
		}
	}
	return effective
}

// takes reports whether redis.conf may hold a setting as it is asked for.
func (in input) takes(setting redisconf.Setting) bool {
	if setting.Source == redisconf.FromOperator {
		return true
	}
	if _, had := in.snap.Settings[setting.Name]; had && in.snap.Hibernated != nil && !in.preventsStart(setting.Name) {
		return false // instances start with what they had: a file that they are to find their data by may not be changed meanwhile
	}
	asked, taken := false, onlyAtStart(setting.Name) // whose values admission checks
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Settings == nil {
			continue
		}
		asked = true
		value, has := pod.Redis.Settings[setting.Name]
		want := valueOn(setting, pod)
		r := refused(in.snap, setting.Name, want, pod)
		if !has || r != nil && !r.Immutable || setting.Source.SparesData() && !fits(setting.Value(), pod) {
			return false
		}
		// An immutable one it takes when it starts, and cannot say so before.
		taken = taken || r != nil || redisconf.Equal(setting.Name, want, value)
	}
	return taken || !asked && !in.mayRun()
}

// mayRun reports whether some instance of a cluster that has served may be running, and does not
// answer now: it is to be asked when it does. (As long as nothing is remembered, redis.conf was
// written by an operator that asked nobody.)
func (in input) mayRun() bool {
	return in.snap.Formed && in.snap.Settings != nil && slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool {
		return pod.Waiting == "" && !pod.Terminating
	})
}

// fits reports whether a maxmemory which no setting asks for is none (0), or more than an instance
// uses: writes would fail, or keys go, otherwise.
func fits(limit string, pod *snapshot.Instance) bool {
	n, err := strconv.ParseInt(limit, 10, 64)
	return err == nil && (n == 0 || n > pod.Redis.UsedMemory)
}
