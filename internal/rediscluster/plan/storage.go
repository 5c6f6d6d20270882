// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ExpandPVCs asks for more storage in claims that exist. The StatefulSets' claim template
// cannot change: claims that it makes later start small, and grow like the others.
type ExpandPVCs struct {
	base
	Claims []string
	// Bytes is what each is to request.
	Bytes int64
	// ByData: it is more than the spec asks for.
	ByData bool
}

// Name implements Step.
func (ExpandPVCs) Name() string { return "ExpandPVCs" }

// planStorage grows claims that request less than is asked for. A claim never shrinks. One without a volume cannot be expanded yet.
func planStorage(in input) Step {
	desired := in.desired
	if in.pending.GrowsLater {
		desired.MostClaimBytes = 0
	}
	if step, grows := expands(desired, in.snap); grows {
		return step
	}
	return nil
}

// planNotGrown says why claims do not grow with the data.
func planNotGrown(in input) Step {
	step, grows := expands(in.desired, in.snap)
	if !grows || in.pending.NotGrown == "" {
		return nil
	}
	return Stall{base: base{in.pending.NotGrown}, Cause: "ExpansionRefused", Refused: step}
}

// expands is the step that has claims request what they are to request; false: they do.
func expands(d Desired, s *snapshot.Snapshot) (step ExpandPVCs, grows bool) {
	bytes, why := claimBytes(d, s)
	for _, claim := range s.Claims {
		if !claim.Terminating && !claim.Pending && claim.Requested < bytes {
			step.Claims = append(step.Claims, claim.Name)
		}
	}
	step.base, step.Bytes, step.ByData = base{why + ": " + list(step.Claims)}, bytes, bytes > d.ClaimBytes
	return step, len(step.Claims) > 0
}

// Claims that grow with the data do when the files of an instance might take more than nearlyFull of its claim, to roomFor times what
// they might take: in few steps, because some drivers expand a volume once in hours only.
const nearlyFull, roomFor = 0.8, 2

// claimBytes is what each claim is to request, and why. All of them have the same size: each instance of a shard may have its data, and
// each shard may receive slots.
func claimBytes(d Desired, s *snapshot.Snapshot) (bytes int64, why string) {
	bytes, why = d.ClaimBytes, "claims request less than spec.storage.size"
	most := d.MostClaimBytes
	for _, claim := range s.Claims {
		if has := min(claim.Requested, most); has > bytes {
			bytes, why = has, "claims request less than "+claim.Name
		}
	}
	for _, claim := range s.Claims {
		instance := s.Find(claim.Shard, claim.Ordinal)
		if instance == nil || instance.Redis == nil || claim.Terminating {
			continue
		}
		may := instance.Redis.MostOnDisk()
		if to := min(wholeGi(roomFor*may), most); float64(may) > nearlyFull*float64(claim.Requested) && to > bytes {
			bytes, why = to, fmt.Sprintf("the files of %s may take %s of %s, and claims grow up to spec.storage.maxSize", instance.Name,
				megabytes(may), megabytes(claim.Requested))
		}
	}
	return bytes, why
}

// wholeGi is a number of bytes, rounded up to whole Gi as volumes are.
func wholeGi(bytes int64) int64 {
	const gi = 1 << 30
	return (bytes + gi - 1) / gi * gi
}
