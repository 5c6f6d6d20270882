// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/pause"
	"middleware.hc.cn/operator/internal/watches"
)

// Each condition says in every situation what a person has to know, in both states.
func TestConditionsOfEverySituation(t *testing.T) {
	hook := NextHook{Hook: job(t, "h"), Progress: Progress{Event: "pre-install"}}
	of := func(event string) NextHook { return NextHook{Hook: job(t, "h"), Progress: Progress{Event: event}} }
	deployed := Deployed{Name: "web", Revision: 1, Digest: "d"}
	child := func(name, status string) Child {
		return Child{Ref: apply.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "B"}, Name: name},
			Object: parse(t, "{apiVersion: a/v1, kind: B, metadata: {name: "+name+"}, status: "+status+"}")}
	}
	const stuck, slow = "{conditions: [{type: Stalled, status: 'True', reason: Bad, message: no disk.}]}",
		"{conditions: [{type: Ready, status: 'False', reason: Soon, message: wait}]}"
	temporary, lasting := &failure{reason: "R", err: errAway}, &failure{reason: "F", final: true, err: errors.New("no")}
	for name, tt := range map[string]struct {
		done effect
		want string
	}{
		"all is well": {effect{step: Nothing{}, deployed: deployed, children: []Child{child("a", "{}")}},
			"Ready True ChildrenReady: all 1 objects are ready, Progressing False ChildrenReady, Deployed True InstallSuccessful: revision 1 of " +
				"release web, ReleaseFailed False NotFailed, Irreconcilable False Reconcilable, Stalled False NotStalled, Paused False NotPaused"},
		"nothing is deployed": {effect{step: Nothing{}},
			"Ready False NotDeployed: no revision was installed completely, Progressing True NotDeployed, " +
				"Deployed False NotDeployed: no revision"},
		"an upgrade": {effect{step: Nothing{}, deployed: Deployed{Name: "web", Revision: 2, Digest: "d"}},
			"Deployed True UpgradeSuccessful: revision 2"},
		"a child that waits, and one that is broken": {effect{step: Nothing{}, deployed: deployed, children: []Child{child("a", slow),
			child("b", stuck)}},
			"Ready False ChildFailed: B b Bad: no disk (and 1 more), Progressing True ChildFailed"},
		"a child that is broken": {effect{step: Nothing{}, deployed: deployed, children: []Child{child("b", stuck)}},
			"Ready False ChildFailed: B b Bad: no disk, Progressing False ChildFailed"},
		"children that wait": {effect{step: Nothing{}, deployed: deployed, children: []Child{child("a", slow), child("b", slow)}},
			"Ready False ChildNotReady: B a Ready is False: Soon wait (and 1 more), Progressing True ChildNotReady"},
		"a child that is not seen": {effect{step: Nothing{}, deployed: deployed, children: []Child{{Ref: deployment}}},
			"Ready False ChildNotReady: Deployment web is not there yet"},
		"a failure that passes": {effect{step: Upgrade{Revision: 2}, deployed: deployed, failure: temporary, children: []Child{child("a", "{}")}},
			"Ready False R: connection refused, Progressing True R, ReleaseFailed True UpgradeError: connection refused, " +
				"Irreconcilable False, Stalled False, Deployed True InstallSuccessful"},
		"a failure that stays": {effect{step: Install{}, failure: lasting},
			"Ready False F: no, Progressing False F, ReleaseFailed True InstallError: no, Irreconcilable True F: no, Stalled True F: no"},
		"an invalid spec": {effect{step: Stall{Reason: ReasonInvalidSpec, Message: "spec.a"}, deployed: deployed},
			"Ready False InvalidSpec: spec.a, Progressing False InvalidSpec, Irreconcilable True InvalidSpec: spec.a, Stalled True InvalidSpec: spec.a, " +
				"ReleaseFailed False"},
		"a repair that failed":   {effect{step: Repair{}, deployed: deployed, failure: temporary}, "ReleaseFailed True ReconcileError"},
		"a takeover that failed": {effect{step: TakeOver{}, failure: temporary}, "ReleaseFailed True ReconcileError"},
		"a deletion": {effect{step: Uninstall{}, deployed: deployed},
			"Ready False Uninstalling: the objects are gone, Progressing True Uninstalling"},
		"a deletion that waits": {effect{step: Uninstall{}, deployed: deployed, remaining: []apply.Ref{deployment, deployment}},
			"Ready False Uninstalling: waiting until these are gone: Deployment web, Deployment web"},
		"a deletion that failed": {effect{step: Uninstall{}, deployed: deployed, failure: temporary}, "ReleaseFailed True UninstallError"},
		"the end of a deletion": {effect{step: Leave{}, deployed: deployed}, "Ready False Uninstalling: the last records are being removed, " +
			"ReleaseFailed False"},
		"the end of a deletion that failed": {effect{step: Leave{}, failure: temporary}, "ReleaseFailed True UninstallError"},
		"a hook begins": {effect{step: StartHook{Hook: hook}},
			"Ready False HookRunning: pre-install hook Job h runs, Progressing True HookRunning"},
		"a hook runs": {effect{step: AwaitHook{Hook: hook, Message: "m"}},
			"Ready False HookRunning: m, ReleaseFailed False"},
		"a hook waits for another run": {effect{step: ClearHook{Hook: hook}, deployed: deployed},
			"Ready False HookRunning: pre-install hook Job h waits until its earlier run is gone"},
		"a hook failed before": {effect{step: AwaitHook{Hook: hook, Failed: true, Message: "m"}},
			"Ready False HookFailed: m, ReleaseFailed True InstallError: m"},
		"a hook of an upgrade failed": {effect{step: AwaitHook{Hook: of("post-upgrade"), Failed: true, Message: "m"}},
			"ReleaseFailed True UpgradeError"},
		"a hook of a deletion failed": {effect{step: AwaitHook{Hook: of("post-delete"), Failed: true, Message: "m"}},
			"ReleaseFailed True UninstallError"},
		"a hook fails": {effect{step: EndHook{Hook: hook}, hookFailure: "m"},
			"Ready False HookFailed: m, ReleaseFailed True InstallError: m"},
		"a hook of an upgrade fails": {effect{step: EndHook{Hook: of("pre-upgrade")}, hookFailure: "m"}, "ReleaseFailed True UpgradeError: m"},
		"a hook could not begin": {effect{step: StartHook{Hook: of("pre-delete")}, failure: temporary},
			"ReleaseFailed True UninstallError"},
		"a hook could not be cleared": {effect{step: ClearHook{Hook: of("pre-upgrade")}, failure: temporary},
			"ReleaseFailed True UpgradeError"},
		"a hook succeeded, more follow": {effect{step: EndHook{Hook: hook}, hooks: hook.Progress},
			"Ready False HookRunning: pre-install hook Job h succeeded"},
		"the last hook succeeded": {effect{step: EndHook{Hook: hook}, deployed: deployed}, "Ready True ChildrenReady"},
		"hooks follow": {effect{step: Install{}, deployed: deployed, hooks: Progress{Event: "post-install"}},
			"Ready False HookRunning: post-install hooks follow, Deployed True"},
		"paused before anything was": {effect{step: Pause{}},
			"Ready False PauseReconcileAnnotationTrue: nothing was installed before the pause, " +
				"Progressing False PauseReconcileAnnotationTrue, Paused True PauseReconcileAnnotationTrue"},
		"paused": {effect{step: Pause{}, deployed: deployed}, "Ready True ChildrenReady, Paused True PauseReconcileAnnotationTrue"},
		"a record": {effect{step: Nothing{}, deployed: deployed, history: &metav1.Condition{Type: TypeHistoryRecorded, Status: "True", Reason: "R"}},
			"HistoryRecorded True R"},
	} {
		status, err := computeStatus(&unstructured.Unstructured{}, tt.done, extras{}, 1, now)
		if err != nil {
			t.Fatal(err)
		}
		list := conditions.Read(&unstructured.Unstructured{Object: map[string]any{"status": status}})
		for _, want := range strings.Split(tt.want, ", ") {
			kind, begin, split := strings.Cut(want, " ")
			if split && !meta.IsStatusConditionTrue(list, "Initialized") {
				t.Errorf("%s: it was seen", name)
			}
			c := meta.FindStatusCondition(list, kind)
			if c == nil && kind == "Deployment" { // part of a sentence
				continue
			}
			if c == nil || !strings.HasPrefix(string(c.Status)+" "+c.Reason+": "+c.Message, begin) {
				t.Errorf("%s: %+v, want %s", name, c, want)
			}
		}
		if _, paused := tt.done.step.(Pause); paused && meta.FindStatusCondition(list, TypeReleaseFailed) != nil {
			t.Errorf("%s: of the release nothing new is said", name)
		}
	}
}

// The engine's own fields are the engine's: a kind's extras can neither set nor remove them.
func TestFieldsOfTheEngine(t *testing.T) {
	done := effect{step: Nothing{}, deployed: Deployed{Name: "web", Revision: 1, Digest: "d"}, inventory: []apply.Known{{Ref: deployment}},
		hooks: Progress{Event: "post-install"}}
	plain, err := computeStatus(&unstructured.Unstructured{}, done, extras{}, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{nil, "forged"} {
		fields := map[string]any{"conditions": value, "deployedRelease": value, "inventory": value, "hooks": value, "observedGeneration": value}
		before := &unstructured.Unstructured{Object: map[string]any{"status": (&unstructured.Unstructured{Object: plain}).DeepCopy().Object}}
		got, err := computeStatus(before, done, extras{fields: fields}, 1, now)
		if diff := cmp.Diff(plain, got); err != nil || diff != "" {
			t.Errorf("%v: %v %s", value, err, diff)
		}
	}
	gone := &unstructured.Unstructured{Object: map[string]any{"status": plain}}
	got, err := computeStatus(gone, effect{step: Uninstall{}}, extras{}, 0, now)
	if err != nil || got["hooks"] != nil || len(got["inventory"].([]any)) != 0 || got["deployedRelease"] == nil ||
		got["observedGeneration"] != int64(1) {
		t.Errorf("without anything: %v, %v", got, err)
	}
	if got, err := computeStatus(&unstructured.Unstructured{}, effect{step: Nothing{}}, extras{}, 0, now); err != nil ||
		got["inventory"] != nil ||
		got["deployedRelease"] != nil || got["observedGeneration"] != nil {
		t.Errorf("nothing is deployed: %v, %v", got, err)
	}
	forged := extras{fields: map[string]any{"inventory": "x", "deployedRelease": "x", "hooks": "x", "observedGeneration": "x",
		"conditions": "x"}}
	if got, err := computeStatus(&unstructured.Unstructured{}, effect{step: Nothing{}}, forged, 0, now); err != nil || len(got) != 1 {
		t.Errorf("nothing is deployed, and a kind says so: %v, %v", got, err)
	}
	whole, err := WholeStatus()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"conditions", "deployedRelease", "inventory", "hooks", "observedGeneration"} {
		if whole[field] == nil {
			t.Errorf("the whole status lacks %s", field)
		}
	}
}

// What a kind adds is computed from the children that are visible, and written with all else.
func TestExtrasOfAKind(t *testing.T) {
	seen := -1
	s := newShop(t, "", "{text: a, names: [b, c]}", chartOf(t, configTemplate, listTemplate), Options{
		StatusExtras: func(_ *unstructured.Unstructured, children []*unstructured.Unstructured, at time.Time) (map[string]any,
			[]metav1.Condition) {
			seen = len(children)
			return map[string]any{"at": at.UTC().Format(time.RFC3339)}, []metav1.Condition{{Type: "Complete", Status: "True", Reason: "Done"}}
		}})
	s.unseen["ConfigMap b"] = true
	s.settle()
	if s.web().Object["status"].(map[string]any)["at"] != "2026-11-21T10:00:00Z" || seen != 2 {
		t.Errorf("%d children, %v", seen, s.web().Object["status"])
	}
	s.says("of its own", map[string]string{"Complete": "True Done", "Ready": "False ChildNotReady: ConfigMap b is not there yet"})
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != visibleAfter {
		t.Errorf("%v, %v", result, err)
	}
}

// A pause leaves everything as it is, says so, and ends.
func TestPause(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	s.told()
	s.edit(annotated(pause.Annotation, "true"))
	s.asks("{text: z}")
	s.remove(configs, "shop", "web")
	s.wants("paused", s.settle(), "status of Web shop/web: conditions observedGeneration")
	s.says("paused", map[string]string{"Paused": "True PauseReconcileAnnotationTrue: annotation", "Deployed": "True"})
	s.edit(func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
	s.settle()
	s.says("not paused any more", map[string]string{"Paused": "False NotPaused", "Deployed": "True UpgradeSuccessful"})
	s.wants("told", s.told(), "Normal Upgraded revision 2: recreated ConfigMap shop/web")
}

// A kind without a status subresource has its status written all the same, without a generation that each write would change.
func TestAKindWithoutAStatusSubresource(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.WithWatch = store([]client.Object{s.web()}).Build()
	s.restart()
	if got := s.settle(); got[1] != "patch Web shop/web" {
		t.Errorf("written: %v", got)
	}
	s.says("installed", map[string]string{"Ready": "True"})
	if status := s.web().Object["status"].(map[string]any); status["observedGeneration"] != nil {
		t.Errorf("which generation was observed: %v", status)
	}
	s.wants("idle", s.settle())
	paused := newShop(t, "annotations: {"+pause.Annotation+": 'true'}", "{text: a}", chartOf(t, configTemplate), Options{})
	paused.WithWatch = store([]client.Object{paused.web()}).Build()
	paused.restart()
	paused.settle()
	if status := paused.web().Object["status"].(map[string]any); status["observedGeneration"] != nil {
		t.Errorf("which generation was observed: %v", status)
	}
	s.asks("{text: z}")
	for _, w := range s.settle() {
		if strings.HasPrefix(w, "status") {
			t.Errorf("it is tried again: %s", w)
		}
	}
	s.refusals["patch Web"] = errAway
	s.asks("{text: y}")
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("the status is not written: %v", err)
	}
}

// A CRD that drops what the engine has to know is told; without that everything would be made again and again.
func TestAPrunedStatus(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	for _, tt := range []struct {
		field string
		fails bool
	}{{"deployedRelease", true}, {"deployedRelease.digest", true}, {"deployedRelease.revision", true}, {"inventory", true}, {"hooks", false}} {
		s.prunes = tt.field
		s.asks("{text: " + tt.field + "}")
		_, err := s.reconcile()
		if errors.Is(err, errPruned) != tt.fails {
			t.Errorf("%s: %v", tt.field, err)
		}
		if told := s.told(); (len(told) > 0 && strings.HasPrefix(told[0], "Warning StatusPruned the CRD of this kind")) != tt.fails {
			t.Errorf("%s: %q", tt.field, told)
		}
	}
}

// A status that somebody else changed meanwhile is computed anew from what is there by then.
func TestAStatusThatWasChangedMeanwhile(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.refusals["status of Web shop/web: conditions"] = apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("changed"))
	result, err := s.reconcile()
	if err != nil || result.RequeueAfter == 0 || len(s.told()) > 0 {
		t.Errorf("%v, %v", result, err)
	}
	delete(s.refusals, "status of Web shop/web: conditions")
	s.settle()
	s.says("then", map[string]string{"Ready": "True"})
	s.wants("told", s.told(), "Normal Installed nothing changed")
}

// A resource in no namespace has objects in none, and no history.
func TestAResourceInNoNamespace(t *testing.T) {
	s := newShop(t, "", "{}", chartOf(t, configTemplate), Options{})
	site := parse(t, "{apiVersion: example.com/v1, kind: Site, metadata: {name: site, uid: s, generation: 1, finalizers: ["+Finalizer+"]}, spec: {}}")
	if err := s.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	s.start(chartOf(t, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Release.Name }}\n", hookTemplate("h", "post-delete", "")),
		Options{},
		watches.Watch{GroupVersionKind: sites, WatchDependentResources: true, Selector: labels.Everything()})
	s.wrote, s.read = nil, nil
	reconcile := func() {
		for range 5 {
			if _, err := s.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "site"}}); err != nil {
				t.Error(err)
			}
		}
	}
	s.r.options.MaxHistory = 1
	reconcile()
	if slices.ContainsFunc(s.read, func(r string) bool { return strings.HasPrefix(r, "list") }) {
		t.Errorf("where no history is, none is looked for: %v", s.read)
	}
	s.wants("written", s.wrote, "status of Site site: inventory", "apply Namespace site",
		"status of Site site: conditions deployedRelease inventory observedGeneration")
	list := conditions.Read(s.object(sites, "", "site"))
	if c := meta.FindStatusCondition(list, TypeHistoryRecorded); c == nil || c.Reason != ReasonHistoryClusterScoped {
		t.Errorf("%+v", c)
	}
	if c := s.told(); len(c) != 2 || !strings.HasPrefix(c[0], "Warning HistoryNotRecorded") {
		t.Errorf("%q", c)
	}
	if got := s.object(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", "site"); got == nil ||
		len(got.GetOwnerReferences()) != 1 {
		t.Errorf("%v", got)
	}
}

// Of a resource that is not selected, and of one that cannot be read, nothing is done.
func TestWhatIsNotReconciled(t *testing.T) {
	s := newShop(t, "labels: {a: b}", "{text: a}", chartOf(t, configTemplate), Options{})
	for text, made := range map[string]bool{"a=c": false, "a=b": true} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s.r.entry.Selector = selector
		if s.must(); len(s.wrote) > 0 != made && s.object(configs, "shop", "web") == nil == made {
			t.Errorf("%s: %v", text, s.wrote)
		}
	}
	s.r.reader = unfilledNow{}
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("it cannot be read: %v", err)
	}
}

// unfilledNow is a cache that cannot be read.
type unfilledNow struct{ client.Reader }

func (unfilledNow) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errAway
}
