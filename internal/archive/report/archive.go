// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Archive is how far an archive is that is being written: times and counts, and nothing of what is in it. The counts are those of the
// process that says it.
type Archive struct {
	// Request says whose archive it is.
	Request string `json:"request,omitempty"`
	// First and Last are the moments that can be restored, Consistent the last one that is one for all shards; zero: there is none.
	First      time.Time `json:"first,omitzero"`
	Last       time.Time `json:"last,omitzero"`
	Consistent time.Time `json:"consistent,omitzero"`
	// Behind is for how long nothing has been known to be in the store that was written since, in seconds, by the clock of the process;
	// negative: nothing of this process is there yet. A cluster to which nothing is written is not behind.
	Behind float64 `json:"behind"`
	// Objective is how far it may be behind, in seconds.
	Objective float64 `json:"objective"`
	// Bases, Segments, Bytes and Marks were put into the store, Waiting are segments that were not yet.
	Bases    int64 `json:"bases"`
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
	Marks    int64 `json:"marks"`
	Waiting  int64 `json:"waiting"`
	// Paused is for how many seconds writes were delayed for marks, altogether.
	Paused float64 `json:"paused"`
	// Waits is what it waits for; empty: for nothing.
	Waits Wait `json:"waits,omitempty"`
}

// Wait is what an archive waits for. The log of its process says more.
type Wait string

// What there is to wait for.
const (
	// WaitInstances: for instances to answer, or slots to have moved, or a failover to be over.
	WaitInstances Wait = "instances"
	// WaitBases: for data to be read, or a stream to be taken up.
	WaitBases Wait = "bases"
	// WaitStore: for the store to take what was written.
	WaitStore Wait = "store"
	// WaitRoom: for room in the store, which is full.
	WaitRoom Wait = "room"
)

// Ready reports whether it is behind no further than it may be.
func (a Archive) Ready() bool { return a.Behind >= 0 && a.Behind <= a.Objective }

// Encode is the message, of Most bytes at most.
func (a Archive) Encode() ([]byte, error) {
	a.Request = excerpt.Of(a.Request, Most/8) //nolint:mnd // quotes and escapes take up to six bytes for one
	return json.Marshal(a)
}

// ParseArchive reads a message, which anybody may have written. An error says that it is not one of an archive.
func ParseArchive(text []byte) (Archive, error) {
	var a Archive
	if len(text) > Most {
		return a, fmt.Errorf("it has more than %d bytes", Most)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return Archive{}, err
	}
	const (
		mostCounted = math.MaxInt64 / 2
		longest     = 100 * 365 * 24 * 3600.0
	)
	for _, n := range []int64{a.Bases, a.Segments, a.Bytes, a.Marks, a.Waiting} {
		if n < 0 || n > mostCounted {
			return Archive{}, fmt.Errorf("a count is %d", n)
		}
	}
	for _, seconds := range []float64{a.Behind, a.Objective, a.Paused} {
		if seconds < -1 || seconds > longest {
			return Archive{}, fmt.Errorf("a number of seconds is %g", seconds)
		}
	}
	for _, at := range []time.Time{a.First, a.Last, a.Consistent} {
		if year := at.Year(); !at.IsZero() && (year < 2000 || year > 9000) { // what the API can say
			return Archive{}, fmt.Errorf("a moment is of the year %d", year)
		}
	}
	if a.Objective <= 0 || a.First.IsZero() != a.Last.IsZero() || a.Last.Before(a.First) {
		return Archive{}, errors.New("it describes no archive")
	}
	switch a.Waits {
	case "", WaitInstances, WaitBases, WaitStore, WaitRoom:
	default:
		return Archive{}, errors.New("it waits for something that is not known")
	}
	a.Request = excerpt.Of(a.Request, Most)
	return a, nil
}
