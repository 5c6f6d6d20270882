// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"bytes"
	"encoding/json"
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What the load does not count as failed has bounds all the same. An ordinary run of a minute is some 30,000 commands, and has none.
const (
	// mayStall is the share of all commands that may have had attempts which timed out while this machine stalled. Each may
	// hide a failure: with more of them, that nothing failed is not known.
	mayStall = 1. / 1000
	// mayStallFor is the share of its time that a machine may stall. Two processors on which four of these tests run side
	// by side stall for a tenth to a half, and the load sends two thirds of its commands all the same; with more than three
	// quarters, commands were too few to notice what went on meanwhile.
	mayStallFor = 3. / 4
	// mayStallBeside is the share of its time that a machine may stall when an attempt is to be judged that timed out and did not
	// stall for half of its time: beyond it, what timed out says nothing of the cluster, unless it is more than mayStall.
	mayStallBeside = 1. / 5
	// mayHangUp is the share of commands whose connection the client may have closed itself. With the settings of
	// docs/reliability.md that is one in a million; and a library also closes connections of an instance that leaves the topology
	// while it is still asked, which the operator must not bring about.
	mayHangUp = 1. / 2000
	// mayTryAgain is the share of the commands with two keys that may be answered TRYAGAIN where slots move key by key: a slot is
	// half moved for milliseconds. Nothing else may bring about one.
	mayTryAgain = 1. / 100
)

// Unnoticed judges a load under which planned work went on that no application is to notice, with slots that moved by a method, or
// none that did. Failures are of the cluster. Open is why nothing else can be said of the run, if so: it is to be repeated.
func (r *LoadResult) Unnoticed(slotsMoved v1alpha1.MigrationMethod) (failures []string, open string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	commands := r.Writes + r.Reads + 2*r.Pairs
	if r.Writes == 0 || r.Reads == 0 || r.Pairs == 0 || r.Arrivals == 0 {
		fail("the load did nothing: %d writes, %d reads, %d pairs, %d arrivals", r.Writes, r.Reads, r.Pairs, r.Arrivals)
	}
	unjudged := r.Failed+r.FailedAttempts > 0 && r.FailedOtherwise == 0 && r.StallSeconds > r.Seconds*mayStallBeside &&
		!exceeds(max(r.Failed, r.FailedAttempts), commands, mayStall)
	if r.Failed+r.FailedAttempts > 0 && !unjudged {
		fail("%d commands failed (%d attempts): %s %s %s", r.Failed, r.FailedAttempts, oneLine(r.Errors), oneLine(r.Samples), oneLine(r.Wrong))
	}
	if r.Lost+r.Stale+r.Corrupt+r.Torn+r.Unread > 0 {
		fail("%d acknowledged writes lost, %d stale reads, %d corrupt, %d torn, %d unread: %s",
			r.Lost, r.Stale, r.Corrupt, r.Torn, r.Unread, oneLine(r.Wrong))
	}
	if exceeds(r.ClosedByClient, commands, mayHangUp) {
		fail("the client closed the connections of %d of %d commands", r.ClosedByClient, commands)
	}
	switch {
	case slotsMoved != v1alpha1.MigrationClassic && r.TryAgain > 0:
		fail("%d answers were TRYAGAIN although no slot moved key by key", r.TryAgain)
	case exceeds(r.TryAgain, 2*r.Pairs, mayTryAgain), exceeds(r.PairsTriedAgain, 2*r.Pairs, mayTryAgain):
		fail("%d answers to %d commands with two keys were TRYAGAIN, the last to %d of them", r.TryAgain, 2*r.Pairs, r.PairsTriedAgain)
	}
	switch {
	case exceeds(r.Stalled, commands, mayStall):
		open = fmt.Sprintf("%d of %d commands timed out while this machine stalled", r.Stalled, commands)
	case unjudged:
		open = fmt.Sprintf("%d commands timed out (%d attempts), and this machine stalled for %.1f of %.1f s", r.Failed, r.FailedAttempts,
			r.StallSeconds, r.Seconds)
	case r.StallSeconds > r.Seconds*mayStallFor:
		open = fmt.Sprintf("this machine stalled for %.1f of %.1f s", r.StallSeconds, r.Seconds)
	}
	return failures, open
}

func exceeds(n, of int64, share float64) bool { return float64(n) > float64(of)*share }

// oneLine is JSON without its indentation.
func oneLine(text json.RawMessage) []byte {
	var short bytes.Buffer
	if err := json.Compact(&short, text); err != nil {
		return text
	}
	return short.Bytes()
}
