// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report is what a container that takes a backup, or restores a shard, says at its end, in its termination message. Whoever reads
// it trusts no more than that it is of that container.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Most is how many bytes a kubelet keeps of a message.
const Most = 4096

// Report is what became of a backup. With an Error there is nothing else.
type Report struct {
	Error string `json:"error,omitempty"`

	Engine  string    `json:"engine,omitempty"`
	Version string    `json:"version,omitempty"`
	Marked  time.Time `json:"marked,omitzero"`
	// Consistent, Paused and Skew are those of the manifest, the latter two in seconds.
	Consistent bool    `json:"consistent,omitempty"`
	Paused     float64 `json:"paused,omitempty"`
	Skew       float64 `json:"skew,omitempty"`
	// Manifest is its SHA-256, in hex digits.
	Manifest string `json:"manifest,omitempty"`
	// Bytes are of data, Stored in the store.
	Bytes  int64 `json:"bytes,omitempty"`
	Stored int64 `json:"stored,omitempty"`
	// Count is the number of shards. Shards are all of them, or none when they would not fit.
	Count  int     `json:"count,omitempty"`
	Shards []Shard `json:"shards,omitempty"`
	// Counts are the keys of all shards; nil: they were not counted.
	Counts *Counts `json:"counts,omitempty"`
	// Restored are the slots of the shard that was restored, as ranges; empty when a backup was taken.
	Restored string `json:"restored,omitempty"`
}

// Shard is one master's part.
type Shard struct {
	Slots  string `json:"slots"`
	Bytes  int64  `json:"bytes"`
	Stored int64  `json:"stored"`
}

// Counts are how many keys there were at the mark.
type Counts struct {
	// Keys are all of them. WithTTL have a time to live, and WithFieldTTL are hashes with fields that have one: a hash goes with the last of
	// its fields.
	Keys         int64 `json:"keys"`
	WithTTL      int64 `json:"withTTL"`
	WithFieldTTL int64 `json:"withFieldTTL,omitempty"`
}

// MostKeys is how many keys of all shards are believed.
const MostKeys = 1 << 57

// Within reports whether there may be such keys, and no more than so many.
func (c Counts) Within(most int64) bool {
	return c.Keys >= 0 && c.Keys <= most && c.WithTTL >= 0 && c.WithTTL <= c.Keys && c.WithFieldTTL >= 0 && c.WithFieldTTL <= c.Keys
}

// Encode is the message, of Most bytes at most.
func (r Report) Encode() ([]byte, error) {
	r.Error = excerpt.Of(r.Error, Most/4) //nolint:mnd // quotes and escapes take up to six bytes for one
	text, err := json.Marshal(r)
	if err == nil && len(text) > Most {
		r.Shards = nil
		text, err = json.Marshal(r)
	}
	if len(text) > Most && r.Error == "" {
		r = Report{Error: "the shard's slots are too scattered to be told: restore it by hand"}
		text, err = json.Marshal(r)
	}
	if len(text) > Most {
		r.Error = "what went wrong cannot be told: see the log"
		text, err = json.Marshal(r)
	}
	return text, err
}

var (
	sum     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	version = regexp.MustCompile(`^[0-9A-Za-z.+-]{1,64}$`)
)

// Parse reads a message. An error says that it is not one that Encode wrote of a backup.
func Parse(text string) (Report, error) {
	var r Report
	if len(text) > Most {
		return r, fmt.Errorf("it has more than %d bytes", Most)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Report{}, err
	}
	if r.Error != "" {
		return Report{Error: excerpt.Of(r.Error, Most)}, nil
	}
	amounts := r.Bytes >= 0 && r.Stored >= 0 && r.Paused >= 0 && r.Skew >= 0 && r.Count > 0 && r.Count <= slots.Count &&
		(r.Counts == nil || r.Counts.Within(MostKeys))
	for _, s := range r.Shards {
		if _, err := slots.Parse(s.Slots); err != nil {
			return Report{}, fmt.Errorf("slots: %w", err)
		}
		amounts = amounts && s.Bytes >= 0 && s.Stored >= 0
	}
	if _, err := slots.Parse(r.Restored); r.Restored != "" && err != nil {
		return Report{}, fmt.Errorf("restored slots: %w", err)
	}
	if !amounts || !sum.MatchString(r.Manifest) || !version.MatchString(r.Version) || r.Engine != "redis" && r.Engine != "valkey" ||
		r.Marked.IsZero() || len(r.Shards) > 0 && len(r.Shards) != r.Count {
		return Report{}, errors.New("it describes no backup")
	}
	return r, nil
}
