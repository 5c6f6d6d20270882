// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// journal is what a test says while it runs. It ends up in the result's log: the scorecard reads the pod's output as one JSON
// document, so nothing else may be written there.
type journal struct {
	now   func() time.Time
	start time.Time
	// live gets each line at once too.
	live io.Writer

	text strings.Builder
	last string
}

func newJournal(now func() time.Time, live io.Writer) *journal {
	return &journal{now: now, start: now(), live: live}
}

// say adds a line, after the time since the start.
func (j *journal) say(format string, args ...any) {
	line := fmt.Sprintf("%4.0fs %s\n", j.now().Sub(j.start).Seconds(), fmt.Sprintf(format, args...))
	j.text.WriteString(line)
	_, _ = io.WriteString(j.live, line)
}

// change adds a line if it is not what it was the last time.
func (j *journal) change(state string) {
	if state != j.last {
		j.say("%s", state)
	}
	j.last = state
}

func (j *journal) String() string { return j.text.String() }
