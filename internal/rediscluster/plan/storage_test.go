// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

// claims are those of the instances of the first shards of a cluster of two instances a shard.
func claims(bytes ...int64) (all []snapshot.Claim) {
	for i, requested := range bytes {
		all = append(all, snapshot.Claim{Name: fmt.Sprintf("data-c-%d-%d", i/2, i%2), Shard: i / 2, Ordinal: i % 2, Requested: requested})
	}
	return all
}

// All claims grow to twice what the files of the largest instance may take, in whole Gi, and no further than is allowed. Those that are
// made later get the size of the others.
func TestClaimsGrowWithTheData(t *testing.T) {
	for name, tt := range map[string]struct {
		size, most int64
		claims     []snapshot.Claim
		appended   int64
		used       int64
		want       int64
		why        string
	}{
		"not asked for":           {gi, 0, claims(gi, gi), 9 * gi, gi, gi, "spec.storage.size"},
		"there is room":           {gi, 4 * gi, claims(gi, gi), 19 * mi, 400 * mi, gi, "spec.storage.size"},
		"nearly full":             {gi, 4 * gi, claims(gi, gi), 21 * mi, 400 * mi, 2 * gi, "the files of c-0-0 may take 821.0 MiB of 1024.0 MiB"},
		"in whole Gi":             {gi, 9 * gi, claims(gi, gi), gi, 400 * mi, 4 * gi, "c-0-0"},
		"no further":              {gi, 3 * gi, claims(gi, gi), gi, 400 * mi, 3 * gi, "spec.storage.maxSize"},
		"a limit that is no Gi":   {gi, gi + mi, claims(gi, gi), gi, gi, gi + mi, "c-0-0"},
		"it has grown":            {gi, 9 * gi, claims(4*gi, 4*gi), gi, 400 * mi, 4 * gi, "claims request less than data-c-0-0"},
		"a new one is small":      {gi, 9 * gi, claims(gi, 4*gi), 0, 0, 4 * gi, "claims request less than data-c-0-1"},
		"somebody made one large": {gi, 2 * gi, claims(gi, 400*gi), 0, 0, 2 * gi, "data-c-0-1"},
		"what is most is less":    {4 * gi, 2 * gi, claims(4*gi, 4*gi), 9 * gi, gi, 4 * gi, "spec.storage.size"},
		"an absurd figure":        {gi, 1 << 62, claims(gi, gi), 1 << 48, 1 << 48, 3 << 49, "c-0-0"},
	} {
		s := formed()
		s.Claims = tt.claims
		s.Find(0, 0).Redis.AppendOnlySize, s.Find(0, 0).Redis.UsedMemory = tt.appended, tt.used
		got, why := claimBytes(Desired{ClaimBytes: tt.size, MostClaimBytes: tt.most}, s)
		if got != tt.want || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %d (%s), want %d (%s)", name, got, why, tt.want, tt.why)
		}
	}
}

// Whoever does not answer, or whose claim is on its way out, has no claims grow.
func TestUnknownInstancesHaveNoClaimsGrow(t *testing.T) {
	for name, change := range map[string]func(s *snapshot.Snapshot){
		"it does not answer":    func(s *snapshot.Snapshot) { s.Find(0, 0).Redis = nil },
		"its claim goes":        func(s *snapshot.Snapshot) { s.Claims[0].Terminating = true },
		"it has no claim":       func(s *snapshot.Snapshot) { s.Claims = s.Claims[1:] },
		"it is another's claim": func(s *snapshot.Snapshot) { s.Claims[0].Shard = 9 },
	} {
		s := formed()
		s.Claims = claims(gi, gi)
		s.Find(0, 0).Redis.AppendOnlySize = gi
		change(s)
		if got, why := claimBytes(Desired{ClaimBytes: gi, MostClaimBytes: 9 * gi}, s); got != gi {
			t.Errorf("%s: %d (%s)", name, got, why)
		}
	}
}

// Once grown, claims are left alone until the files may take nearly all again.
func TestGrownClaimsRest(t *testing.T) {
	s := formed()
	steps, size := 0, gi
	for used := int64(0); used < 100*gi; used += 10 * mi {
		s.Claims = claims(size, size)
		s.Find(0, 0).Redis.UsedMemory = used
		is, _ := claimBytes(Desired{ClaimBytes: gi, MostClaimBytes: 1000 * gi}, s)
		if is > size {
			steps++
		}
		if size = is; s.Find(0, 0).Redis.MostOnDisk() > size {
			t.Fatalf("%d bytes of memory do not fit into %d", used, size)
		}
	}
	if steps > 12 {
		t.Errorf("%d steps from 1 Gi to %d Gi", steps, size/gi)
	}
}

// Claims that could not be expanded for the data are told, and hold back nothing; what the spec asks for is asked for all the same.
func TestClaimsThatExpansionRefused(t *testing.T) {
	d := desired()
	d.ClaimBytes, d.MostClaimBytes = gi, 9*gi
	s := formed()
	s.Claims = claims(gi, gi)
	s.Find(0, 0).Redis.UsedMemory = gi
	for name, tt := range map[string]struct {
		later bool
		size  int64
		step  string
	}{
		"not now":        {true, gi, "Stall"},
		"tried again":    {false, gi, "ExpandPVCs"},
		"the spec's own": {true, 2 * gi, "ExpandPVCs"},
	} {
		d.ClaimBytes = tt.size
		decision := ShapeOf(d, s, now).Next(Pending{NotGrown: "exceeded quota", GrowsLater: tt.later})
		if decision.Step.Name() != tt.step || Reaches["ExpansionRefused"] != ItsPart {
			t.Errorf("%s: %s: %s", name, decision.Step.Name(), decision.Step.Why())
		}
		if stall, is := decision.Step.(Stall); is && (stall.Why() != "exceeded quota" || stall.Cause != "ExpansionRefused") {
			t.Errorf("%s: %s: %s", name, stall.Cause, stall.Why())
		}
	}
	s.Find(0, 0).Redis.UsedMemory = 0
	d.ClaimBytes = gi
	if decision := ShapeOf(d, s, now).Next(Pending{NotGrown: "exceeded quota", GrowsLater: true}); !Is[None](decision.Step) {
		t.Errorf("nothing is to grow: %s", decision.Step.Why())
	}
}

// A claim without a volume cannot request more yet.
func TestPendingClaimsWait(t *testing.T) {
	s := formed()
	s.Claims = claims(gi, 4*gi)
	s.Claims[0].Pending = true
	if step, grows := expands(Desired{ClaimBytes: gi, MostClaimBytes: 9 * gi}, s); grows {
		t.Errorf("%v are expanded", step.Claims)
	}
}
