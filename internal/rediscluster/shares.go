// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"sync"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/observe"
)

// What a namespace may take of the workers. Instances run images of their authors: they may accept connections and never
// answer, and a worker waits for them meanwhile.
const (
	// credit is how long the clusters of a namespace may keep workers waiting; a tenth of the time that passes is given back.
	// Who has used more than mostUsed owes no more than that.
	credit   = 10 * time.Second
	mostUsed = 3 * credit
	giveBack = 10
	// turnedAway is when to ask again for a worker.
	turnedAway = 200 * time.Millisecond
	// stillWaiting is how long a namespace that was turned away keeps its place.
	stillWaiting = 5 * turnedAway
)

// shares divides the workers of the controller among namespaces:
//
//   - One namespace never has all of them: a quarter is left to others.
//   - Namespaces that have used up their credit share half of them, a quarter of all for each at the most, and the one that
//     has waited longest comes first. Their instances are given less time to answer.
//
// So a cluster whose namespace has credit finds a worker, whatever the instances of others do. It is safe for concurrent use.
type shares struct {
	workers int

	mu sync.Mutex
	// of are the namespaces that have a reconciliation under way, have used credit, or wait.
	of map[string]*share
	// indebted is how many reconciliations of namespaces without credit are under way.
	indebted int
}

// share is what one namespace has of the workers.
type share struct {
	running      int
	used         time.Duration
	usedAt       time.Time
	waiting      bool
	since, asked time.Time
}

// turn is one reconciliation that was let in.
type turn struct {
	namespace string
	// indebted reports whether the namespace has no credit left.
	indebted bool
	// held is how long instances keep the reconciliation waiting.
	held time.Duration
}

// timeout is how long an instance may take to answer.
func (t *turn) timeout() time.Duration {
	if t.indebted {
		return observe.ShortAnswerTimeout
	}
	return observe.AnswerTimeout
}

// soonest is how soon a cluster is looked at again that waits for something.
func (t *turn) soonest() time.Duration {
	if t.indebted {
		return time.Second
	}
	return 0
}

// enter lets a reconciliation of a namespace begin; nil means not yet.
func (s *shares) enter(namespace string, now time.Time) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]*share{}
	}
	own := s.of[namespace]
	if own == nil {
		own = &share{usedAt: now, since: now}
		s.of[namespace] = own
	}
	own.repay(now)
	t := &turn{namespace: namespace, indebted: own.used > credit}
	free := own.running < max(1, s.workers-s.quarter())
	if t.indebted {
		free = own.running < s.quarter() && s.indebted+s.before(own, now) < max(1, s.workers/2)
	}
	if !free {
		if !own.waiting {
			own.waiting, own.since = true, now
		}
		own.asked = now
		return nil
	}
	own.waiting = false
	own.running++
	if t.indebted {
		s.indebted++
	}
	return t
}

func (s *shares) quarter() int { return max(1, s.workers/4) }

// before is how many namespaces without credit have waited longer than one, for a worker that they may have.
func (s *shares) before(own *share, now time.Time) int {
	n := 0
	for _, other := range s.of {
		longer := !own.waiting || other.since.Before(own.since)
		if other != own && other.waiting && other.running < s.quarter() && other.used > credit && longer && now.Sub(other.asked) < stillWaiting {
			n++
		}
	}
	return n
}

// leave ends a reconciliation.
func (s *shares) leave(t *turn, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[t.namespace]
	own.repay(now)
	own.used = min(own.used+t.held, mostUsed)
	own.running--
	if t.indebted {
		s.indebted--
	}
	for namespace, other := range s.of {
		other.repay(now)
		if other.running == 0 && other.used == 0 && (!other.waiting || now.Sub(other.asked) >= stillWaiting) {
			delete(s.of, namespace)
		}
	}
}

// repay gives credit back for the time that has passed.
func (s *share) repay(now time.Time) {
	s.used = max(0, s.used-now.Sub(s.usedAt)/giveBack)
	s.usedAt = now
}
