// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const gib = 1 << 30

// configured is a formed cluster of Redis 7.0.15 with every setting at its default, and what
// asks for these settings and nothing else.
func configured(asked ...redisconf.Setting) (Desired, *snapshot.Snapshot) {
	s := formed()
	for i := range s.Instances {
		in := &s.Instances[i]
		in.Redis.Engine, in.Redis.Version, in.Redis.UsedMemory = "redis", "7.0.15", gib/4
		in.Redis.Settings = redisconf.Defaults("redis-7.0")
	}
	d := desired()
	d.Settings = append([]redisconf.Setting{}, asked...)
	return d, s
}

func asked(name, value string) redisconf.Setting {
	return redisconf.Setting{Name: name, Args: redisconf.Arguments(value), Source: redisconf.FromSpec}
}

func derived(value string) redisconf.Setting {
	return redisconf.Setting{Name: "maxmemory", Args: []string{value}, Source: redisconf.FromLimit}
}

func ofEnv(value string) redisconf.Setting {
	return redisconf.Setting{Name: "maxmemory", Args: []string{value}, Source: redisconf.FromEnv}
}

func ofOperator(name, value string) redisconf.Setting {
	return redisconf.Setting{Name: name, Args: redisconf.Arguments(value), Source: redisconf.FromOperator}
}

// lines are redis.conf.
func lines(settings []redisconf.Setting) string {
	var all []string
	for _, s := range settings {
		all = append(all, s.Name+" "+s.Value())
	}
	return strings.Join(all, "; ")
}

// TestSettings: what redis.conf holds, what is next, what is shown, and what is wrong.
func TestSettings(t *testing.T) {
	all := func(s *snapshot.Snapshot, name, value string) {
		for i := range s.Instances {
			s.Instances[i].Redis.Settings[name] = value
		}
	}
	refuse := func(s *snapshot.Snapshot, name, value string, immutable bool) {
		s.Refusals =
			append(s.Refusals, snapshot.Refusal{Name: name, Value: value, Engine: "redis 7.0.15", Message: "no, thanks", Immutable: immutable})
	}
	for name, tc := range map[string]struct {
		asked   []redisconf.Setting
		pending Pending
		change  func(*Desired, *snapshot.Snapshot)
		file    string
		step    string
		way     ApplyMethod // of the only change shown
		problem string      // part of it
	}{
		"in force": {asked: []redisconf.Setting{asked("hz", "10")}, file: "hz 10", step: "None"},
		"a change comes into force before it reaches the file": {asked: []redisconf.Setting{asked("hz", "20")}, step: "SetConfig", way: Live},
		"one instance that has taken it is enough for the file": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Settings["hz"] = "20" },
			file:   "hz 20", step: "SetConfig", way: Live},
		"until then the file keeps what it had": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Settings = map[string]string{"hz": "15"}; all(s, "hz", "15") },
			file:   "hz 15", step: "SetConfig", way: Live},
		"where nobody runs, all goes in": {asked: []redisconf.Setting{asked("hz", "20"), asked("made-up", "1")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].Redis, s.Instances[i].Waiting = nil, "container redis: CrashLoopBackOff"
				}
			},
			file: "hz 20; made-up 1", step: "Wait"},
		"where nobody answers, nothing does": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Settings = map[string]string{"hz": "10"}
				for i := range s.Instances {
					s.Instances[i].Redis = nil
				}
			},
			file: "hz 10", step: "Wait"},
		"what the engine refuses stays out, and is not tried again": {
			asked:  []redisconf.Setting{asked("maxmemory-policy", "best"), asked("hz", "10")},
			change: func(_ *Desired, s *snapshot.Snapshot) { refuse(s, "maxmemory-policy", "best", false) },
			file:   "hz 10", step: "None", way: Blocked,
			problem: `spec.config[maxmemory-policy]: redis 7.0.15 refuses the value "best": no, thanks: change or remove it`},
		"another version is asked again": {asked: []redisconf.Setting{asked("maxmemory-policy", "best")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				refuse(s, "maxmemory-policy", "best", false)
				for i := range s.Instances {
					s.Instances[i].Redis.Version = "8.0.6"
				}
			}, step: "SetConfig", way: Live},
		"what the engine does not have stays out": {asked: []redisconf.Setting{asked("made-up", "1")},
			step: "None", way: Blocked, problem: "spec.config[made-up]: redis 7.0.15 has no such setting"},
		"what some instances do not have yet waits for their upgrade": {asked: []redisconf.Setting{asked("locale-collate", "C")},
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.Settings["locale-collate"] = "C" },
			step:   "None", way: Blocked},
		"what is taken only at the start goes to the file": {asked: []redisconf.Setting{asked("tcp-backlog", "128")},
			file: "tcp-backlog 128", step: "None"},
		"and is shown while it waits for the restart": {asked: []redisconf.Setting{asked("tcp-backlog", "128")},
			pending: Pending{Children: []string{"StatefulSet c-0"}},
			file:    "tcp-backlog 128", step: "ApplyChildren", way: AtRestart},
		"a setting that nobody knows is tried": {asked: []redisconf.Setting{asked("brand-new", "1")},
			change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "brand-new", "0") },
			step:   "SetConfig", way: Live},
		"and goes to the file when only a start takes it": {asked: []redisconf.Setting{asked("brand-new", "1")},
			change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "brand-new", "0"); refuse(s, "brand-new", "1", true) },
			file:   "brand-new 1", step: "None", way: AtRestart},
		"what nobody asks for any more goes back to the default": {
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Settings = map[string]string{"hz": "20"}; all(s, "hz", "20") },
			step:   "SetConfig", way: Live},
		"what was never asked for is left alone": {change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "hz", "20") }, step: "None"},
		"what a switchover that was interrupted has left is put right": {
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.Settings["dynamic-hz"] = "no" },
			step:   "SetConfig", way: Live},
		"unless it is asked for": {asked: []redisconf.Setting{asked("dynamic-hz", "no")},
			change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "dynamic-hz", "no") },
			file:   "dynamic-hz no", step: "None"},
		"or the engine does not have it": {change: func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Instances {
				delete(s.Instances[i].Redis.Settings, "dynamic-hz")
			}
		}, step: "None"},
		"a maxmemory that follows from the limit": {asked: []redisconf.Setting{derived("805306300")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].MemoryLimit = gib
				}
			}, step: "SetConfig", way: Live},
		"is no less than what is used already": {asked: []redisconf.Setting{derived("805306300")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].MemoryLimit = gib
				}
				s.Find(0, 0).Redis.UsedMemory = gib
				for i := range s.Instances {
					s.Instances[i].Redis.Settings["maxmemory"] = "805306350"
				}
				s.Find(0, 0).Redis.Settings["maxmemory"] = "0"
			}, step: "None", way: Blocked},
		"a maxmemory of the environment": {asked: []redisconf.Setting{ofEnv("805306300")}, step: "SetConfig", way: Live},
		"spares what is used already, too": {asked: []redisconf.Setting{ofEnv("1000")},
			step: "None", way: Blocked},
		"and is none where it says so": {asked: []redisconf.Setting{ofEnv("0")},
			change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "maxmemory", "805306350") }, step: "SetConfig", way: Live},
		"a user's maxmemory is the user's":         {asked: []redisconf.Setting{asked("maxmemory", "1mb")}, step: "SetConfig", way: Live},
		"and not where it is what is used already": {asked: []redisconf.Setting{ofEnv("268435456")}, step: "None", way: Blocked},
		"a maxmemory that follows from a limit that is not known": {asked: []redisconf.Setting{derived("805306300")},
			change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "maxmemory", "805306300") },
			file:   "maxmemory 805306300", step: "None"},
		"a user's maxmemory is not the limit's": {asked: []redisconf.Setting{asked("maxmemory", "1mb")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				all(s, "maxmemory", "1048576")
				for i := range s.Instances {
					s.Instances[i].MemoryLimit = gib
				}
			}, file: "maxmemory 1mb", step: "None"},
		"a node timeout is set by another rule": {asked: []redisconf.Setting{asked("cluster-node-timeout", "7000")}, step: "None"},
		"nor is it taken back by this one": {change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Settings = map[string]string{"cluster-node-timeout": "7000"}
			all(s, "cluster-node-timeout", "7000")
		}, step: "None"},
		"what is taken only at the start is not taken back before": {change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Settings = map[string]string{"tcp-backlog": "128"}
			all(s, "tcp-backlog", "128")
		}, step: "None"},
		"what has no default stays": {change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Settings = map[string]string{"brand-new": "1"}
			all(s, "brand-new", "1")
		}, step: "None"},
		"a default that is refused is not tried again": {change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Settings = map[string]string{"hz": "20"}
			all(s, "hz", "20")
			refuse(s, "hz", "10", false)
		}, step: "None"},
		"while what is asked for is not known, nothing is taken back": {change: func(d *Desired, s *snapshot.Snapshot) {
			d.Settings, s.Settings = nil, map[string]string{"hz": "20"}
			all(s, "hz", "20")
		}, step: "None"},
		"another setting was refused": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) { refuse(s, "maxmemory-samples", "20", false) }, step: "SetConfig", way: Live},
		"another value was refused": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) { refuse(s, "hz", "1000", false) }, step: "SetConfig", way: Live},
		"the operator's own goes to the file at once": {asked: []redisconf.Setting{ofOperator("hz", "20")}, file: "hz 20", step: "SetConfig",
			way: Live},
		"and is named as such where the engine does not have it": {asked: []redisconf.Setting{ofOperator("made-up", "1")}, file: "made-up 1",
			step: "None", way: Blocked, problem: "the operator's own setting made-up: redis 7.0.15 has no such setting"},
		"an instance that does not tell its settings says nothing about one": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) { all(s, "hz", "20"); s.Find(0, 0).Redis.Settings = nil },
			file:   "hz 20", step: "None"},
		"where nobody answers before the cluster has formed, all goes in": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Formed, s.Settings = false, map[string]string{"hz": "10"}
				for i := range s.Instances {
					s.Instances[i].Redis = nil
				}
			}, file: "hz 20", step: "Wait"},
		"where nobody answers and nothing is remembered, all goes in": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].Redis = nil
				}
			}, file: "hz 20", step: "Wait"},
		"where all stop, all goes in": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Settings = map[string]string{"hz": "10"}
				for i := range s.Instances {
					s.Instances[i].Redis, s.Instances[i].Terminating = nil, true
				}
			}, file: "hz 20", step: "Wait"},
		"where all that is known does not run, all goes in": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Settings = map[string]string{"hz": "10"}
				for i := range s.Instances {
					s.Instances[i].Redis, s.Instances[i].Waiting = nil, "container redis: CrashLoopBackOff"
				}
			}, file: "hz 20", step: "Wait"},
		"what a restart brings is shown until all have restarted": {asked: []redisconf.Setting{asked("tcp-backlog", "128")},
			change: func(_ *Desired, s *snapshot.Snapshot) {
				for i := range s.Shards {
					s.Shards[i].UpdateRevision = "new"
				}
				for i := range s.Instances {
					s.Instances[i].Revision = "old"
				}
			}, file: "tcp-backlog 128", step: "Restart", way: AtRestart},
		"a paused cluster shows the change": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(d *Desired, _ *snapshot.Snapshot) { d.Paused = true },
			step:   "Paused", way: Live},
		"healing comes first": {asked: []redisconf.Setting{asked("hz", "20")},
			change: func(_ *Desired, s *snapshot.Snapshot) { comeBackEmpty(s, 1, 1) },
			step:   "Meet", way: Live},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := configured(tc.asked...)
			if tc.change != nil {
				tc.change(&d, s)
			}
			if got := lines(ShapeOf(d, s, now).Settings); got != tc.file {
				t.Errorf("redis.conf is %q, want %q", got, tc.file)
			}
			decision := ShapeOf(d, s, now).Next(tc.pending)
			step := decision.Step.Name()
			if hold, ok := decision.Step.(Hold); ok {
				step = "Paused"
				if hold.Next.Name() != "SetConfig" {
					t.Errorf("next is %s", hold.Next.Name())
				}
			}
			if step != tc.step {
				t.Errorf("step %s (%s), want %s", step, decision.Step.Why(), tc.step)
			}
			var way ApplyMethod
			if len(decision.SettingChanges) == 1 {
				way = decision.SettingChanges[0].Method
			}
			if way != tc.way || len(decision.SettingChanges) > 1 {
				t.Errorf("changes %+v, want one that is %q", decision.SettingChanges, tc.way)
			}
			var problem string
			if len(decision.SettingProblems) > 0 {
				problem = decision.SettingProblems[0].Message
			}
			if (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) {
				t.Errorf("problem %q, want %q", problem, tc.problem)
			}
		})
	}
}

// TestSettingsWaves: one replica first, then the other replicas, then the masters.
func TestSettingsWaves(t *testing.T) {
	d, s := configured(asked("hz", "20"), asked("client-output-buffer-limit", "normal 1mb 1mb 1"))
	var waves []string
	for range 10 {
		step, ok := decide(d, s, now).Step.(SetConfig)
		if !ok {
			break
		}
		var pods []string
		for _, change := range step.Changes {
			pods = append(pods, change.On.Pod)
			in := s.ByNodeID(change.On.NodeID)
			for name, value := range change.Settings {
				in.Redis.Settings[name] = value
			}
		}
		waves = append(waves, strings.Join(pods, " "))
	}
	if diff := cmp.Diff([]string{"c-0-1", "c-1-1 c-2-1", "c-0-0 c-1-0 c-2-0"}, waves); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
	if got, want := s.Instances[0].Redis.Settings["client-output-buffer-limit"],
		"normal 1048576 1048576 1 replica 268435456 67108864 60 pubsub 33554432 8388608 60"; got != want {
		t.Errorf("limits %q, want %q", got, want)
	}
}

// An instance that stops is told nothing, and one that does not tell its settings is not one of those that have them: the others are
// told one replica first. Reasons name what is not in force.
func TestSettingsAreToldToWhoTellsThem(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*snapshot.Instance)
		first  string
	}{
		"it stops":                    {func(pod *snapshot.Instance) { pod.Terminating = true }, "c-1-1"},
		"it does not tell":            {func(pod *snapshot.Instance) { pod.Redis.Settings = nil }, "c-1-1"},
		"it stops and has it":         {func(pod *snapshot.Instance) { pod.Terminating = true; pod.Redis.Settings["hz"] = "20" }, "c-1-1"},
		"it has it, and tells that":   {func(pod *snapshot.Instance) { pod.Redis.Settings["hz"] = "20" }, "c-1-1 c-2-1"},
		"it tells, and all lack it":   {func(*snapshot.Instance) {}, "c-0-1"},
		"it does not answer any more": {func(pod *snapshot.Instance) { pod.Redis = nil }, "c-1-1"},
	} {
		d, s := configured(asked("hz", "20"))
		tt.change(s.Find(0, 1))
		step, is := planConfig(ShapeOf(d, s, now).in).(SetConfig)
		if !is || strings.Join(Pods(step), " ") != tt.first || !strings.HasSuffix(step.Why(), " instances: hz") {
			t.Errorf("%s: %v are told: %+v", name, Pods(step), step)
		}
	}
}

// What is shown is in the order of its names, whatever the order in which it was asked for.
func TestSettingChangesAreSorted(t *testing.T) {
	d, s := configured(asked("maxmemory-samples", "7"), asked("hz", "20"))
	s.Settings = map[string]string{"maxclients": "200", "list-max-listpack-size": "7", "zset-max-listpack-entries": "7", "maxmemory": "64mb"}
	for i := range s.Instances {
		for name, value := range s.Settings {
			s.Instances[i].Redis.Settings[name] = value
		}
	}
	var names []string
	for _, change := range decide(d, s, now).SettingChanges {
		names = append(names, change.Name)
	}
	want := []string{"hz", "list-max-listpack-size", "maxclients", "maxmemory", "maxmemory-samples", "zset-max-listpack-entries"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestSettingsAreRemembered: what is removed is remembered until no instance has it any more.
func TestSettingsAreRemembered(t *testing.T) {
	d, s := configured()
	s.Settings = map[string]string{"hz": "20", "tcp-backlog": "128"}
	last := s.Find(2, 1).Redis
	last.Settings["hz"] = "20"
	after := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, decide(d, s, now).Settings); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
	}
	after(map[string]string{"hz": "20"})
	s.Find(2, 1).Redis = nil // it may come back as it was
	after(map[string]string{"hz": "20"})
	last.Settings["hz"] = "10"
	s.Find(2, 1).Redis = last
	after(map[string]string{})
	last.Settings = nil // it may have it
	after(map[string]string{"hz": "20"})
	last.Settings = redisconf.Defaults("redis-7.0")
	s.Settings["cluster-node-timeout"] = "7000" // which planTimeout sees to
	s.Find(2, 1).Redis = nil
	after(map[string]string{"hz": "20"})
	d.Settings = []redisconf.Setting{asked("hz", "30"), ofOperator("repl-diskless-sync", "yes")}
	for _, pod := range s.Reachable() {
		pod.Redis.Settings["hz"] = "30"
	}
	after(map[string]string{"hz": "30"}) // and not what was before; nor what the operator asks for itself
	d.Paused = true
	after(s.Settings)
	d.Settings, d.Paused = nil, false // not known
	after(s.Settings)
}

// TestMisconfigured: an instance that does not start because of a setting.
func TestMisconfigured(t *testing.T) {
	const words = "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line 9\n>>> 'made-up \"a b\"'\nBad directive or wrong number of arguments\n"
	bad := asked("made-up", `"a b"`)
	broken := func(s *snapshot.Snapshot, words string) {
		in := s.Find(1, 1)
		in.Redis, in.Failing, in.Waiting, in.TerminationMessage, in.UID = nil, true, "container redis: CrashLoopBackOff", words, "uid"
	}
	for name, tc := range map[string]struct {
		asked  []redisconf.Setting
		words  string
		formed bool
		change func(*Desired, *snapshot.Snapshot)
		step   string
		why    string
	}{
		"a new cluster says so": {asked: []redisconf.Setting{bad}, words: words, step: "Stall",
			why: "spec.config[made-up]: "},
		"a corrected one is replaced": {words: words, step: "Restart", why: "made-up, which has been corrected since"},
		"with another value, too": {asked: []redisconf.Setting{asked("made-up", "2")}, words: words, step: "Restart",
			why: "made-up"},
		"in a cluster that serves, too": {words: words, formed: true, step: "Restart", why: "made-up"},
		"a line of another file is none of ours": {words: strings.ReplaceAll(words, "made-up", "requirepass"), formed: true, step: "Wait",
			why: "CrashLoopBackOff"},
		"another setting of that value is not the one": {asked: []redisconf.Setting{asked("another", `"a b"`)}, words: words, step: "Restart",
			why: "made-up"},
		"in a cluster that serves, the present one is shown, and not replaced": {asked: []redisconf.Setting{bad}, words: words, formed: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Settings = map[string]string{"made-up": `"a b"`} }, step: "Wait",
			why: "CrashLoopBackOff"},
		"a person restarts": {words: words, formed: true, change: func(d *Desired, _ *snapshot.Snapshot) { d.OnDelete = true },
			step: "Wait", why: "CrashLoopBackOff"},
		"its data would go": {words: words, formed: true, change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis, s.Find(1, 0).Waiting = nil, "container redis: CrashLoopBackOff"
		}, step: "Wait", why: "CrashLoopBackOff"},
		"its claim keeps its data": {words: words, formed: true, change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis, s.Find(1, 0).Waiting = nil, "container redis: CrashLoopBackOff"
			s.Claims = []snapshot.Claim{{Name: "data-c-1-1", Shard: 1, Ordinal: 1}}
		}, step: "Restart", why: "made-up"},
		"what is asked for is not known": {words: words, formed: true, change: func(d *Desired, _ *snapshot.Snapshot) { d.Settings = nil },
			step: "Wait", why: "CrashLoopBackOff"},
		"it runs by now": {words: words, formed: true, change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis, s.Find(1, 1).Failing, s.Find(1, 1).Waiting = formed().Find(1, 1).Redis, false, ""
		}, step: "None"},
		"it is being replaced": {words: words, formed: true, change: func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Terminating = true
		}, step: "Wait"},
		"other termination message are for the kubelet to retry": {words: "Out of memory", formed: true, step: "Wait", why: "CrashLoopBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := configured(tc.asked...)
			s.Formed = tc.formed
			if !tc.formed {
				for i := range s.Instances {
					s.Instances[i].Redis = nil
				}
			}
			broken(s, tc.words)
			if tc.change != nil {
				tc.change(&d, s)
			}
			step := decide(d, s, now).Step
			if step.Name() != tc.step || !strings.Contains(step.Why(), tc.why) {
				t.Errorf("%s: %s", step.Name(), step.Why())
			}
			if restart, ok := step.(Restart); ok && (restart.Pod != "c-1-1" || restart.UID != "uid" || !restart.Failing) {
				t.Errorf("%+v", restart)
			}
		})
	}
}
