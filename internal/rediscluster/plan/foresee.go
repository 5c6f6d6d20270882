// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Foresee is which slots would move if a formed cluster that owns what the snapshot says were asked for this. Masters that do not exist
// yet are in the snapshot without slots. known is false when the snapshot does not say for certain who owns what; the error says what of
// the desire cannot be. Whether the data would fit is not looked at.
func Foresee(d Desired, s *snapshot.Snapshot, now time.Time) (moves []Move, known bool, err error) {
	if len(d.Problems) > 0 || len(d.Topology) == 0 {
		return nil, false, nil
	}
	in := ShapeOf(d, s, now).in
	goal, err := in.goal()
	switch {
	case errors.Is(err, errUncertain):
		return nil, false, nil
	case err != nil:
		return nil, true, err
	case goal == nil:
		return nil, true, nil
	}
	return in.moves(goal), true, nil
}
