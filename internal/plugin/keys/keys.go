// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keys is what `kubectl middleware keys` shows: which keys of a RedisCluster are the largest, and which are used most, by what the
// server of each master says to a redis-cli. What a server says is somebody else's text.
package keys

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// Cluster is what was found. Its JSON is what `-o json` prints.
type Cluster struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Shards    []Shard `json:"shards"`
	// Largest are by what they take, MostUsed by how often they are used, which servers with an LFU policy (`maxmemory-policy`) count.
	Largest  []Key `json:"largest"`
	MostUsed []Key `json:"mostUsed,omitempty"`
}

// Shard is how much of a shard was looked at.
type Shard struct {
	Shard    int32  `json:"shard"`
	Instance string `json:"instance"`
	// Keys is how many keys its master had in the beginning, Looked how many were looked at.
	Keys   int64 `json:"keys"`
	Looked int64 `json:"looked"`
	// Ended reports whether it was looked at to its end, Error why not; without either, time was over.
	Ended bool   `json:"ended"`
	Error string `json:"error,omitempty"`
}

// Key is one key.
type Key struct {
	// Key is its name as redis-cli writes it, and reads it.
	Key   string `json:"key"`
	Type  string `json:"type,omitempty"`
	Shard int32  `json:"shard"`
	Slot  uint16 `json:"slot"`
	// Bytes are what it takes (MEMORY USAGE): of one with many elements an estimate from five of them.
	Bytes int64 `json:"bytes"`
	// Frequency is how often it is used, 0 to 255 by a logarithm (OBJECT FREQ); absent where that is not counted.
	Frequency *int64 `json:"frequency,omitempty"`
}

// Merge puts what was found of the shards together: no more keys of each kind than a number.
func Merge(namespace, name string, looks []*Look, most int) Cluster {
	c := Cluster{Namespace: namespace, Name: name, Largest: []Key{}}
	for _, l := range looks {
		c.Shards = append(c.Shards, l.Shard)
		c.Largest, c.MostUsed = append(c.Largest, l.largest...), append(c.MostUsed, l.mostUsed...)
	}
	slices.SortFunc(c.Shards, func(a, b Shard) int { return cmp.Compare(a.Shard, b.Shard) })
	slices.SortFunc(c.Largest, bySize)
	slices.SortFunc(c.MostUsed, byUse)
	c.Largest, c.MostUsed = c.Largest[:min(most, len(c.Largest))], c.MostUsed[:min(most, len(c.MostUsed))]
	return c
}

func bySize(a, b Key) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key)) }

func byUse(a, b Key) int { return cmp.Or(cmp.Compare(*b.Frequency, *a.Frequency), bySize(a, b)) }

// Text is what was found on a page.
func (c Cluster) Text(page terminal.Page) string {
	page = page.Sized()
	var keys, looked int64
	for _, s := range c.Shards {
		keys, looked = keys+s.Keys, looked+s.Looked
	}
	text := page.Paint(fmt.Sprintf("RedisCluster %s: %d of %d keys were looked at", terminal.Clean(c.Namespace+"/"+c.Name), looked, keys),
		terminal.Head) + "\n"
	for _, list := range []struct {
		head string
		keys []Key
	}{{"LARGEST", c.Largest}, {"MOST USED", c.MostUsed}} {
		if len(list.keys) > 0 {
			text += page.Table("  ", table(list.head, list.keys))
		}
	}
	for _, s := range c.Shards {
		switch {
		case s.Error != "":
			text += page.Paragraph("", fmt.Sprintf("shard %d: %s", s.Shard, s.Error), terminal.Warn)
		case !s.Ended:
			text += page.Paragraph("", fmt.Sprintf("shard %d: time was over, see --for", s.Shard), terminal.Warn)
		}
	}
	return text
}

func table(head string, keys []Key) [][]terminal.Cell {
	var rows [][]terminal.Cell
	row := func(style terminal.Style, texts ...string) {
		var cells []terminal.Cell
		for _, text := range texts {
			cells = append(cells, terminal.Of(text).In(style))
		}
		rows = append(rows, cells)
	}
	row(terminal.Faint, head, "BYTES", "TYPE", "SHARD", "SLOT", "USED")
	for _, k := range keys {
		used := "-"
		if k.Frequency != nil {
			used = strconv.FormatInt(*k.Frequency, 10)
		}
		row(terminal.Plain, k.Key, overview.Size(*resource.NewQuantity(k.Bytes, resource.BinarySI)), cmp.Or(k.Type, "-"),
			strconv.Itoa(int(k.Shard)), strconv.Itoa(int(k.Slot)), used)
	}
	return rows
}
