// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// configure makes redis.conf hold the settings, and those of TLS, as the chart and the kubelet do.
func (s *simulation) configure(settings []redisconf.Setting, tls redisconf.TLS) {
	s.file = map[string]string{}
	for _, setting := range settings {
		s.file[setting.Name] = setting.Value()
	}
	if tls.Stage > redisconf.TLSPlain {
		maps.Copy(s.file, tls.Settings(redisconf.TLSDir))
	}
	for _, in := range s.instances {
		in.node.SetFile(s.file)
	}
}

// wantInForce asserts that every instance, and redis.conf, has the setting.
func (s *simulation) wantInForce(name, shown string) {
	s.t.Helper()
	for _, in := range s.instances {
		if got := in.node.Setting(name); got != shown {
			s.fail("%s has %s %q, want %q", in.pod.Name, name, got, shown)
		}
	}
}

// configSteps counts the reconciliations that changed settings.
func (s *simulation) configSteps() int {
	n := 0
	for _, line := range s.narrative {
		if strings.HasPrefix(line, "SetConfig") {
			n++
		}
	}
	return n
}

// A change of settings comes into force on every instance, whatever is damaged meanwhile; redis.conf holds it, so that it
// survives restarts; and it is set no more once it is in force.
func TestSettingsComeIntoForce(t *testing.T) {
	eachSeed(t, 20, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		s.converge()
		if n := s.configSteps(); n > 0 {
			s.fail("%d steps set what the instances had from the start", n)
		}
		s.write(1)
		s.cluster.Spec.Config = map[string]string{"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru", "save": "900 1",
			"client-output-buffer-limit": "pubsub 1mb 1mb 60"}
		kept := map[int]bool{0: true, 1: true, 2: true}
		if seed%4 > 1 {
			s.reconcile()
			kept = s.damage()
			s.unreliable()
		}
		s.converge()
		s.wantHealthy()
		s.wantData(1, kept)
		s.wantInForce("maxmemory", "67108864")
		s.wantInForce("maxmemory-policy", "allkeys-lru")
		s.wantInForce("save", "900 1")
		s.wantInForce("client-output-buffer-limit", "normal 0 0 0 replica 268435456 67108864 60 pubsub 1048576 1048576 60")
		if s.file["maxmemory"] != "64mb" {
			s.fail("redis.conf has maxmemory %q", s.file["maxmemory"])
		}
		if c := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionConfigured); c == nil || c.Reason != "InForce" {
			s.fail("condition %+v", c)
		}
		steps := s.configSteps()
		s.cluster.Spec.Config = map[string]string{"save": "900 1"}
		s.converge()
		s.wantInForce("maxmemory", "0")
		s.wantInForce("maxmemory-policy", "noeviction")
		s.wantInForce("save", "900 1")
		if _, holds := s.file["maxmemory"]; holds || s.configSteps() == steps {
			s.fail("what nobody asks for is still in redis.conf")
		}
		for range 3 {
			s.reconcile()
		}
		for _, status := range s.cluster.Status.Settings {
			if status.Name == "maxmemory" {
				s.fail("the status still has %+v", status)
			}
		}
	})
}

// The first instance that is told is a replica, and masters are told when all replicas have it.
func TestSettingsReachMastersLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 3, 2)
		s.converge()
		masters := s.masters()
		s.cluster.Spec.Config = map[string]string{"hz": "20"}
		var told []int
		for range 10 {
			step, ok := s.reconcile().(plan.SetConfig)
			if !ok {
				break
			}
			told = append(told, len(step.Changes))
			for _, change := range step.Changes {
				if masters[change.On.Pod] != (len(told) == 3) {
					s.fail("wave %d: %s, master: %t", len(told), change.On.Pod, masters[change.On.Pod])
				}
			}
		}
		if fmt.Sprint(told) != "[1 2 3]" {
			s.fail("the waves are %v, want one replica, the others, the masters", told)
		}
		s.wantInForce("hz", "20")
	})
}

// What an engine refuses reaches neither redis.conf nor other instances, is told with its field and the engine's own words, and
// holds nothing else up; the rest of the change is in force.
func TestRefusedSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 5, 2)
		s.cluster.Spec.Config = map[string]string{"maxmemory-policy": "allkeys-lru"}
		s.configure(redisconf.AskedFor(s.cluster, nil), redisconf.TLS{})
		for _, in := range s.instances {
			s.restart(in, true)
		}
		s.converge()
		s.cluster.Spec.Config = map[string]string{"maxmemory-policy": "least-loved", "no-such-setting": "1", "maxmemory": "64mb"}
		s.converge()
		s.wantInForce("maxmemory-policy", "allkeys-lru")
		s.wantInForce("maxmemory", "67108864")
		if s.file["maxmemory-policy"] != "allkeys-lru" || s.file["no-such-setting"] != "" {
			s.fail("redis.conf %v", s.file)
		}
		c := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionConfigured)
		for _, want := range []string{
			`spec.config[maxmemory-policy]: redis 7.0.15 refuses the value "least-loved": ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru`,
			"spec.config[no-such-setting]: redis 7.0.15 has no such setting: change or remove it",
		} {
			if !strings.Contains(c.Message, want) {
				s.fail("condition %s, %s: %s\nwant in it: %s", c.Status, c.Reason, c.Message, want)
			}
		}
		if !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady) ||
			!meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionStalled) ||
			s.cluster.Status.Phase != v1alpha1.PhaseRunning {
			s.fail("phase %s, conditions %+v", s.cluster.Status.Phase, s.cluster.Status.Conditions)
		}
		steps := s.configSteps()
		for range 5 {
			s.reconcile()
			s.world.Run(time.Second)
		}
		if s.configSteps() != steps {
			s.fail("what was refused is tried again and again")
		}
		s.damage()
		s.converge()
		s.wantHealthy()
		s.cluster.Spec.Config = map[string]string{"maxmemory-policy": "volatile-lru"}
		s.converge()
		s.wantInForce("maxmemory-policy", "volatile-lru")
		if !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionConfigured) {
			s.fail("conditions %+v", s.cluster.Status.Conditions)
		}
	})
}

// An engine that says a value in other words is not told it for ever.
func TestOtherWordsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 6, 2)
		s.converge()
		s.cluster.Spec.Config = map[string]string{"slowlog-max-len": "100"}
		for _, in := range s.instances {
			in.node.ShowAs("slowlog-max-len", "128")
		}
		s.converge()
		if n := s.configSteps(); n == 0 || n > 3 {
			s.fail("%d steps set it", n)
		}
	})
}

// A setting that instances take only when they start is not told to running ones.
func TestSettingsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 8, 2)
		s.converge()
		s.cluster.Spec.Config = map[string]string{"tcp-backlog": "1024"}
		s.converge()
		if s.configSteps() > 0 || s.file["tcp-backlog"] != "1024" {
			s.fail("redis.conf %v", s.file)
		}
		s.wantInForce("tcp-backlog", "511")
	})
}
