// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"encoding/json"
	"time"
)

// LoadResult is what `load run` prints, as far as tests and benchmarks look at it. The
// counts are explained by `load run --help`.
type LoadResult struct {
	Seconds                                    float64
	Writes, Reads, Pairs, Arrivals             int64
	Failed, Lost, Stale, Corrupt, Torn, Unread int64
	FailedOtherwise                            int64
	FailedAttempts, TryAgain, PairsTriedAgain  int64
	ClosedByClient, Stalled                    int64
	Redirected                                 int64
	LongestStallMS, ClientStallMS              float64
	StallSeconds                               float64
	P50MS, P99MS, P999MS                       float64
	GapsMS                                     []float64 // longest time without an acknowledged write, by sixteenth of the slots
	Outages                                    []Outage
	Errors, Samples, Wrong                     json.RawMessage `json:",omitempty"`
}

// Outage is a time in which no write into a sixteenth of the slots was acknowledged.
type Outage struct {
	From, To  time.Time
	Sixteenth int
}
