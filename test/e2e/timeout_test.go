// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// A rollout that comes no further fails when its time is over, stays so without doing anything, and the former version heals it.
func TestRedisClusterUpgradeTimesOut(t *testing.T) {
	if os.Getenv("E2E") != "all" {
		t.Skip("restarts the operator and runs alone: with E2E=all; else TestRolloutTimesOut and TestRedisClusterBrokenImage")
	}
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		live.Create(t, cluster)
		live.Ready(t, cluster)
		restartOperator(t, "--cluster-upgrade-timeout=20s")
		load := live.NewLoad(t, cluster)
		load.Fill(1000)
		load.Start()

		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Version = "7.0.99" })
		live.Eventually(t, "the rollout fails and says why", func() error {
			if err := live.Get(t, cluster); err != nil {
				return err
			}
			if s := cluster.Status; s.Phase != v1alpha1.PhaseFailed || !strings.Contains(s.Reason, "the rollout has made no progress for 20s") ||
				!strings.Contains(s.Reason, "ImagePull") {
				return fmt.Errorf("phase %s: %s", s.Phase, s.Reason)
			}
			return nil
		})
		if r := cluster.Status.Rollout; r == nil || r.Updated != 1 || r.Total != 6 {
			t.Errorf("status.rollout is %+v, want 1 of 6", r)
		}
		pods := podUIDs(t, cluster)
		for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
			if err := live.Get(t, cluster); err != nil || cluster.Status.Phase != v1alpha1.PhaseFailed {
				t.Fatalf("phase %s: %s (%v), want it to stay Failed", cluster.Status.Phase, cluster.Status.Reason, err)
			}
		}
		for name, uid := range podUIDs(t, cluster) {
			if pods[name] != uid {
				t.Errorf("%s was replaced again by what does not start", name)
			}
		}

		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Version = "7.0.15" })
		live.Eventually(t, "nothing is under way", func() error { return atRest(t, cluster) })
		wantHealthy(t, cluster, 3, 6)
		run.WantUnnoticed(load, live.NothingMoved)
	})
}
