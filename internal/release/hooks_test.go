// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/chart"
)

// How far the hooks are counts only for the release that they ran for; one that is being deleted has no other.
func TestWhichRunProgressIsOf(t *testing.T) {
	for _, tt := range []struct {
		of       string
		revision int64
		digest   string
		event    hookEvent
		want     bool
	}{
		{"pre-install", 1, "d", preInstall, true}, {"pre-install", 2, "d", preInstall, false}, {"pre-install", 1, "e", preInstall, false},
		{"post-install", 1, "d", preInstall, false}, {"pre-delete", 2, "e", preDelete, true}, {"post-delete", 2, "e", postDelete, true},
		{"pre-delete", 1, "d", postDelete, false}, {"post-upgrade", 2, "e", postUpgrade, false},
	} {
		if got := (Progress{Event: tt.of, Revision: tt.revision, Digest: tt.digest}).of(tt.event, 1, "d"); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}

func TestTimeoutOfAHook(t *testing.T) {
	for text, want := range map[string]time.Duration{"20m": 20 * time.Minute, "": hookTimeout, "0s": hookTimeout, "-1m": hookTimeout,
		"soon": hookTimeout} {
		hook := job(t, "a")
		hook.Object.SetAnnotations(map[string]string{HookTimeoutAnnotation: text})
		if got := (NextHook{Hook: hook}).timeout(); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// The hook whose turn it is, in every situation of a release.
func TestNextHook(t *testing.T) {
	all := []chart.Hook{job(t, "in", "pre-install"), job(t, "after", "post-install", "post-upgrade"), job(t, "up", "pre-upgrade"),
		job(t, "bye", "pre-delete"), job(t, "late", "post-delete")}
	rendered := &chart.Rendered{Hooks: all}
	invalid := field.ErrorList{field.Required(field.NewPath("spec"), "x")}
	deployed, going := Deployed{Name: "web", Revision: 1, Digest: "d"}, []string{Finalizer}
	for name, tt := range map[string]struct {
		desired Desired
		seen    Snapshot
		want    string
	}{
		"a new release":       {Desired{Digest: "d", Revision: 1, Rendered: rendered}, Snapshot{}, "in"},
		"an upgrade":          {Desired{Digest: "e", Revision: 2, Rendered: rendered}, Snapshot{Deployed: deployed}, "up"},
		"it is invalid":       {Desired{Digest: "d", Revision: 1, Rendered: rendered, Invalid: invalid}, Snapshot{}, ""},
		"nothing is rendered": {Desired{Digest: "d", Revision: 1}, Snapshot{}, ""},
		"it is paused":        {Desired{Digest: "d", Revision: 1, Rendered: rendered}, Snapshot{Paused: true}, ""},
		"nothing to do":       {Desired{Digest: "d", Revision: 1, Rendered: rendered}, Snapshot{Deployed: deployed}, ""},
		"after an installation": {Desired{Digest: "d", Revision: 1, Rendered: rendered}, Snapshot{Deployed: deployed,
			Hooks: Progress{Event: "post-install"}}, "after"},
		"after an upgrade": {Desired{Digest: "d", Revision: 1, Rendered: rendered}, Snapshot{Deployed: deployed,
			Hooks: Progress{Event: "post-upgrade"}}, "after"},
		"progress that is none of these": {Desired{Digest: "d", Revision: 1, Rendered: rendered}, Snapshot{Deployed: deployed,
			Hooks: Progress{Event: "post-delete"}}, ""},
		"a deletion":                      {Desired{Rendered: rendered}, Snapshot{Deleting: true, Finalizers: going, Deployed: deployed}, "bye"},
		"a deletion of what is invalid":   {Desired{Rendered: rendered, Invalid: invalid}, Snapshot{Deleting: true, Finalizers: going, Deployed: deployed}, "bye"},
		"a deletion that is paused":       {Desired{Rendered: rendered}, Snapshot{Deleting: true, Paused: true, Finalizers: going, Deployed: deployed}, "bye"},
		"a deletion without a finalizer":  {Desired{Rendered: rendered}, Snapshot{Deleting: true, Deployed: deployed}, ""},
		"a deletion of nothing":           {Desired{Rendered: rendered}, Snapshot{Deleting: true, Finalizers: going}, ""},
		"a deletion of another's release": {Desired{Rendered: rendered}, Snapshot{Deleting: true, Finalizers: going, Former: &Former{Revision: 1}}, "bye"},
		"a deletion of a namespace":       {Desired{Rendered: rendered}, Snapshot{Deleting: true, Terminating: true, Finalizers: going, Deployed: deployed}, ""},
		"the end of a deletion": {Desired{Rendered: rendered}, Snapshot{Deleting: true, Finalizers: going, Deployed: deployed,
			Hooks: Progress{Event: "post-delete"}}, "late"},
		"all of the event have run": {Desired{Digest: "d", Revision: 1, Rendered: rendered},
			Snapshot{Hooks: Progress{Event: "pre-install", Revision: 1, Digest: "d", Completed: 1}}, ""},
	} {
		got := ""
		if next := nextHook(tt.desired, tt.seen); next != nil {
			got = next.Object.GetName()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if hooksOf(Desired{}, preInstall) != nil {
		t.Error("nothing is rendered")
	}
	deleting := Snapshot{Deleting: true, Deployed: deployed, Hooks: Progress{Event: "pre-upgrade"}}
	if progressOf(Desired{Digest: "d"}, deleting) != deleting.Hooks {
		t.Error("of a release that is being deleted nothing is taken back")
	}
	taken := Snapshot{Deployed: deployed, Hooks: Progress{Event: "pre-install"}}
	if progressOf(Desired{Digest: "d"}, taken) != (Progress{}) {
		t.Error("a change that was taken back has no progress")
	}
}

// A failure that a success followed holds nothing up.
func TestAHookAfterASuccessIsNotHeldUp(t *testing.T) {
	desired := Desired{Digest: "d", Revision: 1, Rendered: &chart.Rendered{Hooks: []chart.Hook{job(t, "a", "pre-install")}}}
	for failures, want := range map[int64]string{0: "release.StartHook", 1: "release.AwaitHook"} {
		seen := Snapshot{Hooks: Progress{Event: "pre-install", Revision: 1, Digest: "d", Failures: failures, FailedAt: now}}
		if got := fmt.Sprintf("%T", planHook(desired, seen, now)); got != want {
			t.Errorf("%d failures: %s", failures, got)
		}
	}
	for failures, want := range map[int64]time.Duration{0: hookRetryFirst, 1: hookRetryFirst, 2: 2 * hookRetryFirst, 3: 4 * hookRetryFirst,
		6: 32 * hookRetryFirst, 7: hookRetryMost, 1000: hookRetryMost} {
		if got := retryHookAfter(failures); got != want {
			t.Errorf("after %d failures: %s", failures, got)
		}
	}
}

// Of Jobs and Pods the end is awaited; everything else has ended once it exists.
func TestTheEndOfAHook(t *testing.T) {
	const job, pod = "{apiVersion: batch/v1, kind: Job, status: ", "{apiVersion: v1, kind: Pod, status: "
	for text, want := range map[string]struct {
		ended   bool
		failure string
	}{
		job + "{}}": {false, ""},
		job + "{conditions: [{type: Failed, status: 'False'}]}}":                       {false, ""},
		job + "{conditions: [{type: Complete, status: 'False'}]}}":                     {false, ""},
		job + "{conditions: [{type: Complete, status: 'True'}]}}":                      {true, ""},
		job + "{conditions: [{type: Failed, status: 'True', reason: R, message: m}]}}": {true, "R: m"},
		pod + "{phase: Running}}":                                                      {false, ""},
		pod + "{phase: Succeeded}}":                                                    {true, ""},
		pod + "{phase: Failed, message: evicted}}":                                     {true, "the pod failed evicted"},
		"{apiVersion: v1, kind: ConfigMap}":                                            {true, ""},
	} {
		if ended, failure := hookEnded(parse(t, text)); ended != want.ended || failure != want.failure {
			t.Errorf("%s: %t, %q", text, ended, failure)
		}
	}
}
