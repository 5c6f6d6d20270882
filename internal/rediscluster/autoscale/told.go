// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import "time"

// tellAgain is for how long figures are told that have changed meanwhile: a load that goes to and fro about a target would have the status
// written at every look.
const tellAgain = 5 * time.Minute

// Told is what was last told of outcomes. The zero value has told nothing.
type Told struct {
	at      time.Time
	shards  int
	outcome Outcome
}

// Tell returns what is to be told of an outcome, with what is to be done, and what to remember of that. What changes after it has not for
// long is told at once.
func (t Told) Tell(now time.Time, o Outcome, shards int) (Told, Outcome) {
	to, outgrown := o.To, o.Outgrown
	o.To, o.Outgrown = 0, nil
	recent := now.Sub(t.at) >= 0 && now.Sub(t.at) < tellAgain
	if o != t.outcome && (!recent || t.shards != shards || t.outcome.Known != o.Known) {
		t = Told{at: now, shards: shards, outcome: o}
	}
	t.shards = shards
	o = t.outcome
	o.To, o.Outgrown = to, outgrown
	return t, o
}
