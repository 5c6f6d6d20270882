// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"time"

	"middleware.hc.cn/operator/internal/redis"
)

// refusals is since when the user of an archive has lacked a right. An instance that has just started is told of some a moment later, which
// is no reason to end.
type refusals struct {
	since   time.Time // zero: all has been permitted
	atMark  bool      // it was refused for a mark, whose rights are asked for by nothing else
	trusted bool      // not always was something refused
}

// stay reports whether an outcome is a refusal that has lasted for longer than within, or has been there from the beginning. marking: a
// mark was being set.
func (r *refusals) stay(err error, marking bool, within time.Duration, now time.Time) bool {
	if !errors.Is(err, redis.ErrAuth) {
		r.trusted = true
		if err == nil && (marking || !r.atMark) {
			r.since = time.Time{}
		}
		return false
	}
	if r.since.IsZero() {
		r.since, r.atMark = now, marking
	}
	return !r.trusted || now.Sub(r.since) > within
}
