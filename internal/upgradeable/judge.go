// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeable tells OLM when it may replace the operator by another version: not while a RedisCluster moves slots, changes
// its size or rolls. The operator takes up half-done work wherever it was left, so this is caution, and it is bounded: work that gets
// nowhere holds nothing up, because a new version may be what it waits for.
package upgradeable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits are how long things may take.
type Limits struct {
	// Progress is how long a cluster may work without getting any further before it no longer counts.
	Progress time.Duration
	// Calm is how long no cluster may have worked before the operator says so: between two instances of a roll, and between two steps
	// of a scaling, a cluster is at rest for a moment.
	Calm time.Duration
}

// DefaultLimits are generous: OLM's upgrades are not urgent.
func DefaultLimits() Limits { return Limits{Progress: 30 * time.Minute, Calm: time.Minute} }

// Verdict is the condition Upgradeable.
type Verdict struct {
	Status metav1.ConditionStatus
	// Reason is the Work that holds an upgrade up, or one of the two below.
	Reason, Message string
}

// Reasons for which Upgradeable is True.
const (
	// ReasonAtRest is the reason when no cluster works.
	ReasonAtRest = "AtRest"
	// ReasonNoProgress is the reason when those that work have not got any further for too long.
	ReasonNoProgress = "NoProgress"
)

// judge decides from what clusters do now and did before. The zero value but for its limits is ready.
type judge struct {
	limits Limits

	since map[types.UID]standstill
	held  Verdict   // the verdict that holds upgrades up, and for a calm time after its cause has gone; else zero
	calm  time.Time // since when its cause has been gone; zero while it has not
}

// standstill is how a cluster was when it last got any further, and when that was seen.
type standstill struct {
	activity Activity
	at       time.Time
}

// verdict returns the verdict on these activities, which are those of all clusters, and after which time to ask again although nothing
// was heard; 0 means never.
func (j *judge) verdict(activities []Activity, now time.Time) (Verdict, time.Duration) {
	working := slices.DeleteFunc(slices.Clone(activities), func(a Activity) bool { return a.Work == NoWork })
	slices.SortFunc(working, func(a, b Activity) int { return strings.Compare(a.Cluster.String(), b.Cluster.String()) })
	j.remember(working, now)
	stuck := func(a Activity) bool { return now.Sub(j.since[a.UID].at) >= j.limits.Progress }
	moving := slices.DeleteFunc(slices.Clone(working), stuck)
	if len(moving) > 0 {
		j.held, j.calm = hold(moving), time.Time{}
		return j.held, j.limits.Progress / 10
	}
	if j.calm.IsZero() {
		j.calm = now
	}
	if left := j.calm.Add(j.limits.Calm).Sub(now); left > 0 && j.held != (Verdict{}) {
		return j.held, left
	}
	j.held = Verdict{}
	if len(working) > 0 { // asked again because they may get on after all
		message := fmt.Sprintf("no longer waiting, for want of progress in %v: %s", j.limits.Progress, list(working))
		return Verdict{metav1.ConditionTrue, ReasonNoProgress, message}, j.limits.Progress / 10
	}
	return Verdict{metav1.ConditionTrue, ReasonAtRest, "no RedisCluster moves slots, changes its size or rolls"}, 0
}

// remember notes for each cluster at work since when it has been as it is.
func (j *judge) remember(working []Activity, now time.Time) {
	since := make(map[types.UID]standstill, len(working))
	for _, a := range working {
		since[a.UID] = standstill{a, now}
		if before, known := j.since[a.UID]; known && before.activity == a {
			since[a.UID] = before
		}
	}
	j.since = since
}

// hold is the verdict while clusters work; the most delicate work is the reason.
func hold(working []Activity) Verdict {
	order := []Work{MovingSlots, Scaling, RollingOut}
	first := slices.MinFunc(working, func(a, b Activity) int { return cmp.Compare(slices.Index(order, a.Work), slices.Index(order, b.Work)) })
	return Verdict{metav1.ConditionFalse, string(first.Work), "waiting until RedisClusters are at rest: " + list(working)}
}

// named is how many clusters a message names.
const named = 3

func list(working []Activity) string {
	var parts []string
	for _, a := range working[:min(named, len(working))] {
		parts = append(parts, a.String())
	}
	if more := len(working) - named; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
