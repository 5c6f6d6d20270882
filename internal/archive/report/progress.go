// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Progress is how far a container is that takes a backup or restores a shard, by what it says while it runs. It is for people: nothing is
// decided by it.
type Progress struct {
	// Request says whom it works for.
	Request string `json:"request,omitempty"`
	Stage   Stage  `json:"stage"`
	// Elapsed is for how long it has been at work, in seconds.
	Elapsed float64 `json:"elapsed"`
	// Bytes of Of are done in this stage, of all shards; Of 0: it is not known how many there are.
	Bytes int64 `json:"bytes"`
	Of    int64 `json:"of,omitempty"`
	// Shards are all that it works at, or none when they would not fit.
	Shards []ShardProgress `json:"shards,omitempty"`
}

// ShardProgress is one shard's part of a Progress.
type ShardProgress struct {
	Shard int   `json:"shard"`
	Bytes int64 `json:"bytes"`
	Of    int64 `json:"of,omitempty"`
}

// Stage is what a container does.
type Stage string

// The stages of a backup, and the one of a restore.
const (
	// StageReading: data comes from the instances. How much there is of it is estimated.
	StageReading Stage = "Reading"
	// StageMarking: all data is there, and the moment is set that the backup is of.
	StageMarking Stage = "Marking"
	// StageReadingBack: what was written is read back from the store.
	StageReadingBack Stage = "ReadingBack"
	StageRestoring   Stage = "Restoring"
)

// Heard is what a container said, and when.
type Heard struct {
	Progress
	At time.Time
}

// mostProgress is how many bytes of a shard are believed: those of all shards can be added.
const mostProgress = 1 << 48

// Share is how much of the work is done, from 0 to 1: what a backup reads counts as much as what it reads back. false: that is not known.
func (p Progress) Share() (float64, bool) {
	const half = 0.5
	done := 0.0
	if p.Of > 0 {
		done = min(float64(p.Bytes)/float64(p.Of), 1)
	}
	switch p.Stage {
	case StageReading:
		return half * done, p.Of > 0
	case StageMarking:
		return half, true
	case StageReadingBack:
		return half + half*done, true
	case StageRestoring:
		return done, p.Of > 0
	}
	return 0, false
}

// End is when the work is done if it goes on as it went; zero: too little of it is done to tell.
func (h Heard) End() time.Time {
	const least, longest = 0.05, 365 * 24 * time.Hour
	share, known := h.Share()
	if !known || share < least {
		return time.Time{}
	}
	left := h.Elapsed * (1 - share) / share
	return h.At.Add(min(time.Duration(left*float64(time.Second)), longest))
}

// Encode is the message, of Most bytes at most.
func (p Progress) Encode() ([]byte, error) {
	p.Request = excerpt.Of(p.Request, Most/8) //nolint:mnd // quotes and escapes take up to six bytes for one
	text, err := json.Marshal(p)
	if err == nil && len(text) > Most {
		p.Shards = nil
		text, err = json.Marshal(p)
	}
	return text, err
}

// ParseProgress reads a message, which anybody may have written. An error says that it is no progress.
func ParseProgress(text []byte) (Progress, error) {
	var p Progress
	if len(text) > Most {
		return p, fmt.Errorf("it has more than %d bytes", Most)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Progress{}, err
	}
	const longest = 365 * 24 * 3600
	if p.Elapsed < 0 || p.Elapsed > longest {
		return Progress{}, fmt.Errorf("it has lasted %g seconds", p.Elapsed)
	}
	amounts := func(bytes, of, most int64) bool { return bytes >= 0 && bytes <= most && of >= 0 && of <= most }
	good, last := amounts(p.Bytes, p.Of, mostProgress*slots.Count), -1
	for _, s := range p.Shards {
		good = good && amounts(s.Bytes, s.Of, mostProgress) && s.Shard > last && s.Shard < slots.Count
		last = s.Shard
	}
	if !good {
		return Progress{}, errors.New("no shards have so many bytes")
	}
	switch p.Stage {
	case StageReading, StageMarking, StageReadingBack, StageRestoring:
	default:
		return Progress{}, errors.New("it is in no stage that is known")
	}
	p.Request = excerpt.Of(p.Request, Most)
	return p, nil
}
