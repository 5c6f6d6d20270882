// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// FuzzStatus gives a healthy cluster a status that somebody else wrote, as whoever may edit the status can. No reconciliation fails
// or panics, and none takes away what a status only remembers: every slot stays where one master serves it, and no instance is
// evicted or forgotten.
func FuzzStatus(f *testing.F) {
	for _, status := range []string{
		"{}", `{"phase":"Nonsense","replicas":-1,"shards":2147483647,"slots":-1,"instances":"x/y","observedGeneration":9223372036854775807}`,
		`{"conditions":[{"type":"Formed","status":"False"},{"type":"Stalled","status":"True"},{"type":""}]}`,
		`{"migration":{"for":"3 shards","fromShards":-2147483648,"goal":["0-16383"]}}`,
		`{"migration":{"for":"x","fromShards":2147483647,"goal":["0-5460","5461-10922","10923-16383","","","",""]}}`,
		`{"migration":{"for":"3 shards","fromShards":3,"goal":["","","","0-16383"],"slotsLeft":-1}}`,
		`{"migration":{"for":"3 shards","goal":["5461-10922","0-5460","10923-16383"]}}`,
		`{"rollout":{"updated":-1,"total":99,"lastProgressTime":"9999-12-31T23:59:59Z"},"slotsAssigned":true}`,
		`{"nodes":[{"name":"c-0-0","nodeId":"0000000000000000000000000000000000000000"},{"name":"c-9-9","nodeId":"x","slots":["0-16383"]}]}`,
		`{"settings":[{"name":"requirepass","value":"x"},{"name":"","value":"\n"}],"refusedSettings":[{"name":"maxmemory","value":"0"}]}`,
		`{"dataVolumes":{"c-0-0":"other","c-1-0":"node/x","c-2-0":""},"placedOn":{"c-0-0":"nowhere"}}`,
		`{"passwordChange":{"stage":"Retiring","since":"9999-12-31T23:59:59Z"},"plan":{"step":"DeleteAll"},"currentVersion":"0","engine":"x"}`,
		`{"certificateNotAfter":"0001-01-01T00:00:00Z","targetVersion":"v\u0000","selector":"=","secretName":"../x"}`,
	} {
		f.Add(status)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var status v1alpha1.RedisClusterStatus
		if json.Unmarshal([]byte(text), &status) != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t, 1, 2)
			s.converge()
			s.cluster.Status = status
			s.replaceOperator()
			for range 5 {
				switch step := s.reconcile().(type) {
				case plan.Forget, plan.GiveUp, plan.Recreate, plan.ForceDelete, plan.Restart, plan.RemoveShards:
					s.fail("%s: %s: %s", text, step.Name(), step.Why())
				}
				s.world.Run(time.Second)
			}
			if owned := s.observe().Owned().Len(); owned != slots.Count {
				s.fail("%s: %d slots are owned", text, owned)
			}
		})
	})
}
