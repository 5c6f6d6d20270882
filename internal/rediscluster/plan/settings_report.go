// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// SettingProblem is a setting that does not come into force until someone changes it.
type SettingProblem struct {
	// Name is the setting, Message a sentence with the field that sets it and the engine's
	// own words.
	Name, Message string
}

// settingProblems are the settings that the engine does not have or refuses.
func (in input) settingProblems() []SettingProblem {
	var problems []SettingProblem
	for _, s := range in.desired.Settings {
		field := s.Field()
		if field == "" {
			field = "the operator's own setting " + s.Name
		}
		if says := in.objection(s); says != "" {
			problems = append(problems, SettingProblem{Name: s.Name, Message: fmt.Sprintf("%s: %s: change or remove it", field, says)})
		}
	}
	return problems
}

// objection is what the engine has against a setting; empty when nothing is known of any.
func (in input) objection(s redisconf.Setting) string {
	asked, lacking := 0, ""
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Settings == nil || apart[s.Name] {
			continue
		}
		asked++
		if _, has := pod.Redis.Settings[s.Name]; !has {
			lacking = pod.Redis.EngineVersion() + " has no such setting"
			continue
		}
		if r := refused(in.snap, s.Name, valueOn(s, pod), pod); r != nil && !r.Immutable {
			return fmt.Sprintf("%s refuses the value %q: %s", r.Engine, r.Value, r.Message)
		}
	}
	// Where some instances have it, the others are being replaced.
	if lacking != "" &&
		!slices.ContainsFunc(in.snap.Reachable(), func(pod *snapshot.Instance) bool { _, has := pod.Redis.Settings[s.Name]; return has }) {
		return lacking
	}
	for i := range in.snap.Instances {
		if fatal, ok := in.misconfigured(&in.snap.Instances[i]); ok && concerns(fatal, s) {
			return fmt.Sprintf("the server in pod %s does not start with the value %q: %s", in.snap.Instances[i].Name, s.Value(), fatal.Reason)
		}
	}
	return ""
}

// misconfigured is the setting because of which an instance does not start.
func (in input) misconfigured(pod *snapshot.Instance) (redisconf.Fatal, bool) {
	if pod.Redis != nil || pod.Terminating || pod.TerminationMessage == "" {
		return redisconf.Fatal{}, false
	}
	fatal, ok := redisconf.ReadFatal(pod.TerminationMessage)
	if _, reserved := redisconf.Reserved(fatal.Name); !ok || reserved {
		return redisconf.Fatal{}, false // not a line that comes from settings
	}
	return fatal, true
}

// preventsStart reports whether an instance does not start because of a setting of that name.
func (in input) preventsStart(name string) bool {
	return slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool {
		fatal, ok := in.misconfigured(&pod)
		return ok && redisconf.Canonical(fatal.Name) == name
	})
}

// concerns reports whether the line which a server did not start with is that setting.
func concerns(fatal redisconf.Fatal, s redisconf.Setting) bool {
	args, err := redisconf.SplitArguments(fatal.Arguments)
	return err == nil && redisconf.Canonical(fatal.Name) == s.Name && strings.Join(args, " ") == s.Value()
}

// planMisconfigured deals with instances that do not start because of a setting. One that
// read a redis.conf which has been corrected since is replaced, without waiting for the
// kubelet to try again. A new cluster waits for its correction.
func planMisconfigured(in input) Step {
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		fatal, ok := in.misconfigured(pod)
		if !ok || pod.Fenced || in.desired.Settings == nil {
			continue
		}
		if slices.ContainsFunc(in.effectiveSettings(), func(s redisconf.Setting) bool { return concerns(fatal, s) }) {
			if problems := in.settingProblems(); !in.snap.Formed && len(problems) > 0 {
				return Stall{base: base{problems[0].Message}, Cause: "SettingRefused"}
			}
			continue
		}
		if !in.desired.OnDelete && in.replaceable(pod) {
			return Restart{
				base: base{fmt.Sprintf("%s does not start because of the setting %s, which has been corrected since", pod.Name, fatal.Name)},
				Pod:  pod.Name, UID: pod.UID, Failing: true}
		}
	}
	return nil
}

// settingChanges are the settings that are not in force everywhere, by name.
func (in input) settingChanges() []SettingChange {
	var changes []SettingChange
	for _, s := range in.desired.Settings {
		change := SettingChange{Name: s.Name, To: s.Value()}
		for _, pod := range in.snap.Reachable() {
			if way, reason, ok := in.difference(s, pod); ok {
				change.add(pod, way, reason)
			}
		}
		if len(change.Instances) > 0 {
			changes = append(changes, change)
		}
	}
	back := map[string]*SettingChange{}
	for _, pod := range in.snap.Reachable() {
		for name, value := range in.withdrawn(pod) {
			if back[name] == nil {
				back[name] = &SettingChange{Name: name, To: value}
			}
			back[name].add(pod, Live, "nobody asks for it")
		}
	}
	for _, change := range back {
		changes = append(changes, *change)
	}
	slices.SortFunc(changes, func(a, b SettingChange) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

func (c *SettingChange) add(pod *snapshot.Instance, way ApplyMethod, reason string) {
	if len(c.Instances) == 0 {
		c.From, c.Method, c.Reason = pod.Redis.Settings[c.Name], way, reason
	}
	c.Instances = append(c.Instances, pod.Name)
}

// difference says how a setting comes into force on an instance; false when it is in force.
func (in input) difference(s redisconf.Setting, pod *snapshot.Instance) (way ApplyMethod, reason string, differs bool) {
	value, has := pod.Redis.Settings[s.Name]
	want := valueOn(s, pod)
	switch {
	case pod.Redis.Settings == nil || apart[s.Name] || has && redisconf.Equal(s.Name, want, value):
		return "", "", false
	case !has:
		return Blocked, "the engine has no such setting", true
	case onlyAtStart(s.Name):
		// What is left after the restart is the engine's own idea of the value.
		return AtRestart, "", in.stale(pod) || len(in.pending.Children) > 0
	}
	if r := refused(in.snap, s.Name, want, pod); r != nil {
		if r.Immutable {
			return AtRestart, "", true
		}
		return Blocked, "the engine refuses it", true
	}
	if s.Source.SparesData() && !fits(want, pod) {
		return Blocked, "the instance uses more memory than that", true
	}
	return Live, "", true
}

// settingsAfter are what the next reconciliation is to know of redis.conf: what it holds, and what
// running instances may still have that it held before.
func (in input) settingsAfter() map[string]string {
	if in.desired.Settings == nil || in.desired.Paused {
		return in.snap.Settings
	}
	after := map[string]string{}
	for _, s := range in.effectiveSettings() {
		if s.Source != redisconf.FromOperator {
			after[s.Name] = s.Text()
		}
	}
	for name, value := range in.snap.Settings {
		if !in.asksFor(name) && !apart[name] && !redisconf.NeedsRestart(name) && in.mayHold(name) {
			after[name] = value
		}
	}
	return after
}

// mayHold reports whether some instance may still have a setting that nobody asks for any more.
func (in input) mayHold(name string) bool {
	return slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool {
		if pod.Redis == nil {
			return !pod.Failing
		}
		_, held := in.withdrawn(&pod)[name]
		return pod.Redis.Settings == nil || held
	})
}
