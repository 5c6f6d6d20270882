// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// crash makes the container of a pod end again and again, because of a line of redis.conf.
func (k *kubelet) crash(ctx context.Context, pod *corev1.Pod, name, value string) error {
	said := fmt.Sprintf(
		"\n*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line 9\n>>> '%s \"%s\"'\nBad directive or wrong number of arguments\n", name, value)
	k.crashed[pod.UID] = true
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.9.9.9", PodIPs: []corev1.PodIP{{IP: "10.9.9.9"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "redis", Image: "redis", ImageID: "redis",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: said}}}}}
	return api.Status().Update(ctx, pod)
}

// refuse makes servers not start with the setting.
func (k *kubelet) refuse(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused[name] = true
}

// uids are the pods that run, by name.
func (k *kubelet) uids() map[string]types.UID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.running)
}

// template is the pod template of a shard.
func template(t *testing.T, cluster *v1alpha1.RedisCluster, shard int) corev1.PodTemplateSpec {
	t.Helper()
	return children(t, cluster)["statefulsets/"+cluster.ShardName(shard)].(*appsv1.StatefulSet).Spec.Template
}

// redisConf is the ConfigMap child.
func redisConf(t *testing.T, cluster *v1alpha1.RedisCluster) string {
	t.Helper()
	return children(t, cluster)["configmaps/cache-config"].(*corev1.ConfigMap).Data["redis.conf"]
}

func awaitConfigured(t *testing.T, cluster *v1alpha1.RedisCluster, reason, message string) {
	t.Helper()
	eventually(t, "Configured is "+reason, func() string {
		get(t, cluster)
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionConfigured)
		if c != nil && c.Reason == reason && strings.Contains(c.Message, message) && c.ObservedGeneration == cluster.Generation {
			return ""
		}
		return fmt.Sprintf("%+v", c)
	})
}

// Settings change on running instances, without a restart, and redis.conf follows. A paused
// cluster shows what would change. What nobody asks for any more goes back to the default.
func TestSettingsChangeLive(t *testing.T) {
	t.Parallel()
	cluster, _, k := running(t)
	pods := k.uids()
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Pause = true
		c.Spec.Config = map[string]string{"maxmemory": "64mb", "slowlog-max-len": "256"}
	})
	awaitConfigured(t, cluster, "Changing", "maxmemory (Live), slowlog-max-len (Live)")
	want := v1alpha1.SettingChange{Name: "maxmemory", From: "0", To: "64mb", ApplyMethod: "Live",
		Instances: []string{"cache-0-0", "cache-0-1", "cache-1-0", "cache-1-1", "cache-2-0", "cache-2-1"}}
	if diff := cmp.Diff(want, cluster.Status.Plan.Settings[0]); diff != "" || cluster.Status.Plan.Step != "SetConfig" {
		t.Errorf("plan %+v (-want +got):\n%s", cluster.Status.Plan, diff)
	}
	if strings.Contains(redisConf(t, cluster), "maxmemory") {
		t.Error("a paused cluster changed its redis.conf")
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
	awaitConfigured(t, cluster, "InForce", "")
	awaitWhole(t, cluster)
	for pod := range pods {
		if got := k.node(pod).Setting("maxmemory"); got != "67108864" {
			t.Errorf("%s has maxmemory %s", pod, got)
		}
	}
	if conf := redisConf(t, cluster); !strings.Contains(conf, `maxmemory "64mb"`) || !strings.Contains(conf, `slowlog-max-len "256"`) {
		t.Errorf("redis.conf:\n%s", conf)
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"maxmemory": "64mb"} })
	awaitConfigured(t, cluster, "InForce", "")
	awaitWhole(t, cluster)
	for pod := range pods {
		if got := k.node(pod).Setting("slowlog-max-len"); got != "128" {
			t.Errorf("%s has slowlog-max-len %s, want the default", pod, got)
		}
	}
	if diff := cmp.Diff(pods, k.uids()); diff != "" {
		t.Errorf("pods were restarted:\n%s", diff)
	}
}

// What an engine refuses does not reach redis.conf, and the cluster goes on serving.
func TestRefusedSetting(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Config = map[string]string{"maxmemory-policy": "least-loved", "maxmemory-samples": "7", "made-up": "1"}
	})
	awaitConfigured(t, cluster, "SettingRefused", "spec.config[made-up]: redis 7.0.15 has no such setting")
	awaitConfigured(t, cluster, "SettingRefused", `spec.config[maxmemory-policy]: redis 7.0.15 refuses the value "least-loved"`)
	awaitPhase(t, cluster, v1alpha1.PhaseRunning, "spec.config[made-up]")
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) ||
		!meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Errorf("conditions %+v", cluster.Status.Conditions)
	}
	conf := redisConf(t, cluster)
	if strings.Contains(conf, "least-loved") || strings.Contains(conf, "made-up") || !strings.Contains(conf, `maxmemory-samples "7"`) {
		t.Errorf("redis.conf:\n%s", conf)
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = nil })
	awaitConfigured(t, cluster, "InForce", "")
	awaitWhole(t, cluster)
	if stalled := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled); stalled.Status != metav1.ConditionFalse {
		t.Errorf("Stalled %+v", stalled)
	}
}

// A new cluster with a setting that no server starts with says so; when it is corrected, the
// pods are replaced at once.
func TestNewClusterWithABadSetting(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	k.refuse("made-up")
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Config = map[string]string{"made-up": "1", "maxmemory": "64mb"}
	create(t, cluster)
	awaitStalled(t, cluster, "SettingRefused",
		`spec.config[made-up]: the server in pod cache-0-0 does not start with the value "1": Bad directive or wrong number of arguments: change or remove it`)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { delete(c.Spec.Config, "made-up") })
	awaitWhole(t, cluster)
	awaitConfigured(t, cluster, "InForce", "")
}

// A setting that instances take only when they start changes the pod template, and others do not.
func TestSettingForTheStartChangesTheTemplate(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	digest := func() string {
		return template(t, cluster, 0).Annotations[values.AnnotationSettings]
	}
	if digest() != "" {
		t.Errorf("digest %q without any such setting", digest())
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Config = map[string]string{"tcp-backlog": "1024", "hz": "20"}
		c.Spec.Pod = []v1alpha1.PodTemplate{{Annotations: map[string]string{"team": "shop"}}}
	})
	eventually(t, "the template changes", func() string {
		if digest() == "" {
			return "it does not"
		}
		return ""
	})
	if annotations := template(t, cluster, 1).Annotations; annotations["team"] != "shop" || annotations[values.AnnotationSettings] !=
		digest() {
		t.Errorf("the template of shard 1 has the annotations %v", annotations)
	}
}

// MAXMEMORY of the environment comes into force on running instances. That the variable of their
// processes changes, too, restarts them afterwards; here a user does that.
func TestMaxMemoryOfTheEnvironment(t *testing.T) {
	t.Parallel()
	cluster, _, k := running(t)
	pods := k.uids()
	for _, size := range []struct{ text, bytes string }{{"64mb", "67108864"}, {"32mb", "33554432"}, {"0", "0"}} {
		change(t, cluster, func(c *v1alpha1.RedisCluster) {
			c.Spec.Pod = []v1alpha1.PodTemplate{
				{UpdateStrategy: v1alpha1.PodUpdateStrategy{Type: v1alpha1.OnDelete}, Env: []corev1.EnvVar{{Name: "MAXMEMORY", Value: size.text}}}}
		})
		eventually(t, "every instance has it", func() string {
			for pod := range pods {
				if got := k.node(pod).Setting("maxmemory"); got != size.bytes {
					return fmt.Sprintf("%s has maxmemory %s, want %s", pod, got, size.bytes)
				}
			}
			if conf, line := redisConf(t, cluster), fmt.Sprintf("maxmemory %q", size.bytes); !strings.Contains(conf, line) {
				return "redis.conf lacks " + line + ":\n" + conf
			}
			return ""
		})
		containers := template(t, cluster, 0).Spec.Containers
		if !slices.Contains(containers[0].Env, corev1.EnvVar{Name: "MAXMEMORY", Value: size.text}) {
			t.Errorf("the process has the variables %v", containers[0].Env)
		}
	}
	if diff := cmp.Diff(pods, k.uids()); diff != "" {
		t.Errorf("pods were restarted:\n%s", diff)
	}
}
