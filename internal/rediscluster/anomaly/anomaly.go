// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds what serves clients still, and is not healthy. It is pure, and nothing is done about what it finds: the
// remedies need a person.
package anomaly

import (
	"cmp"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// most bounds the figures in messages, whatever an instance tells.
const most = 1e15

// Anomaly is something that is not healthy.
type Anomaly struct {
	// Reason is one of Reasons, Of the instance or the shard.
	Reason, Of string
	// Message says what was seen when it began, and what helps. It stays the same as long as it lasts.
	Message string
	Since   time.Time
}

// History is what is remembered of a cluster from one look to the next: some figures of each instance, and who the masters were. The zero
// value has seen nothing.
type History struct {
	// since is when the first look was.
	since     time.Time
	instances map[string]instance // by the UID of the pod
	shards    map[int]shard
	// planned is the node ID of whom the operator has made a master because it wanted to, until it is seen to be one.
	planned string
}

// instance is what is remembered of one instance.
type instance struct {
	counted  counted
	signs    map[string]course // by reason
	restarts restarts
}

// course is what has become of a sign. It is suspected since a time, and then an anomaly until it is well.
type course struct {
	suspected time.Time
	anomaly   *Anomaly
}

// Planned notes that an instance becomes a master because the operator wants it to.
func (h *History) Planned(nodeID string) { h.planned = nodeID }

// Next is the history after a look at a cluster, and what is not healthy, by instance and then by shard. Of an instance that does
// not answer nothing new is known but from its pod.
func (h History) Next(s *snapshot.Snapshot, now time.Time) (History, []Anomaly) {
	next := History{since: cmp.Or(h.since, now), instances: make(map[string]instance, len(s.Instances))}
	usual := usualAnswer(s)
	var found []Anomaly
	for i := range s.Instances {
		in := &s.Instances[i]
		is, known := h.instances[in.UID]
		is.restarts = is.restarts.next(in, known, now)
		if in.Redis != nil {
			is = is.next(look{in: in, snap: s, usual: usual, now: now})
		}
		next.instances[in.UID] = is
		for _, sign := range signs {
			if a := is.signs[sign.reason].anomaly; a != nil {
				found = append(found, *a)
			}
		}
		if a := is.restarts.anomaly; a != nil {
			found = append(found, *a)
		}
	}
	next.shards, next.planned = successions(h, s, now)
	return next, append(found, failingOver(next.shards)...)
}

// Young reports whether too little has been seen to say that nothing is wrong: the operator has begun just now.
func (h History) Young(now time.Time) bool { return now.Sub(h.since) < longest() }

// longest is for how long a sign lasts before it is an anomaly, at the most.
func longest() time.Duration {
	return slices.MaxFunc(signs, func(a, b sign) int { return cmp.Compare(a.lasts, b.lasts) }).lasts
}

// next is what is remembered after a look.
func (is instance) next(l look) instance {
	l.counted = is.counted.next(l.in.Redis, l.now)
	next := instance{counted: l.counted, restarts: is.restarts}
	for _, sign := range signs {
		if c := sign.next(is.signs[sign.reason], l); c != (course{}) {
			if next.signs == nil {
				next.signs = map[string]course{} // there is none of almost all instances
			}
			next.signs[sign.reason] = c
		}
	}
	return next
}

// next is what becomes of a sign after a look. A value between begins and ends leaves it as it is.
func (s sign) next(c course, l look) course {
	value := min(s.value(l), most)
	switch {
	case value < 0:
		return course{anomaly: c.anomaly} // it is not known
	case c.anomaly != nil && value >= s.ends:
		return c
	case value < s.begins:
		return course{}
	}
	c.suspected = cmp.Or(c.suspected, l.now)
	if l.now.Sub(c.suspected) < s.lasts {
		return c
	}
	return course{anomaly: &Anomaly{Reason: s.reason, Of: l.in.Name, Message: s.message(l, value), Since: l.now}}
}
