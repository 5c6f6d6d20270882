// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// placed is the formed cluster of 3 shards of 2, with instances on these nodes: those of ordinal 0, then those of ordinal 1.
func placed(nodes ...string) *snapshot.Snapshot {
	s := formed()
	for i := range s.Instances {
		in := &s.Instances[i]
		in.NodeName, in.Zone, _ = strings.Cut(nodes[in.Ordinal*3+in.Shard], "@")
	}
	return s
}

func TestSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		step     string
		why      string
	}{
		"masters on three nodes stay":                      {placed("a", "b", "c", "b", "c", "a"), "None", ""},
		"two masters on one node part":                     {placed("a", "a", "c", "b", "b", "a"), "Handover", "c-0-1 takes over"},
		"not to a node that is no better":                  {placed("a", "a", "c", "c", "c", "a"), "None", ""},
		"zones count when nodes do not":                    {placed("a@x", "b@x", "c@y", "d@z", "e@z", "f@y"), "Handover", "(a in x): c-0-1 takes over"},
		"nobody hands over to a replica that is not there": {lose(placed("a", "a", "c", "b", "a", "a"), 0, 1), "Wait", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			d.SpreadMasters = true
			got := Decide(d, tt.snapshot, now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s: %s\nwant %s: %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
		})
	}
}

// However instances are placed and whoever masters are, spreading comes to an end.
func TestSpreadEnds(t *testing.T) {
	d := desired()
	d.SpreadMasters = true
	for arrangement := range 3 * 3 * 3 * 3 * 3 * 3 {
		nodes, rest := make([]string, 6), arrangement
		for i := range nodes {
			nodes[i], rest = fmt.Sprint(rest%3), rest/3
		}
		s := placed(nodes...)
		for step := 0; ; step++ {
			handover, more := Decide(d, s, now).Step.(Handover)
			if !more {
				break
			}
			if step == 10 {
				t.Fatalf("%v: still handing over after %d steps", nodes, step)
			}
			promote(s, handover.Replica.Pod)
		}
	}
}

// promote makes a replica of the cluster the master of its shard.
func promote(s *snapshot.Snapshot, name string) {
	for i := range s.Instances {
		in := &s.Instances[i]
		if in.Name != name {
			continue
		}
		other := s.Find(in.Shard, 1-in.Ordinal)
		in.Redis.Slots, other.Redis.Slots = other.Redis.Slots, in.Redis.Slots
		in.Redis.Master, in.Redis.MasterID = true, ""
		other.Redis.Master, other.Redis.MasterID, other.Redis.MasterLinkUp = false, in.Redis.NodeID, true
	}
	introduce(s)
}
