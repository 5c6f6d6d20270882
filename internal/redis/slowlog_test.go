// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"math"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The number of the last slow command says how many there were; what is no number says nothing, and is no reason not to believe the rest.
func TestReadSlowlog(t *testing.T) {
	for name, tt := range map[string]struct {
		answer any
		want   int64
	}{
		"none":                 {[]any{}, 0},
		"the first":            {[]any{[]any{int64(0), int64(1), int64(2)}}, 1},
		"many before":          {[]any{[]any{int64(41)}}, 42},
		"a number as text":     {[]any{[]any{"41"}}, -1},
		"below nothing":        {[]any{[]any{int64(-1)}}, -1},
		"one too many":         {[]any{[]any{int64(math.MaxInt64)}}, -1},
		"an entry of nothing":  {[]any{[]any{}}, -1},
		"no entry":             {[]any{"entry"}, -1},
		"no list":              {"entry", -1},
		"a list within a list": {[]any{[]any{[]any{int64(1)}}}, -1},
	} {
		answer := redis.NewCmd(t.Context())
		answer.SetVal(tt.answer)
		view := View{SlowCommands: -1}
		if err := readSlowlog(&view, answer); err != nil || view.SlowCommands != tt.want {
			t.Errorf("%s: %d, %v; want %d", name, view.SlowCommands, err, tt.want)
		}
	}
}
