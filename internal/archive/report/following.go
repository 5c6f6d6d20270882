// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"

	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Following is what became of preparing an instance to follow a server outside. With an Error there is nothing else.
type Following struct {
	Error string `json:"error,omitempty"`

	// Engine and Version are the server's, Slots those that the instance begins with, Shards how many shards its cluster has: one if it
	// is in none.
	Engine  string `json:"engine,omitempty"`
	Version string `json:"version,omitempty"`
	Slots   string `json:"follows,omitempty"`
	Shards  int    `json:"of,omitempty"`
}

// MostSlots is how long the text of a shard's slots may be: slots in so many pieces are not told.
const MostSlots = Most * 3 / 4

// MostShards is how many shards there may be.
const MostShards = 500

// Encode is the message, of Most bytes at most.
func (f Following) Encode() ([]byte, error) {
	f.Error = excerpt.Of(f.Error, Most/8) //nolint:mnd // quotes and escapes take up to six bytes for one
	return json.Marshal(f)
}

// ParseFollowing reads a message. An error says that it is not one that Encode wrote.
func ParseFollowing(text string) (Following, error) {
	var f Following
	if len(text) > Most {
		return f, fmt.Errorf("it has more than %d bytes", Most)
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return Following{}, err
	}
	if f.Error != "" {
		return Following{Error: excerpt.Of(f.Error, Most)}, nil
	}
	set, err := slots.Parse(f.Slots)
	if f.Engine != "redis" && f.Engine != "valkey" || !version.MatchString(f.Version) || err != nil || set.IsEmpty() ||
		f.Slots != set.String() || f.Shards < 1 || f.Shards > MostShards {
		return Following{}, errors.New("it is about no server that is followed")
	}
	return f, nil
}
