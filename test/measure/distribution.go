// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"
)

// Distribution tells how long many things took, in seconds.
type Distribution struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
	Never int     `json:"never"` // those that were not done when the limit was reached; they are not in the other figures
}

// Distribute sorts how long things took; never is how many were not done.
func Distribute(seconds []float64, never int) Distribution {
	d := Distribution{Count: len(seconds), Never: never}
	if len(seconds) > 0 {
		sorted := slices.Sorted(slices.Values(seconds))
		d.P50, d.P99, d.Max = percentile(sorted, 50), percentile(sorted, 99), sorted[len(sorted)-1]
	}
	return d
}

// percentile is the smallest of sorted values that p percent of them do not exceed (nearest rank). p is above 0 and at most 100.
func percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
