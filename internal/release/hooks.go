// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/chart"
)

// hookEvent is Helm's name for a point in the life of a release (https://helm.sh/docs/topics/charts_hooks/). The others that
// Helm knows (test, pre-rollback, post-rollback) do not occur here.
type hookEvent string

const (
	preInstall  hookEvent = "pre-install"
	postInstall hookEvent = "post-install"
	preUpgrade  hookEvent = "pre-upgrade"
	postUpgrade hookEvent = "post-upgrade"
	preDelete   hookEvent = "pre-delete"
	postDelete  hookEvent = "post-delete"
)

const (
	// HookTimeoutAnnotation, on a hook in a chart, is how long it may run, as a Go duration. Default: 5m, as with helm.
	HookTimeoutAnnotation = "middleware.hc.cn/hook-timeout"
	// hookRunAnnotation names the run an object of a hook belongs to, so that the object itself tells how far that run is.
	hookRunAnnotation = "middleware.hc.cn/hook-run"

	hookTimeout = 5 * time.Minute
	// hookPoll is how often a hook that runs is looked at; its end is an event too, unless the watch wants none of children.
	hookPoll = 10 * time.Second
	// A failed hook is tried again after the first time, then after twice as long each, up to the second.
	hookRetryFirst, hookRetryMost = 10 * time.Second, 10 * time.Minute
)

// Progress is how far the hooks of one event are; the status records it as long as they run.
type Progress struct {
	Event    string
	Revision int64
	// Digest is that of the release the hooks run for.
	Digest string
	// Completed hooks of the event have succeeded.
	Completed int64
	// Failures counts the failed runs of the next one, Message and FailedAt are those of the last.
	Failures int64
	Message  string
	FailedAt time.Time
}

// of reports whether the progress is that of a run; the digest of a release that is being deleted does not matter.
func (p Progress) of(event hookEvent, revision int64, digest string) bool {
	deletion := event == preDelete || event == postDelete
	return p.Event == string(event) && (deletion || p.Revision == revision && p.Digest == digest)
}

// NextHook is the hook whose turn it is.
type NextHook struct {
	chart.Hook
	// Progress is that of its event, before it runs.
	Progress Progress
}

func (n NextHook) String() string {
	return fmt.Sprintf("%s hook %s %s", n.Progress.Event, n.Object.GetKind(), n.Object.GetName())
}

// run identifies this run of the hook. Another attempt after a failure is another run.
func (n NextHook) run() string {
	return fmt.Sprintf("%s/%d/%.12s/%d", n.Progress.Event, n.Progress.Revision, n.Progress.Digest, n.Progress.Failures)
}

func (n NextHook) timeout() time.Duration {
	if d, err := time.ParseDuration(n.Object.GetAnnotations()[HookTimeoutAnnotation]); err == nil && d > 0 {
		return d
	}
	return hookTimeout
}

// has reports whether the hook has a delete policy.
func (n NextHook) has(policy string) bool { return slices.Contains(n.DeletePolicies, policy) }

// nextHook returns the hook whose turn it is, nil when none is. It is pure.
func nextHook(desired Desired, seen Snapshot) *NextHook {
	event := dueEvent(desired, seen)
	if event == "" || desired.Rendered == nil || len(desired.Invalid) > 0 && !seen.Deleting {
		return nil
	}
	progress := seen.Hooks
	if !progress.of(event, desired.Revision, desired.Digest) {
		progress = Progress{Event: string(event), Revision: desired.Revision, Digest: desired.Digest}
	}
	due := hooksOf(desired, event)
	if progress.Completed >= int64(len(due)) {
		return nil
	}
	return &NextHook{Hook: due[progress.Completed], Progress: progress}
}

// dueEvent is the event whose hooks come next; empty when none do.
func dueEvent(desired Desired, seen Snapshot) hookEvent {
	switch {
	case seen.Deleting && (len(seen.Finalizers) == 0 || seen.Terminating || seen.Deployed.Digest == "" && seen.Former == nil):
		return "" // nothing of ours was installed, or nothing can be made any more
	case seen.Deleting && seen.Hooks.Event == string(postDelete):
		return postDelete
	case seen.Deleting:
		return preDelete
	case seen.Paused:
		return ""
	case seen.outdated(desired.Digest) && desired.Revision > 1:
		return preUpgrade
	case seen.outdated(desired.Digest):
		return preInstall
	case seen.Hooks.Event == string(postInstall), seen.Hooks.Event == string(postUpgrade):
		return hookEvent(seen.Hooks.Event)
	default:
		return ""
	}
}

// progressOf is how far the hooks are that still count: those of a release that is no longer asked for do not.
func progressOf(desired Desired, seen Snapshot) Progress {
	event := hookEvent(seen.Hooks.Event)
	before := event == preInstall || event == preUpgrade
	if before && !seen.Deleting && !seen.outdated(desired.Digest) {
		return Progress{}
	}
	return seen.Hooks
}

// hooksOf returns the hooks of an event in the order in which they run.
func hooksOf(desired Desired, event hookEvent) []chart.Hook {
	if desired.Rendered == nil || slices.Contains(desired.WithoutHooks, event.action()) {
		return nil
	}
	var due []chart.Hook
	for _, hook := range desired.Rendered.Hooks {
		if slices.Contains(hook.Events, string(event)) {
			due = append(due, hook)
		}
	}
	return due
}

func (e hookEvent) action() string {
	switch e {
	case preInstall, postInstall:
		return "install"
	case preUpgrade, postUpgrade:
		return "upgrade"
	case preDelete, postDelete:
		return "delete"
	}
	return ""
}

// planHook moves the hook whose turn it is one step on.
func planHook(desired Desired, seen Snapshot, now time.Time) Step {
	next := nextHook(desired, seen)
	if next == nil {
		return nil
	}
	if again := next.Progress.FailedAt.Add(retryHookAfter(next.Progress.Failures)); next.Progress.Failures > 0 && now.Before(again) {
		return AwaitHook{Hook: *next, Until: again, Failed: true,
			Message: fmt.Sprintf("%s failed: %s; it is tried again at %s", next, next.Progress.Message, again.UTC().Format(time.TimeOnly))}
	}
	live := seen.Hook
	switch {
	case live == nil:
		return StartHook{Hook: *next}
	case live.GetDeletionTimestamp() != nil:
		return AwaitHook{Hook: *next, Until: now.Add(visibleAfter), Message: fmt.Sprintf("waiting until the %s of an earlier run is gone", next)}
	case live.GetAnnotations()[hookRunAnnotation] != next.run():
		return ClearHook{Hook: *next}
	}
	ended, failure := hookEnded(live)
	deadline := live.GetCreationTimestamp().Add(next.timeout())
	switch {
	case ended:
		return EndHook{Hook: *next, Failure: failure}
	case !now.Before(deadline):
		return EndHook{Hook: *next, Failure: fmt.Sprintf("it did not end within %v", next.timeout())}
	}
	until := deadline
	if poll := now.Add(hookPoll); poll.Before(deadline) {
		until = poll
	}
	return AwaitHook{Hook: *next, Until: until, Message: fmt.Sprintf("%s runs", next)}
}

func retryHookAfter(failures int64) time.Duration {
	return min(hookRetryFirst<<min(max(failures-1, 0), 10), hookRetryMost)
}

// hookEnded reports whether a hook has ended, and why it failed. Of Jobs and Pods the end is awaited; everything else has ended
// once it exists, as with helm.
func hookEnded(live *unstructured.Unstructured) (ended bool, failure string) {
	switch live.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if c := condition(live, "Failed"); c != nil && c.Status == metav1.ConditionTrue {
			return true, c.Reason + ": " + c.Message
		}
		c := condition(live, "Complete")
		return c != nil && c.Status == metav1.ConditionTrue, ""
	case schema.GroupKind{Kind: "Pod"}:
		switch phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase {
		case "Succeeded":
			return true, ""
		case "Failed":
			message, _, _ := unstructured.NestedString(live.Object, "status", "message")
			return true, "the pod failed " + message
		}
		return false, ""
	}
	return true, ""
}
