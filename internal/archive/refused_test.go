// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
)

// A right that is refused now and then, as by instances that have just started, ends no archive; one that stays refused does, also when
// only marks need it.
func TestRefusals(t *testing.T) {
	refused, slow := redis.ErrAuth, errors.New("no answer")
	type outcome struct {
		after   time.Duration
		err     error
		marking bool
	}
	const second = time.Second
	well, wellAtMark := outcome{0, nil, false}, outcome{0, nil, true}
	for what, tt := range map[string]struct {
		outcomes []outcome
		ends     int // by which of them; -1: by none
	}{
		"at once":         {[]outcome{{0, refused, false}}, 0},
		"no answer":       {[]outcome{{0, slow, false}, {time.Hour, slow, true}}, -1},
		"for a moment":    {[]outcome{wellAtMark, {second, refused, false}, {second, nil, false}}, -1},
		"it lasts":        {[]outcome{wellAtMark, {second, refused, false}, {59 * second, refused, false}, {2 * second, refused, false}}, 3},
		"twice":           {[]outcome{wellAtMark, {second, refused, false}, {second, nil, false}, {59 * second, refused, false}, well}, -1},
		"between answers": {[]outcome{wellAtMark, {second, refused, false}, {30 * second, slow, false}, {31 * second, refused, false}}, 3},
		"at marks alone":  {[]outcome{well, {second, refused, true}, {5 * second, nil, false}, {56 * second, refused, true}}, 3},
		"at one mark":     {[]outcome{well, {second, refused, true}, {30 * second, nil, true}, {31 * second, refused, true}}, -1},
	} {
		var r refusals
		at, ends := time.Unix(1e9, 0), -1
		for i, o := range tt.outcomes {
			at = at.Add(o.after)
			if r.stay(o.err, o.marking, time.Minute, at) {
				ends = i
				break
			}
		}
		if ends != tt.ends {
			t.Errorf("%s: it ends at outcome %d, want %d", what, ends, tt.ends)
		}
	}
}
