// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"reflect"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/balance"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// tellAgain is for how long figures are told that have changed meanwhile: a load that goes to and fro would have the status written at
// every look.
const tellAgain = 5 * time.Minute

// told is what was last told of figures. The zero value has told nothing.
type told[T any] struct {
	at      time.Time
	figures T
}

// tell returns what is to be told of figures. What changes after it has not for long is told at once, and so is what is news.
func (t *told[T]) tell(now time.Time, figures T, news func(was, is T) bool) T {
	recent := now.Sub(t.at) >= 0 && now.Sub(t.at) < tellAgain
	if !reflect.DeepEqual(figures, t.figures) && (!recent || news(t.figures, figures)) {
		*t = told[T]{at: now, figures: figures}
	}
	return t.figures
}

// tellScaling returns what is to be told of an autoscaling, with what is to be done.
func tellScaling(t *told[status.Autoscaling], now time.Time, is status.Autoscaling) status.Autoscaling {
	to, outgrown := is.Outcome.To, is.Outcome.Outgrown
	is.Outcome.To, is.Outcome.Outgrown = 0, nil
	is = t.tell(now, is, func(was, is status.Autoscaling) bool {
		return was.Shards != is.Shards || was.Bounds != is.Bounds || was.Outcome.Known != is.Outcome.Known
	})
	is.Outcome.To, is.Outcome.Outgrown = to, outgrown
	return is
}

// tellBalance returns what is to be told of how evenly shards bear the load, with what is to be done.
func tellBalance(t *told[balance.Outcome], now time.Time, o balance.Outcome) balance.Outcome {
	goal, count, bytes := o.Goal, o.Count, o.Bytes
	o.Goal, o.Count, o.Bytes = nil, 0, 0
	o = t.tell(now, o, func(was, is balance.Outcome) bool { return was.Known != is.Known })
	o.Goal, o.Count, o.Bytes = goal, count, bytes
	return o
}
