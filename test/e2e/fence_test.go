// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// wantLeftAlone fences the master of shard 0, makes a change that restarts every instance, and takes the fence away: the master hands
// over, nothing is restarted while it is not ready, and then everything is.
func wantLeftAlone(t *testing.T, cluster *v1alpha1.RedisCluster, mutate func(*v1alpha1.RedisCluster)) {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	fenced, before := master(t, cluster, 0).Name, podUIDs(t, cluster)
	fence := func(command string) {
		t.Helper()
		if out, err := middleware(t, command, cluster.Name, fenced, "--namespace="+cluster.Namespace); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	fence("fence")
	live.Eventually(t, fenced+" is fenced", func() error {
		err := live.Get(t, cluster)
		if c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionFenced); err != nil || c == nil || c.Status != "True" ||
			!strings.Contains(c.Message, fenced) {
			return errors.Join(err, fmt.Errorf("%+v", c))
		}
		return nil
	})
	if now := master(t, cluster, 0).Name; now == fenced {
		t.Errorf("%s is fenced and the master of shard 0", fenced)
	}
	said, err := cli(t.Context(), cluster, fenced, "CONFIG", "GET", "cluster-replica-no-failover")
	if err != nil || !strings.Contains(said, "yes") {
		t.Errorf("%s may be elected: %v %s", fenced, err, said)
	}
	live.Change(t, cluster, mutate)
	live.Eventually(t, "the rollout waits for the fenced instance", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		plan := cluster.Status.Plan
		if plan == nil || !strings.Contains(plan.Reason, "is fenced") || cluster.Status.ObservedGeneration != cluster.Generation {
			return fmt.Errorf("%+v", plan)
		}
		return nil
	})
	if now := podUIDs(t, cluster); !maps.Equal(now, before) {
		t.Errorf("pods are %v, and were %v before the change", now, before)
	}
	fence("unfence")
	live.Eventually(t, "all instances are restarted", func() error {
		for name, uid := range podUIDs(t, cluster) {
			if uid == before[name] {
				return fmt.Errorf("%s is the same", name)
			}
		}
		return atRest(t, cluster)
	})
	wantHealthy(t, cluster, 3, 6)
}
