// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal merges the logs of several pods by time. It is pure.
package journal

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// Line is one line of a pod's log.
type Line struct {
	At   time.Time
	Pod  string
	Text string
}

// Parse reads the lines of a pod's log, each of which begins with its time (timestamps=true). One without a time has that of the line
// before it.
func Parse(pod, log string) []Line {
	var all []Line
	var last time.Time
	for text := range strings.SplitSeq(strings.TrimSuffix(log, "\n"), "\n") {
		if text == "" {
			continue
		}
		first, rest, _ := strings.Cut(text, " ")
		at, err := time.Parse(time.RFC3339Nano, first)
		if err != nil {
			at, rest = last, text
		}
		last = at
		all = append(all, Line{At: at, Pod: pod, Text: rest})
	}
	return all
}

// Merge is the lines of all pods by time; those of one pod stay in their order.
func Merge(logs ...[]Line) []Line {
	all := slices.Concat(logs...)
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pod, b.Pod)) })
	return all
}

// stamp is how times are written.
const stamp = "2006-01-02T15:04:05.000Z"

var podStyles = []terminal.Style{terminal.Good, terminal.Note, terminal.Warn, "35", "34", terminal.Bad}

// Text is the lines on a page, each printable and on one line.
func Text(page terminal.Page, lines []Line) string {
	width, styles := 0, map[string]terminal.Style{}
	for _, line := range lines {
		width = max(width, len(line.Pod))
		if _, known := styles[line.Pod]; !known {
			styles[line.Pod] = podStyles[len(styles)%len(podStyles)]
		}
	}
	var b strings.Builder
	for _, line := range lines {
		at := strings.Repeat(" ", len(stamp))
		if !line.At.IsZero() {
			at = line.At.UTC().Format(stamp)
		}
		pod := terminal.Clean(line.Pod)
		b.WriteString(at + " " + page.Paint(pod, styles[line.Pod]) + strings.Repeat(" ", max(width-len(pod), 0)+1) +
			terminal.Clean(line.Text) + "\n")
	}
	return b.String()
}
