// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Who asks what a change would move is told what would, that nothing would, what of it cannot be, or that it is not known.
func TestForesee(t *testing.T) {
	four := with(topologyOf(4))
	invalid, impossible := four, four
	invalid.Problems = []string{"spec.replicas: Invalid value: 2"}
	impossible.AssignReceive, impossible.SlotAssignments = true, []SlotAssignment{{Slots: 5, From: []string{nodeID(9, 9)}}}
	for name, tt := range map[string]struct {
		desired  Desired
		snapshot *snapshot.Snapshot
		moves    string
		known    bool
		refused  string
	}{
		"a shard more": {desired: four, snapshot: joined(4), known: true,
			moves: "1365 from c-0-0 to c-3-0, 1366 from c-1-0 to c-3-0, 1365 from c-2-0 to c-3-0"},
		"a shard less": {desired: desired(), snapshot: scaled(4), known: true,
			moves: "1366 from c-3-0 to c-0-0, 1365 from c-3-0 to c-1-0, 1365 from c-3-0 to c-2-0"},
		"as many shards":                      {desired: desired(), snapshot: formed(), known: true},
		"one shard stays one":                 {desired: with(v1alpha1.Topology{2}), snapshot: ofOneShard(), known: true},
		"the spec is not valid":               {desired: invalid, snapshot: joined(4)},
		"no shard is asked for":               {desired: with(nil), snapshot: formed()},
		"slots are to come from who has none": {desired: impossible, snapshot: joined(4), known: true, refused: "can give slots"},
		"the owner of slots does not answer":  {desired: four, snapshot: lose(joined(4), 1, 0)},
		"two own a slot": {desired: four, snapshot: with4(func(s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Slots = slots.Of(0)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			moves, known, err := Foresee(tt.desired, tt.snapshot, now)
			refused := ""
			if err != nil {
				refused = err.Error()
			}
			if summary(moves) != tt.moves || known != tt.known || !strings.Contains(refused, tt.refused) || (refused == "") != (tt.refused == "") {
				t.Errorf("moves %q, known: %t, %v", summary(moves), known, err)
			}
		})
	}
}
