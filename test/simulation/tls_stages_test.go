// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// portsFor says what the chart's template has of TLS at a stage; empty: nothing.
func (s *simulation) portsFor(stage redisconf.TLSStage) string {
	tls, _ := values.Build(s.cluster, nil, nil, redisconf.TLS{Stage: stage})["tls"].(map[string]any)
	switch {
	case tls["enabled"] != true:
		return ""
	case tls["twoPorts"] == true:
		return ", two ports"
	}
	return ", TLS"
}

// addTLS gives a pod what the chart's template has of TLS.
func (s *simulation) addTLS(spec *corev1.PodSpec) {
	ports := []corev1.ContainerPort{{ContainerPort: v1alpha1.PortRedis}}
	if s.ports == ", two ports" {
		ports = append(ports, corev1.ContainerPort{ContainerPort: v1alpha1.PortRedisTLS})
	}
	spec.Containers = []corev1.Container{{Name: "redis", Ports: ports}}
	if s.ports != "" {
		trusted := &corev1.SecretProjection{Items: []corev1.KeyToPath{{Path: redisconf.TLSTrustedFile}}}
		trusted.Name = s.cluster.TLSClientTrustSecretName()
		files := []corev1.VolumeProjection{{Secret: trusted}}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "config",
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: files}}})
	}
}

func stageOf(in *instance) redisconf.TLSStage {
	settings := map[string]string{}
	for _, name := range redisconf.TLSSettingNames() {
		settings[name] = in.node.Setting(name)
	}
	return redisconf.TLSStageOf(settings)
}

// switchTLS asks for a mode.
func (s *simulation) switchTLS(mode v1alpha1.TLSMode) {
	s.cluster.Spec.TLS.Mode = mode
	s.cluster.Generation++
	s.say("--- spec.tls.mode %s", mode)
	s.awaits = func() bool {
		is := s.cluster.Status.TLS
		return mode == v1alpha1.TLSDisabled && is == nil || is != nil && is.Mode == mode &&
			meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionTLSModeInForce)
	}
}

// TLS is switched on and off again: a client that moves between the stages has no command fail, whatever restarts meanwhile.
func TestTLSIsSwitched(t *testing.T) {
	eachSeed(t, 8, func(t *testing.T, seed uint64) {
		s := newWithTLS(t, seed, seed%2 == 1, v1alpha1.TLSDisabled)
		s.bringsBack = true
		app := newApplication(s)
		for _, stage := range []struct {
			mode  v1alpha1.TLSMode
			byTLS bool // how clients connect when it has been reached
		}{{v1alpha1.TLSBoth, true}, {v1alpha1.TLSRequired, true}, {v1alpha1.TLSBoth, false}, {v1alpha1.TLSDisabled, false}} {
			s.switchTLS(stage.mode)
			s.switches(app, seed)
			s.byTLS = stage.byTLS
			for key := range 6 {
				if name := fmt.Sprintf("key:%d", key); !app.write(name) {
					s.fail("in the mode %s writing %s failed", stage.mode, name)
				}
			}
			for _, in := range s.instances {
				if got := stageOf(in); got != redisconf.TLSGoal(stage.mode) {
					s.fail("%s is at stage %d in the mode %s", in.pod.Name, got, stage.mode)
				}
			}
		}
		s.wantHealthy()
		app.wantAll()
		if s.cluster.Status.TLS != nil || s.ports != "" {
			s.fail("of TLS is left %+v, %q", s.cluster.Status.TLS, s.ports)
		}
	})
}

// switches reconciles until the mode is in force. With some seeds an instance restarts once with a redis.conf of before: for one node
// timeout commands of its slots may fail then, and no others ever.
func (s *simulation) switches(app *application, seed uint64) {
	s.t.Helper()
	strikes := -1
	if seed%4 > 1 {
		strikes = s.random.IntN(40)
	}
	old := s.file
	for turn := range 400 {
		step := s.reconcile()
		if plan.Is[plan.None](step) && s.cluster.Status.Phase == v1alpha1.PhaseRunning && s.awaits() {
			return
		}
		if turn == strikes {
			in := s.instances[s.random.IntN(len(s.instances))]
			s.say("--- %s restarts with a former redis.conf", in.pod.Name)
			in.node.SetFile(old)
			s.world.Restart(in.node, in.pod.Status.PodIP, true)
		}
		s.world.Run(time.Second)
		struck := strikes >= 0 && turn >= strikes && turn-strikes <= int(nodeTimeout/time.Second)
		for key := range 4 {
			if name := fmt.Sprintf("key:%d", key); !app.write(name) && !struck {
				s.fail("writing %s failed", name)
			}
		}
	}
	s.fail("the mode is not in force: %+v, %+v", s.cluster.Status.TLS, s.cluster.Status.Plan)
}
