// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

func TestPlan(t *testing.T) {
	settled := Snapshot{Deployed: Deployed{Name: "web", Revision: 3, Digest: "d"}, Applied: "d",
		History: &metav1.Condition{Status: metav1.ConditionTrue}, HistoryTried: true}
	rendered := &chart.Rendered{}
	for _, tc := range []struct {
		name    string
		desired Desired
		seen    func(*Snapshot)
		want    Step
	}{
		{"nothing to do", Desired{Digest: "d"}, func(*Snapshot) {}, Nothing{}},
		{"a new resource", Desired{Digest: "d"}, func(s *Snapshot) { *s = Snapshot{} }, Install{}},
		{"a changed resource", Desired{Digest: "e"}, func(*Snapshot) {}, Upgrade{Revision: 4}},
		{"what cannot be rendered is tried, so that it is told", Desired{Digest: "e", Failure: errors.New("x")}, func(*Snapshot) {},
			Upgrade{Revision: 4}},
		{"a deleted child", Desired{Digest: "d"}, func(s *Snapshot) { s.Drifted = []apply.Ref{deployment} },
			Repair{Reason: "Deployment shop/web was changed or deleted", Drifted: []apply.Ref{deployment}}},
		{"a change comes before a repair", Desired{Digest: "e"}, func(s *Snapshot) { s.Drifted = []apply.Ref{deployment} }, Upgrade{Revision: 4}},
		{"after a start that recalled nothing", Desired{Digest: "d"}, func(s *Snapshot) { s.Applied = "" },
			Repair{Reason: "the children were not compared since a failure, or since the operator started"}},
		{"back to the deployed spec after half an upgrade", Desired{Digest: "d"}, func(s *Snapshot) { s.Applied = "e" },
			Repair{Reason: "the children were not compared since a failure, or since the operator started"}},
		{"an invalid resource",
			Desired{Digest: "e", Invalid: field.ErrorList{field.Required(field.NewPath("spec", "image"), "an image is needed")}}, func(*Snapshot) {},
			Stall{Reason: ReasonInvalidSpec, Message: "spec.image: Required value: an image is needed"}},
		{"a pause holds everything", Desired{Digest: "e"}, func(s *Snapshot) { s.Paused = true }, Pause{}},
		{"a deletion ends a pause", Desired{}, func(s *Snapshot) { s.Paused, s.Deleting = true, true }, Gone{}},
		{"a deletion with our finalizer", Desired{}, func(s *Snapshot) { s.Deleting, s.Finalizers = true, []string{SDKFinalizer} }, Uninstall{}},
		{"a deletion whose objects are gone", Desired{}, func(s *Snapshot) {
			s.Deleting, s.Finalizers, s.Hooks = true, []string{Finalizer}, Progress{Event: "post-delete"}
		}, Leave{}},
		{"objects out of reach need a finalizer first", Desired{Digest: "d", OutOfReach: true}, func(s *Snapshot) { *s = Snapshot{} },
			AddFinalizer{}},
		{"and are installed then", Desired{Digest: "d", OutOfReach: true},
			func(s *Snapshot) { *s = Snapshot{Finalizers: []string{SDKFinalizer}} }, Install{}},
		{"a wish to wait", Desired{Digest: "d", WaitForDeletion: true}, func(*Snapshot) {}, AddFinalizer{}},
		{"a release of another operator", Desired{Digest: "d", Revision: 7, Rendered: rendered},
			func(s *Snapshot) { *s = Snapshot{Former: &Former{Revision: 7}} }, TakeOver{Revision: 7}},
		{"one that asks for something else", Desired{Digest: "d", Revision: 8, Rendered: rendered},
			func(s *Snapshot) { *s = Snapshot{Former: &Former{Revision: 7}} }, Upgrade{Revision: 8}},
		{"one that could not be rendered", Desired{Digest: "d", Revision: 7}, func(s *Snapshot) { *s = Snapshot{Former: &Former{Revision: 7}} },
			Upgrade{Revision: 8}},
		{"the second revision", Desired{Digest: "e"}, func(s *Snapshot) { s.Deployed.Revision = 1 }, Upgrade{Revision: 2}},
		{"a record that is there", Desired{Digest: "d"}, func(s *Snapshot) { s.HistoryTried = false }, Nothing{}},
		{"a record that failed for a moment", Desired{Digest: "d"}, func(s *Snapshot) {
			s.History = &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonHistoryFailed}
		}, RecordHistory{}},
		{"a record that was forbidden is tried once a start", Desired{Digest: "d"}, func(s *Snapshot) {
			s.History, s.HistoryTried = &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonHistoryForbidden}, false
		}, RecordHistory{}},
		{"and not in every reconciliation", Desired{Digest: "d"}, func(s *Snapshot) {
			s.History = &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonHistoryForbidden}
		}, Nothing{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seen := settled
			tc.seen(&seen)
			if diff := cmp.Diff(tc.want, Plan(tc.desired, seen, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// hooksWorld plays the API server and the Job controller for the hooks of a release; it knows no more of them than those do.
type hooksWorld struct {
	t       *testing.T
	desired Desired
	seen    Snapshot
	live    map[string]*unstructured.Unstructured
	now     time.Time
	// log is what happened, in the order in which it did.
	log []string
	// fails tells how often a Job fails before it succeeds.
	fails map[string]int
}

func job(t *testing.T, name string, events ...string) chart.Hook {
	t.Helper()
	return chart.Hook{Object: parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: "+name+"}}"), Events: events}
}

// step plans and carries out one Step.
func (w *hooksWorld) step() Step {
	w.t.Helper()
	w.seen.Hook = nil
	if next := nextHook(w.desired, w.seen); next != nil {
		w.seen.Hook = w.live[next.Object.GetName()]
	}
	step := Plan(w.desired, w.seen, w.now)
	switch step := step.(type) {
	case Install, Upgrade:
		w.log = append(w.log, "deploy")
		w.seen.Deployed = Deployed{Revision: w.desired.Revision, Digest: w.desired.Digest}
		w.seen.Applied = w.desired.Digest
		event := postInstall
		if w.desired.Revision > 1 {
			event = postUpgrade
		}
		w.seen.Hooks = Progress{Event: string(event), Revision: w.desired.Revision, Digest: w.desired.Digest}
	case Uninstall:
		w.log = append(w.log, "uninstall")
		w.seen.Hooks = Progress{Event: string(postDelete)}
	case ClearHook:
		delete(w.live, step.Hook.Object.GetName())
	case StartHook:
		name := step.Hook.Object.GetName()
		w.log = append(w.log, name)
		made := step.Hook.Object.DeepCopy()
		made.SetAnnotations(map[string]string{hookRunAnnotation: step.Hook.run()})
		made.SetCreationTimestamp(metav1.NewTime(w.now))
		outcome := "Complete"
		if w.fails[name] > 0 {
			w.fails[name]--
			outcome = "Failed"
		}
		if outcome != "Failed" || w.fails[name] >= 0 {
			made.Object["status"] =
				parse(w.t, "{apiVersion: v1, kind: X, status: {conditions: [{type: "+outcome+
					", status: 'True', reason: R, message: m}]}}").Object["status"]
		}
		w.live[name] = made
		w.seen.Hooks = step.Hook.Progress
	case AwaitHook:
		w.now = step.Until
		w.seen.Hooks = step.Hook.Progress
	case EndHook:
		w.seen.Hooks = step.Hook.Progress
		if step.Failure == "" {
			w.seen.Hooks.Completed++
			w.seen.Hooks.Failures = 0
		} else {
			w.log = append(w.log, "failed")
			w.seen.Hooks.Failures++
			w.seen.Hooks.FailedAt = w.now
		}
	case Nothing, Gone, Pause, Stall, AddFinalizer, TakeOver, Repair, RecordHistory, Leave:
	}
	return step
}

func (w *hooksWorld) run(until Step) {
	w.t.Helper()
	for range 60 {
		if fmt.Sprintf("%T", w.step()) == fmt.Sprintf("%T", until) {
			return
		}
	}
	w.t.Fatalf("%T is not reached: %v", until, w.log)
}

func newHooksWorld(t *testing.T) *hooksWorld {
	t.Helper()
	return &hooksWorld{t: t, now: now, live: map[string]*unstructured.Unstructured{}, fails: map[string]int{},
		desired: Desired{Digest: "d", Revision: 1, Rendered: &chart.Rendered{Hooks: []chart.Hook{
			job(t, "both", "pre-install", "post-install"), job(t, "first", "pre-install", "pre-upgrade"),
			job(t, "last", "post-install", "post-upgrade"),
			job(t, "backup", "pre-delete"), job(t, "wipe", "post-delete"), job(t, "test", "test"),
		}}}}
}

func TestHooksRunInHelmsOrder(t *testing.T) {
	w := newHooksWorld(t)
	w.run(Nothing{})
	w.desired.Digest, w.desired.Revision = "e", 2
	w.run(Nothing{})
	w.seen.Deleting, w.seen.Finalizers = true, []string{Finalizer}
	w.run(Leave{})
	want := "both first deploy both last first deploy last backup uninstall wipe"
	if got := strings.Join(w.log, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFailedHookIsTriedAgainAndNothingIsDeployedBefore(t *testing.T) {
	w := newHooksWorld(t)
	w.fails["first"] = 2
	w.run(Nothing{})
	want := "both first failed first failed first deploy both last"
	if got := strings.Join(w.log, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if waited := w.now.Sub(now); waited < 30*time.Second {
		t.Errorf("two failures are followed by 10 s and 20 s, waited %v", waited)
	}
}

func TestHookThatHangsFails(t *testing.T) {
	w := newHooksWorld(t)
	w.desired.Rendered.Hooks[0].Object.SetAnnotations(map[string]string{HookTimeoutAnnotation: "20m"})
	w.step()
	w.live["both"].Object["status"] = nil
	w.now = now.Add(20*time.Minute - 5*time.Second)
	if wait, ok := w.step().(AwaitHook); !ok || !wait.Until.Equal(now.Add(20*time.Minute)) {
		t.Errorf("it is waited for until its deadline: %+v", wait)
	}
	if end, ok := w.step().(EndHook); !ok || end.Failure != "it did not end within 20m0s" {
		t.Errorf("then it has failed: %+v", end)
	}
}

func TestHooksOf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*hooksWorld)
		want   Step
	}{
		{"hooks that are switched off", func(w *hooksWorld) { w.desired.WithoutHooks = []string{"install"} }, Install{}},
		{"a new spec while the hooks of the former one run", func(w *hooksWorld) {
			w.seen.Hooks = Progress{Event: "pre-install", Revision: 1, Digest: "other", Completed: 1}
		}, StartHook{}},
		{"what an earlier release left", func(w *hooksWorld) {
			w.live["both"] = parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: both}}")
		}, ClearHook{}},
		{"what is still being deleted", func(w *hooksWorld) {
			w.live["both"] = parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: both, deletionTimestamp: '2026-11-21T10:00:00Z'}}")
		}, AwaitHook{}},
		{"a resource that is deleted before it was installed",
			func(w *hooksWorld) { w.seen.Deleting, w.seen.Finalizers = true, []string{Finalizer} }, Uninstall{}},
		{"a namespace in which nothing can be made any more", func(w *hooksWorld) {
			w.seen.Deleting, w.seen.Terminating, w.seen.Finalizers, w.seen.Deployed.Digest = true, true, []string{Finalizer}, "d"
		}, Uninstall{}},
		{"a pause", func(w *hooksWorld) { w.seen.Paused = true }, Pause{}},
		{"a change, and children that were changed", func(w *hooksWorld) {
			w.seen.Deployed, w.seen.Applied = Deployed{Revision: 1, Digest: "c"}, "c"
			w.desired.Revision, w.seen.Drifted = 2, []apply.Ref{deployment}
		}, StartHook{}},
	} {
		w := newHooksWorld(t)
		tc.change(w)
		if got := w.step(); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", tc.want) {
			t.Errorf("%s: got %T, want %T", tc.name, got, tc.want)
		}
	}
}

// A change that is taken back while its hooks run leaves the release as it is, and nothing to wait for.
func TestProgressOfAChangeThatWasTakenBack(t *testing.T) {
	deployed := Deployed{Revision: 1, Digest: "d"}
	for _, tc := range []struct {
		event   string
		digest  string
		deleted bool
		counts  bool
	}{
		{"pre-upgrade", "d", false, false}, {"pre-upgrade", "e", false, true}, {"post-install", "d", false, true},
		{"pre-delete", "d", true, true},
	} {
		seen := Snapshot{Deployed: deployed, Deleting: tc.deleted, Hooks: Progress{Event: tc.event, Failures: 2}}
		if got := progressOf(Desired{Digest: tc.digest}, seen); (got.Event != "") != tc.counts {
			t.Errorf("%+v: got %+v", tc, got)
		}
	}
}

func TestProgressSurvivesTheStatus(t *testing.T) {
	for _, p := range []Progress{
		{},
		{Event: "pre-install", Revision: 1, Digest: "d", Completed: 2},
		{Event: "post-upgrade", Revision: 4, Digest: "d", Failures: 3, Message: "m", FailedAt: now},
	} {
		cr := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
		if p.Event != "" {
			cr.Object["status"] = map[string]any{"hooks": p.write()}
		}
		if diff := cmp.Diff(p, readProgress(cr), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	}
	forged := parse(t, "{apiVersion: a/v1, kind: B, status: {hooks: {event: pre-install, completed: -3, failures: -1, failedAt: nonsense}}}")
	if p := readProgress(forged); p.Completed != 0 || p.Failures != 0 || !p.FailedAt.IsZero() {
		t.Errorf("nonsense in a status harms nobody: %+v", p)
	}
}

func TestFormer(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: shop}}")
	}
	refOf := func(o *unstructured.Unstructured) (apply.Ref, error) { return apply.RefOf(o), nil }
	past := func(revision int, status chart.Status, names ...string) *chart.StoredRelease {
		p := &chart.StoredRelease{Revision: revision, Status: status, Rendered: &chart.Rendered{}}
		for _, name := range names {
			p.Rendered.Objects = append(p.Rendered.Objects, object(name))
		}
		return p
	}
	pending := chart.Status("pending-upgrade")
	for _, tc := range []struct {
		name     string
		past     []*chart.StoredRelease
		revision int64
		complete bool
		refs     string
	}{
		{"a release", []*chart.StoredRelease{past(1, chart.StatusSuperseded, "old"), past(2, chart.StatusDeployed, "a", "b")}, 2, true, "a b"},
		{"an upgrade that a crash left pending",
			[]*chart.StoredRelease{past(2, chart.StatusDeployed, "a"), past(3, pending, "b"), past(1, chart.StatusSuperseded, "old")}, 3, false,
			"b a"},
		{"an install that a crash left pending", []*chart.StoredRelease{past(1, "pending-install", "a")}, 1, false, "a"},
	} {
		got, err := formerOf(tc.past, refOf)
		if err != nil {
			t.Fatal(err)
		}
		var refs []string
		for _, ref := range got.Refs {
			refs = append(refs, ref.Name)
		}
		if got.Revision != tc.revision || got.Complete != tc.complete || strings.Join(refs, " ") != tc.refs {
			t.Errorf("%s: got revision %d, complete %v, %v", tc.name, got.Revision, got.Complete, refs)
		}
	}
	theirs := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, ownerReferences: [{kind: Web, name: web}],
		annotations: {operator-sdk/primary-resource: shop/web, operator-sdk/primary-resource-type: Web.test}}}`)
	ours := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	if !sameObjects([]*unstructured.Unstructured{ours}, []*unstructured.Unstructured{theirs}, "shop") {
		t.Error("who owns an object is not what it consists of")
	}
	ours.SetLabels(map[string]string{"new": "label"})
	if sameObjects([]*unstructured.Unstructured{ours}, []*unstructured.Unstructured{theirs}, "shop") ||
		sameObjects(nil, []*unstructured.Unstructured{theirs}, "shop") {
		t.Error("other objects are not the same")
	}
}
