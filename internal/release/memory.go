// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/fleet"
)

// memory is what is remembered about one resource between reconciliations. Losing it costs little: what was applied is recalled from the
// status.
type memory struct {
	begun        bool   // this process has seen the resource
	applied      string // digest of the rendering that was applied completely
	historyTried bool   // this process tried to record the current revision
	// historyTrimmed reports whether records beyond the length of Helm's history were looked for.
	historyTrimmed bool
	// unclaimed reports whether the resource was seen without a sign of a former operator: the finalizer that it has now is ours.
	unclaimed bool
	// rendered is what the chart gave for a digest and a revision, as long as it may be needed again: trying again must not
	// make other passwords, and the next hook of a release need not render it anew.
	rendered *chart.Rendered
	digest   string
	revision int64
	// deployed reports whether that rendering was applied completely.
	deployed bool
	// looked is what lookup told the last rendering.
	looked *looked
	// diagnosed is when the pods of children that are not ready were last looked at, and how long after to look again.
	diagnosed time.Time
	backoff   time.Duration
	why       map[types.UID]string
	// told is what was told of the others while it waits for its turn.
	told fleet.Told
}
