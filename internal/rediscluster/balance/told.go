// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"reflect"
	"time"
)

// tellAgain is for how long figures are told that have changed meanwhile: a load that goes to and fro would have the status written at
// every look.
const tellAgain = 5 * time.Minute

// Told is what was last told of outcomes. The zero value has told nothing.
type Told struct {
	at      time.Time
	outcome Outcome
}

// Tell returns what is to be told of an outcome, with what is to be done, and what to remember of that. What changes after it has not for
// long is told at once.
func (t Told) Tell(now time.Time, o Outcome) (Told, Outcome) {
	goal, count, bytes := o.Goal, o.Count, o.Bytes
	o.Goal, o.Count, o.Bytes = nil, 0, 0
	recent := now.Sub(t.at) >= 0 && now.Sub(t.at) < tellAgain
	if !reflect.DeepEqual(o, t.outcome) && (!recent || t.outcome.Known != o.Known) {
		t = Told{at: now, outcome: o}
	}
	o = t.outcome
	o.Goal, o.Count, o.Bytes = goal, count, bytes
	return t, o
}
