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
	for what, tt := range map[string]struct {
		outcomes []outcome
		ends     int // by which of them; -1: by none
	}{
		"at once":      {[]outcome{{0, refused, false}}, 0},
		"no answer":    {[]outcome{{0, slow, false}, {time.Hour, slow, true}}, -1},
		"for a moment": {[]outcome{{0, nil, true}, {time.Second, refused, false}, {time.Second, nil, false}}, -1},
		"it lasts":     {[]outcome{{0, nil, true}, {time.Second, refused, false}, {59 * time.Second, refused, false}, {2 * time.Second, refused, false}}, 3},
		"twice":        {[]outcome{{0, nil, true}, {time.Second, refused, false}, {time.Second, nil, false}, {59 * time.Second, refused, false}}, -1},
		"between answers": {[]outcome{{0, nil, true}, {time.Second, refused, false}, {30 * time.Second, slow, false},
			{31 * time.Second, refused, false}}, 3},
		"at marks alone": {[]outcome{{0, nil, false}, {time.Second, refused, true}, {5 * time.Second, nil, false}, {56 * time.Second, refused, true}}, 3},
		"at one mark":    {[]outcome{{0, nil, false}, {time.Second, refused, true}, {30 * time.Second, nil, true}, {31 * time.Second, refused, true}}, -1},
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
