// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// What has just begun is looked at soon, what lasts more and more seldom, and a new reason begins anew.
func TestWait(t *testing.T) {
	const soon, most = 100 * time.Millisecond, 10 * time.Second
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var p wait
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
		if got := p.next(tt.reason, soon, most, start.Add(tt.at)); got != tt.want {
			t.Errorf("after %s, %q: %s, want %s", tt.at, tt.reason, got, tt.want)
		}
	}
	if got := p.next("x", soon, soon/2, start); got != soon {
		t.Errorf("a poll interval that is shorter than the first look makes it %s", got)
	}
}

// A step that was refused is told, and holds back what the spec asks for, until it is tried again or the spec changes. Children
// that were applied and had been as rendered are not applied again before the cache can show it.
func TestWhatAStepToldIsRemembered(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clock := start
	l := &Loop{RetryRefused: 10 * time.Second, Now: func() time.Time { return clock }}
	c := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	pending := plan.Pending{Children: []string{"Service c"}}
	for name, tt := range map[string]struct {
		step        plan.Step
		acted       bool
		err         error
		again       bool
		then, later string // what is refused, or else pending
		generation  int64
		comesBack   time.Duration // after which the next reconciliation begins
	}{
		"refused": {step: plan.ApplyChildren{}, acted: true, err: &act.StallError{Cause: "NameTaken"}, again: true, then: "NameTaken",
			later: "Service c"},
		"and told late": {step: plan.ApplyChildren{}, acted: true, err: &act.StallError{Cause: "NameTaken"}, again: true,
			comesBack: time.Hour, then: "NameTaken", later: "Service c"},
		"and a spec changed": {step: plan.ApplyChildren{}, acted: true, err: &act.StallError{Cause: "NameTaken"}, again: true, generation: 2,
			then: "Service c", later: "Service c"},
		"were as rendered":    {step: plan.ApplyChildren{}, again: true, then: "", later: ""},
		"failed":              {step: plan.ApplyChildren{}, err: errors.New("timeout"), then: "Service c", later: "Service c"},
		"applied":             {step: plan.ApplyChildren{}, acted: true, then: "Service c", later: "Service c"},
		"another did nothing": {step: plan.SetConfig{}, then: "Service c", later: "Service c"},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			clock = start
			if again := m.note(c, tt.step, pending, act.Result{Acted: tt.acted}, tt.err, l.Now()); again != tt.again {
				t.Errorf("again: %t, want %t", again, tt.again)
			}
			c := c.DeepCopy()
			c.Generation += max(tt.generation-1, 0)
			for _, after := range []time.Duration{0, l.RetryRefused - 1, l.RetryRefused} {
				want := tt.then
				if after == l.RetryRefused {
					want = tt.later
				}
				clock = start.Add(tt.comesBack + after)
				got := m.known(c, pending, l.Now(), l.RetryRefused)
				is := strings.Join(got.Children, " ")
				if got.Refused != nil {
					is = got.Refused.Cause
				}
				if after == l.RetryRefused && tt.then == "" {
					want = "Service c"
				}
				if is != want {
					t.Errorf("after %s: %q, want %q", after, is, want)
				}
			}
		})
	}
}

// Stopping all instances is not tried again and again while the cache does not show it.
func TestHibernationWaitsForTheCache(t *testing.T) {
	var m Memory
	pending := plan.Pending{Children: []string{"StatefulSet c-0"}}
	for i, want := range []bool{true, false, false} {
		if again := m.note(&v1alpha1.RedisCluster{}, plan.Hibernate{}, pending, act.Result{}, nil, time.Unix(100, 0)); again != want {
			t.Errorf("pass %d: again %t", i, again)
		}
	}
}

// Claims that could not be expanded for the data are tried again after a while, with another spec at once, and forgotten once they could.
func TestClaimsThatAreNotExpanded(t *testing.T) {
	clock, m, c := time.Unix(0, 0), &Memory{}, &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	wants := func(when, message string, later bool) {
		t.Helper()
		if got := m.known(c, plan.Pending{}, clock, time.Hour); got.NotGrown != message || got.GrowsLater != later || got.Refused != nil {
			t.Errorf("%s: %+v", when, got)
		}
	}
	tried := func(err error) bool {
		return m.note(c, plan.ExpandPVCs{ByData: true}, plan.Pending{}, act.Result{}, err, clock)
	}
	if wants("at first", "", false); !tried(fmt.Errorf("expand: %w", &act.NotGrownError{Message: "no"})) {
		t.Error("it is an error of the reconciliation")
	}
	wants("refused", "no", true)
	clock = clock.Add(growAgain)
	wants("after a while", "no", false)
	tried(&act.NotGrownError{Message: "not yet"})
	wants("refused again", "not yet", true)
	c.Generation++
	wants("another spec", "", false)
	tried(&act.NotGrownError{Message: "no"})
	clock = clock.Add(growAgain)
	if tried(nil) {
		t.Error("nothing else is done after it")
	}
	wants("expanded", "", false)
}

// What is refused of what is made for clients outside is left alone for a while, longer each time, and all else that is pending is not;
// a change of the spec has it tried at once, and so is nothing told of what is not asked for any more.
func TestWhatIsRefusedOutside(t *testing.T) {
	clock, m, c := time.Unix(0, 0), &Memory{}, &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	compared := func() Comparison {
		of := Comparison{Pending: plan.Pending{Children: []string{"ConfigMap c", "Service c-gateway"}}}
		m.apart(c, &of, clock)
		return of
	}
	tried := func(refused *act.RefusedOutside) {
		m.note(c, plan.ApplyChildren{}, plan.Pending{}, act.Result{Acted: true, Outside: refused}, nil, clock)
	}
	for _, wait := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		tried(&act.RefusedOutside{Message: "no", Person: true})
		clock = clock.Add(wait - 1)
		if got := compared(); !slices.Equal(got.Pending.Children, []string{"ConfigMap c"}) || got.Outside.Refused != "no" ||
			got.Pending.Outside != "no" {
			t.Errorf("before %s: %+v", wait, got)
		}
		clock = clock.Add(1)
		if got := compared(); len(got.Pending.Children) != 2 || got.Outside.Refused != "no" {
			t.Errorf("after %s: %+v", wait, got)
		}
	}
	tried(&act.RefusedOutside{Message: "later"})
	if got := compared(); got.Pending.Outside != "" || got.Outside.Refused != "later" {
		t.Errorf("nobody has to change anything, and it is told: %+v", got)
	}
	c.Generation++
	if got := compared(); len(got.Pending.Children) != 2 || got.Outside.Refused != "" {
		t.Errorf("the spec is another: %+v", got)
	}
	tried(&act.RefusedOutside{Message: "no"})
	clock = clock.Add(time.Hour)
	tried(nil)
	if got := compared(); len(got.Pending.Children) != 2 || got.Outside.Refused != "" {
		t.Errorf("it was taken: %+v", got)
	}
}
