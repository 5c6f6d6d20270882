// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// configured waits until Configured has a reason, and its message a part.
func configured(t *testing.T, cluster *v1alpha1.RedisCluster, reason, message string) {
	t.Helper()
	live.Eventually(t, "Configured is "+reason, func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionConfigured)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) || c.ObservedGeneration != cluster.Generation {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}

// Settings change under load: most without a restart, some with one of each instance, and what an engine
// refuses not at all. One instance is left alone meanwhile. Clients notice nothing.
func TestRedisClusterSettings(t *testing.T) {
	shownElsewhere(t, "TestSettingsChangeUnderLoad of test/engine; TestSettingsReachMastersLast of the simulation")
	parallel(t)
	for _, engine := range oldest() {
		t.Run(engine.name, func(t *testing.T) {
			live.Scenario(t, func(t *testing.T, run *live.Run) {
				cluster := newCluster(live.NewNamespace(t), "cache")
				cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
				cluster.Spec.Pod[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
				load := underLoad(t, cluster, 5000)
				before := podUIDs(t, cluster)

				start := time.Now()
				live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
					c.Spec.Config = map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru", "save": "900 1",
						"client-output-buffer-limit": "pubsub 1mb 1mb 60"}
				})
				configured(t, cluster, "InForce", "")
				t.Logf("four settings are in force on %d instances after %.1f s", len(before), time.Since(start).Seconds())
				live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
					c.Spec.Config["maxmemory-policy"], c.Spec.Config["made-up"] = "least-loved", "1"
				})
				configured(t, cluster, "SettingRefused", "spec.config[maxmemory-policy]: ")
				configured(t, cluster, "SettingRefused", "spec.config[made-up]: ")
				if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
					t.Errorf("conditions %+v", cluster.Status.Conditions)
				}
				live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"save": "900 1"} })
				configured(t, cluster, "InForce", "")
				if after := podUIDs(t, cluster); !maps.Equal(before, after) {
					t.Errorf("settings that change live restarted pods: %v, before %v", after, before)
				}
				wantLeftAlone(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config["tcp-backlog"] = "1024" }) // a setting for the start
				configured(t, cluster, "InForce", "")
				run.WantUnnoticed(load, live.NothingMoved)
			})
		})
	}
}

// A new cluster that does not start because of a setting says which, in the server's own words, and forms when it is corrected.
func TestRedisClusterBadSettingFromTheStart(t *testing.T) {
	shownElsewhere(t, "TestNewClusterWithABadSetting of test/apiserver; TestFatalSettings of test/engine")
	parallel(t)
	for _, engine := range newest() {
		t.Run(engine.name, func(t *testing.T) {
			cluster := newCluster(live.NewNamespace(t), "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			cluster.Spec.Config = map[string]string{"maxmemory-policy": "least-loved"}
			live.Create(t, cluster)
			live.Eventually(t, "the cluster says why it does not start", func() error {
				if err := live.Get(t, cluster); err != nil {
					return err
				}
				if c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Reason != "SettingRefused" ||
					!strings.Contains(c.Message, "spec.config[maxmemory-policy]: ") ||
					!strings.Contains(c.Message, "argument(s) must be one of the following") {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
			start := time.Now()
			live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"maxmemory-policy": "allkeys-lru"} })
			live.Ready(t, cluster)
			t.Logf("Ready %.1f s after the correction", time.Since(start).Seconds())
			configured(t, cluster, "InForce", "")
		})
	}
}
