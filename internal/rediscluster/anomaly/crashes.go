// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// CrashLooping is the reason of an instance whose container ends again and again.
const CrashLooping = "CrashLooping"

const (
	// crashes are an anomaly when there are so many within the last hour.
	crashes       = 3
	crashesWithin = time.Hour
	// mostCrashes is how many are remembered of an instance.
	mostCrashes = 8
)

// restarts are how often the kubelet has started the container of an instance again, and when it was seen to.
type restarts struct {
	count   int32
	at      []time.Time
	anomaly *Anomaly
}

// next is what is remembered after a look; of an instance that was not known, nothing of the time before.
func (r restarts) next(in *snapshot.Instance, known bool, now time.Time) restarts {
	r.at = slices.DeleteFunc(slices.Clone(r.at), func(at time.Time) bool { return now.Sub(at) >= crashesWithin })
	if known {
		for range min(in.Restarts-r.count, mostCrashes) {
			r.at = append(r.at, now)
		}
		r.at = r.at[max(0, len(r.at)-mostCrashes):]
	}
	r.count = in.Restarts
	switch {
	case len(r.at) < crashes:
		r.anomaly = nil
	case r.anomaly == nil:
		why := ""
		if in.LastEnd != "" {
			why = " (" + in.LastEnd + ")"
		}
		r.anomaly = &Anomaly{Reason: CrashLooping, Of: in.Name, Since: now, Message: fmt.Sprintf(
			"its container has ended %d times within an hour%s: kubectl logs -p has what it logged; kubectl "+
				"middleware fence keeps another instance the master of its shard meanwhile",
			len(r.at), why)}
	}
	return r
}
