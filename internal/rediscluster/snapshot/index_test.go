// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "testing"

// Who copies an indexed snapshot and gives the copy other instances is told about those.
func TestIndexIsOfItsInstances(t *testing.T) {
	of := func(ids ...string) (instances []Instance) {
		for i, id := range ids {
			instances = append(instances, Instance{Ordinal: i, Redis: &Redis{NodeID: id}})
		}
		return instances
	}
	indexed := (&Snapshot{Instances: of("a", "b")}).Indexed()
	if indexed.ByNodeID("b") != indexed.Find(0, 1) || len(indexed.Reachable()) != 2 {
		t.Errorf("it does not find its own: %+v", indexed.Reachable())
	}
	for name, others := range map[string][]Instance{"others": of("c", "d"), "fewer": indexed.Instances[:1], "none": nil} {
		s := *indexed
		s.Instances = others
		if s.ByNodeID("b") != nil || len(s.Reachable()) != len(others) {
			t.Errorf("%s: it tells of instances that it does not have", name)
		}
	}
}
