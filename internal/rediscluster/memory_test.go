// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
)

// What has just begun is looked at soon, what lasts more and more seldom, and a new reason begins anew.
func TestPatience(t *testing.T) {
	const soon, most = 100 * time.Millisecond, 10 * time.Second
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var p patience
	for _, tt := range []struct {
		at     time.Duration
		reason string
		want   time.Duration
	}{
		{0, "is not linked", soon},
		{400 * time.Millisecond, "is not linked", soon},
		{5 * time.Second, "is not linked", time.Second},
		{time.Hour, "is not linked", most},
		{time.Hour, "is not in sync", soon},
		{time.Hour + 10*time.Second, "is not in sync", 2 * time.Second},
		{2 * time.Hour, "is not linked", soon},
	} {
		if got := p.next("uid", tt.reason, soon, most, start.Add(tt.at)); got != tt.want {
			t.Errorf("after %s, %q: %s, want %s", tt.at, tt.reason, got, tt.want)
		}
	}
	if got := p.next("other", "is not linked", soon, most, start.Add(3*time.Hour)); got != soon {
		t.Errorf("another cluster waits %s", got)
	}
	if got := p.next("uid", "x", soon, soon/2, start); got != soon {
		t.Errorf("a poll interval that is shorter than the first look makes it %s", got)
	}
	p.forget("uid")
	if got := p.next("uid", "is not linked", soon, most, start.Add(4*time.Hour)); got != soon {
		t.Errorf("a forgotten cluster waits %s", got)
	}
}

func TestIdentities(t *testing.T) {
	var known identities
	name := types.NamespacedName{Namespace: "n", Name: "c"}
	for _, step := range []struct{ uid, before types.UID }{
		{"first", ""}, {"first", "first"}, {"second", "first"}, {"", "second"}, {"", ""},
	} {
		if before := known.replace(name, step.uid); before != step.before {
			t.Errorf("before %q was %q, want %q", step.uid, before, step.before)
		}
	}
	known.wrote(name, "1", time.Now())
	if len(known.known) > 0 {
		t.Errorf("something is kept of an object that is gone: %v", known.known)
	}
}

// A cache that lags behind the operator's own writes is told by the version, and of the same object only.
func TestBehind(t *testing.T) {
	var known identities
	name, other := types.NamespacedName{Name: "c"}, types.NamespacedName{Name: "d"}
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	behind := func(name types.NamespacedName, version string, after time.Duration) bool {
		_, yes := known.behind(name, version, start.Add(after))
		return yes
	}
	known.replace(name, "uid")
	if behind(name, "99", 0) {
		t.Error("behind before anything was written")
	}
	known.wrote(name, "100", start)
	known.wrote(name, "100", start.Add(apply.Lag/2)) // a later pass that wrote nothing
	if !behind(name, "99", 0) || behind(name, "99", apply.Lag) || behind(name, "100", 0) || behind(other, "99", 0) {
		t.Error("what precedes the operator's own write is not told from what does not")
	}
	known.replace(name, "another")
	if behind(name, "99", 0) {
		t.Error("another object of the name is taken for the former")
	}
}
