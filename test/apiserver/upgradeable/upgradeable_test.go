// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeable

import (
	"fmt"
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

const atRest = "True AtRest: no RedisCluster moves slots"

func scaling(slotsLeft int32) v1alpha1.RedisClusterStatus {
	return v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseScaling,
		Migration: &v1alpha1.MigrationStatus{FromShards: 3, ToShards: 4, SlotsLeft: slotsLeft, Goal: []string{"0-16383"}, For: "4"}}
}

func phase(p v1alpha1.Phase) v1alpha1.RedisClusterStatus {
	return v1alpha1.RedisClusterStatus{Phase: p}
}

func TestWithoutClustersTheOperatorMayBeUpgraded(t *testing.T) {
	i := install(t)
	i.olm(t)
	i.run(t)
	i.awaits(t, atRest)
}

func TestUpgradesWaitForMovingSlotsAndRolls(t *testing.T) {
	i := install(t)
	i.olm(t)
	cache := i.cluster(t, "cache", phase(v1alpha1.PhaseRunning))
	i.run(t)
	i.awaits(t, atRest)

	report(t, cache, scaling(4096))
	i.awaits(t, "False MovingSlots: waiting until RedisClusters are at rest: "+i.namespace+"/cache moves slots (from 3 to 4 shards)")
	queue := i.cluster(t, "queue", phase(v1alpha1.PhaseUpgrading))
	i.awaits(t, fmt.Sprintf(
		"False MovingSlots: waiting until RedisClusters are at rest: %[1]s/cache moves slots (from 3 to 4 shards), %[1]s/queue replaces",
		i.namespace))
	report(t, cache, phase(v1alpha1.PhaseRunning))
	i.awaits(t, "False RollingOut: ")
	report(t, queue, phase(v1alpha1.PhaseFailed))
	i.awaits(t, atRest)

	report(t, cache, scaling(100))
	i.awaits(t, "False MovingSlots: ")
	environment.Check(t, api.Delete(t.Context(), cache))
	i.awaits(t, atRest)
}

// The operator asks for the condition when it changes, and never in between, however often a status does.
func TestProgressIsNotWritten(t *testing.T) {
	i := install(t)
	i.olm(t)
	cache := i.cluster(t, "cache", scaling(4096))
	i.run(t)
	i.awaits(t, "False MovingSlots: ")
	for left := int32(4095); left > 4000; left-- {
		report(t, cache, scaling(left))
	}
	report(t, cache, phase(v1alpha1.PhaseRunning))
	i.awaits(t, atRest)
	var asked []string
	for _, request := range i.requests.List() {
		if strings.Contains(request, "operatorconditions") {
			asked = append(asked, request)
		}
	}
	if len(asked) != 4 {
		t.Errorf("it asked %d times, want a read and a write for each of two verdicts: %v", len(asked), asked)
	}
}

// OLM makes the OperatorCondition and the right to it at about the time when it starts the operator.
func TestTheConditionMayComeLater(t *testing.T) {
	i := install(t)
	cache := i.cluster(t, "cache", phase(v1alpha1.PhaseRunning))
	i.run(t)
	environment.Eventually(t, "an attempt in vain", func() string {
		for _, request := range i.requests.List() {
			if strings.Contains(request, "operatorconditions") {
				return ""
			}
		}
		return "it has not asked for the condition"
	})
	i.olm(t)
	// It asks again after a minute, and whenever work begins or ends. The API server may not know the new Role at the first attempt.
	environment.Eventually(t, "the verdict after OLM's Role", func() string {
		for _, status := range []v1alpha1.RedisClusterStatus{phase(v1alpha1.PhaseUpgrading), scaling(1)} {
			report(t, cache, status)
		}
		if got := i.condition(t); !strings.HasPrefix(got, "False ") {
			return got
		}
		return ""
	})
}
