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
}

// Name implements Step.
func (ExpandPVCs) Name() string { return "ExpandPVCs" }

// planStorage grows claims that request less than is asked for. A claim never shrinks.
func planStorage(in input) Step {
	bytes, why := claimBytes(in.desired, in.snap)
	var small []string
	for _, claim := range in.snap.Claims {
		if !claim.Terminating && claim.Requested < bytes {
			small = append(small, claim.Name)
		}
	}
	if len(small) == 0 {
		return nil
	}
	return ExpandPVCs{base: base{why + ": " + list(small)}, Claims: small, Bytes: bytes}
}

// Claims that grow with the data do when the files of an instance might take more than nearlyFull of its claim, to roomFor times what they
// might take: in few steps, because some drivers expand a volume once in hours only.
const nearlyFull, roomFor = 0.8, 2

// claimBytes is what each claim is to request, and why. All of them have the same size: each instance of a shard may have its data, and each
// shard may receive slots.
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
