// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is everything that was measured.
type report struct {
	At       time.Time `json:"at"`
	Machine  string    `json:"machine"`
	Keys     int       `json:"keys"`
	Replicas int       `json:"replicas"`
	Writes   int       `json:"writes"`
	Reads    int       `json:"reads"`
	Engines  []figures `json:"engines"`
}

// machine says what this ran on, and how busy that was: figures of a busy machine are worth less.
func machine() string {
	text := fmt.Sprintf("%d processors", runtime.NumCPU())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load average before: " + strings.Join(strings.Fields(string(load))[:3], " ")
	}
	return text
}

// markdown is the report as tables.
func (r report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s. %d keys of mixed sizes, 3 and 4 shards with %d replicas each; under load: %d writes and %d reads a second.\n\n",
		r.At.Format(time.DateTime), r.Machine, r.Keys, r.Replicas, r.Writes, r.Reads)
	for _, t := range []struct {
		head  string
		lines func(figures) string
	}{
		{"| engine | rollouts | six instances | longest time without a write to a sixteenth of the slots | longest command | the client's own | commands | failed | lost |\n|---|---|---|---|---|---|---|---|---|", figures.rollLines},
		{"| engine | masters killed | to the first write acknowledged by the shard | by the ordinary client | acknowledged by | writes | failed | lost |\n|---|---|---|---|---|---|---|---|", figures.killLines},
		{"| engine | neighbours | masters killed | to the first write acknowledged by the shard | p99, of that alone | writes | failed | lost | restarts of the operator | its peak memory |\n|---|---|---|---|---|---|---|---|---|---|", figures.harmLines},
	} {
		var lines string
		for _, f := range r.Engines {
			lines += t.lines(f)
		}
		if lines != "" {
			fmt.Fprintf(&b, "%s\n%s\n", t.head, lines)
		}
	}
	if !slices.ContainsFunc(r.Engines, func(f figures) bool { return len(f.Moves) > 0 }) {
		return b.String()
	}
	fmt.Fprintln(&b, "| engine | empty cluster, patch to Ready | 3 to 4 shards | 4 to 3 shards |\n|---|---|---|---|")
	for _, f := range r.Engines {
		fmt.Fprintf(&b, "| %s %s | median of %d runs (longest) | %s | %s |\n", name(f.Engine), f.Engine.Version, len(f.EmptyOut),
			spread(f.EmptyOut), spread(f.EmptyIn))
	}
	fmt.Fprintln(&b,
		"\n| engine | shards | by | slots | keys | first to last slot | slots/s | keys/s | whole | of the engine's own means | longest stall (the client's own) | commands/s | failed | lost |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, f := range r.Engines {
		for _, m := range f.Moves {
			fmt.Fprintln(&b, f.row(m))
		}
	}
	return b.String()
}

func name(e engine) string {
	before, _, _ := strings.Cut(e.Name, "-")
	return strings.ToUpper(before[:1]) + before[1:]
}

// quantiles are the median, the 99th percentile and the longest of a list.
func quantiles(list []float64, format string) string {
	if len(list) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(list))
	at := func(part float64) string {
		return fmt.Sprintf(format, sorted[min(int(part*float64(len(sorted))), len(sorted)-1)])
	}
	return fmt.Sprintf("p50 %s, p99 %s, max %s", at(0.5), at(0.99), at(1))
}

func spread(list []float64) string {
	if len(list) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(list))
	return fmt.Sprintf("%.1f s (%.1f s)", sorted[len(sorted)/2], sorted[len(sorted)-1])
}

func (f figures) row(m moved) string {
	direction := "3 → 4"
	if m.To == 3 {
		direction = "4 → 3"
	}
	noticed := "no load | – | – | –"
	if m.Load != nil {
		noticed = fmt.Sprintf("%.0f ms (%.0f ms) | %.0f | %d | %d", m.Load.LongestStallMS, m.Load.ClientStallMS,
			float64(m.Load.Writes+m.Load.Reads)/m.Load.Seconds, m.Load.Failed, m.Load.Lost)
	}
	return fmt.Sprintf("| %s %s | %s | %s | %d | %d | %.2f s | %.0f | %.0f | %.1f s | %s | %s |", name(f.Engine), f.Engine.Version, direction,
		m.Way,
		m.Slots, m.Keys, m.Migration, float64(m.Slots)/m.Migration, float64(m.Keys)/m.Migration, m.Whole, f.ratio(m), noticed)
}

// ratio compares keys a second with those of the engine's own means in the same direction,
// under the same load.
func (f figures) ratio(m moved) string {
	if m.Way != "operator" {
		return "1"
	}
	for _, other := range f.Moves {
		if other.Way != m.Way && other.To == m.To && (other.Load == nil) == (m.Load == nil) {
			return fmt.Sprintf("%.2f ×", (float64(m.Keys)/m.Migration)/(float64(other.Keys)/other.Migration))
		}
	}
	return "–"
}
