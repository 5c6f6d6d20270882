// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A replica that was told to take over is remembered until it has, or for an hour.
func TestReluctantReplicas(t *testing.T) {
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := began
	o := &Observer{Now: func() time.Time { return clock }}
	const one, other = types.UID("one"), types.UID("other")
	o.NoteHandover(one, "does")
	o.NoteHandover(one, "does not")
	o.NoteHandover(one, "does not answer")
	o.NoteHandover(other, "does not")
	s := &snapshot.Snapshot{Instances: []snapshot.Instance{
		{Redis: &snapshot.Redis{NodeID: "does", Master: true}}, {Redis: &snapshot.Redis{NodeID: "does not"}}, {},
	}}
	want := map[string]time.Time{"does not": began, "does not answer": began}
	for range 2 {
		if diff := cmp.Diff(want, o.handovers.pending(one, s, clock)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	clock = began.Add(2 * time.Hour)
	o.NoteHandover(one, "later")
	if got := slices.Collect(maps.Keys(o.handovers.pending(one, s, clock))); !slices.Equal(got, []string{"later"}) {
		t.Errorf("two hours later: %v", got)
	}
	o.handovers.forget(one)
	if got := o.handovers.pending(one, s, clock); len(got) > 0 {
		t.Errorf("of an object that is gone: %v", got)
	}
}
