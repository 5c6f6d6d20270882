// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

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
	var small []string
	for _, claim := range in.snap.Claims {
		if !claim.Terminating && claim.Requested < in.desired.ClaimBytes {
			small = append(small, claim.Name)
		}
	}
	if len(small) == 0 {
		return nil
	}
	return ExpandPVCs{base: base{fmt.Sprintf("claims request less than spec.storage.size: %s", list(small))}, Claims: small,
		Bytes: in.desired.ClaimBytes}
}
