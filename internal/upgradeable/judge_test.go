// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeable

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func at(name string, work Work, done int32) Activity {
	return Activity{Cluster: types.NamespacedName{Namespace: "shop", Name: name}, UID: types.UID(name), Work: work,
		FromShards: 3, ToShards: 4, progress: progress{instances: done}}
}

// Each row is a history: what the clusters do at a minute, and what OLM is told then.
func TestVerdicts(t *testing.T) {
	const (
		atRest = "True AtRest: no RedisCluster moves slots, changes its size or rolls"
		moving = "False MovingSlots: waiting until RedisClusters are at rest: shop/a moves slots (from 3 to 4 shards)"
		stuck  = "True NoProgress: no longer waiting, for want of progress in 30m0s: shop/a moves slots (from 3 to 4 shards)"
	)
	type moment struct {
		minute     float64
		activities []Activity
		want       string
		again      time.Duration
	}
	tests := map[string][]moment{
		"nothing is there": {{0, nil, atRest, 0}},
		"nothing moves":    {{0, []Activity{at("a", NoWork, 0), at("b", NoWork, 0)}, atRest, 0}},
		"the operator starts in the middle": {
			{0, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
		},
		"a moment of rest is not the end": {
			{0, []Activity{at("a", NoWork, 0)}, atRest, 0},
			{1, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{5, []Activity{at("a", NoWork, 0)}, moving, time.Minute}, // seen to be at rest only now
			{5.5, []Activity{at("a", NoWork, 0)}, moving, 30 * time.Second},
			{5.75, []Activity{at("a", MovingSlots, 1)}, moving, 3 * time.Minute},
		},
		"upgrades are free again after a calm minute": {
			{1, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{1.25, []Activity{at("a", NoWork, 0)}, moving, time.Minute},
			{1.5, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{1.75, nil, moving, time.Minute},
			{2.5, nil, moving, 15 * time.Second},
			{2.75, nil, atRest, 0},
		},
		"work that gets on holds as long as it takes": {
			{0, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{29, []Activity{at("a", MovingSlots, 1)}, moving, 3 * time.Minute},
			{58, []Activity{at("a", MovingSlots, 2)}, moving, 3 * time.Minute},
			{87, []Activity{at("a", MovingSlots, 2)}, moving, 3 * time.Minute},
		},
		"work that gets nowhere does not hold for ever, and holds again when it gets on": {
			{0, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{27, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{30, []Activity{at("a", MovingSlots, 0)}, moving, time.Minute},
			{31, []Activity{at("a", MovingSlots, 0)}, stuck, 3 * time.Minute},
			{34, []Activity{at("a", MovingSlots, 0)}, stuck, 3 * time.Minute},
			{37, []Activity{at("a", MovingSlots, 1)}, moving, 3 * time.Minute},
		},
		"one that is stuck does not hide another": {
			{0, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{30, []Activity{at("a", MovingSlots, 0), at("b", RollingOut, 0)},
				"False RollingOut: waiting until RedisClusters are at rest: shop/b replaces instances by ones of a new template", 3 * time.Minute},
		},
		"a cluster made anew under an old name starts afresh": {
			{0, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{29, nil, moving, time.Minute},
			{29.5, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
			{58, []Activity{at("a", MovingSlots, 0)}, moving, 3 * time.Minute},
		},
		"slots are the first reason, names are sorted and few": {
			{0, []Activity{at("e", RollingOut, 0), at("d", Scaling, 0), at("c", RollingOut, 0), at("b", MovingSlots, 0), at("a", NoWork, 0),
				at("f", Scaling, 0)},
				"False MovingSlots: waiting until RedisClusters are at rest: shop/b moves slots (from 3 to 4 shards), " +
					"shop/c replaces instances by ones of a new template, shop/d adds or removes instances, and 2 more", 3 * time.Minute},
		},
	}
	for name, history := range tests {
		t.Run(name, func(t *testing.T) {
			j := judge{limits: DefaultLimits()}
			for _, m := range history {
				now := time.Unix(1e9, 0).Add(time.Duration(m.minute * float64(time.Minute)))
				verdict, again := j.verdict(m.activities, now)
				if got := fmt.Sprintf("%s %s: %s", verdict.Status, verdict.Reason, verdict.Message); got != m.want || again != m.again {
					t.Errorf("minute %v:\ngot  %s (again after %v)\nwant %s (again after %v)", m.minute, got, again, m.want, m.again)
				}
			}
		})
	}
}
