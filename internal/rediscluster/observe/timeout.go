// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// AnswerTimeout is how long an instance may take to answer. Hurried is that time where the cluster's namespace has kept the
	// operator waiting for long already.
	AnswerTimeout      = 2 * time.Second
	ShortAnswerTimeout = 500 * time.Millisecond

	// answerShare is the time that each instance which answered last time adds to what a reconciliation may take for all of them:
	// several times what describing one of a cluster of a thousand costs.
	answerShare = 20 * time.Millisecond
	// mostSilent bounds how many of the instances that did not answer last time are asked again in a reconciliation.
	mostSilent = 32
)

// answer is whether an instance answered when it was asked last. An image may accept connections and never answer: such
// instances must not hold up those that do.
type answer struct {
	given bool
	asked time.Time
}

// round is whom one reconciliation asks, in this order: who answered last time, who was not asked yet, and then, beside those, some of
// the silent, whoever was asked longest ago first.
type round struct {
	first, silent []*snapshot.Instance
	// answered is how many of the first answered last time.
	answered int
}

// round divides the instances that run.
func (m *Memory) round(s *snapshot.Snapshot) round {
	var r round
	var fresh []*snapshot.Instance
	known := m.answers
	for i := range s.Instances {
		in := &s.Instances[i]
		last, asked := known[in.UID]
		switch {
		case in.Waiting != "":
		case !asked:
			fresh = append(fresh, in)
		case last.given:
			r.first = append(r.first, in)
		default:
			r.silent = append(r.silent, in)
		}
	}
	r.answered = len(r.first)
	r.first = append(r.first, fresh...)
	slices.SortStableFunc(r.silent, func(a, b *snapshot.Instance) int { return known[a.UID].asked.Compare(known[b.UID].asked) })
	r.silent = r.silent[:min(len(r.silent), mostSilent)]
	return r
}

// within is how long the round may take, given how long an instance may.
func (r round) within(timeout time.Duration) time.Duration {
	return 2*timeout + time.Duration(r.answered)*answerShare
}

// noteAnswers remembers which of those that were asked answered in time. Of pods that are gone nothing is kept.
func (m *Memory) noteAnswers(s *snapshot.Snapshot, asked map[string]bool, now time.Time) {
	after := map[string]answer{}
	for i := range s.Instances {
		in := &s.Instances[i]
		if given, ok := asked[in.UID]; ok {
			after[in.UID] = answer{given: given, asked: now}
		} else if last, ok := m.answers[in.UID]; ok {
			after[in.UID] = last
		}
	}
	m.answers = after
}

// held is how long instances kept a reconciliation waiting beyond what asking those that answer takes.
func held(took time.Duration, answered int) time.Duration {
	const ordinary, each = 250 * time.Millisecond, 5 * time.Millisecond
	return max(0, took-ordinary-time.Duration(answered)*each)
}
