// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/watches"
)

// What the next process has to know is read from the status as it was written there.
func TestWhatIsRecordedIsReadAgain(t *testing.T) {
	cr := parse(t, "{apiVersion: a/v1, kind: B, metadata: {name: web, namespace: shop}, status: {}}")
	set := func(field string, value any) {
		t.Helper()
		cr.Object["status"].(map[string]any)[field] = value
		text, err := cr.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		cr = parse(t, string(text)) // as an API server gives it back
	}
	deployed := Deployed{Name: "web", Revision: 7, Digest: "d"}
	set(fieldDeployedRelease, deployed.write())
	if diff := cmp.Diff(deployed, readDeployed(cr)); diff != "" {
		t.Errorf("the release (-want +got):\n%s", diff)
	}
	for name, progress := range map[string]Progress{
		"hooks that run": {Event: "pre-upgrade", Revision: 3, Digest: "e", Completed: 2},
		"one that failed": {Event: "post-install", Revision: 1, Digest: "f", Completed: 1, Failures: 1, Message: "no",
			FailedAt: now.In(time.FixedZone("", 3600))},
	} {
		set(fieldHooks, progress.write())
		got := readProgress(cr)
		if !got.FailedAt.Equal(progress.FailedAt) {
			t.Errorf("%s: failed at %s", name, got.FailedAt)
		}
		got.FailedAt = progress.FailedAt
		if diff := cmp.Diff(progress, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	set(fieldHooks, map[string]any{"event": "pre-upgrade", "completed": int64(-1), "failures": int64(-2), "failedAt": "soon"})
	if diff := cmp.Diff(Progress{Event: "pre-upgrade"}, readProgress(cr)); diff != "" {
		t.Errorf("nonsense (-want +got):\n%s", diff)
	}
	inventory := []apply.Known{
		{Ref: deployment, Fields: "f"},
		{Ref: apply.Ref{GroupVersionKind: configs, Namespace: "shop", Name: "a"}},
		{Ref: apply.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Name: "n", UID: "u"}},
	}
	set(fieldInventory, writeInventory(inventory))
	if diff := cmp.Diff(inventory, readInventory(cr, watches.Allow{ClusterScoped: true})); diff != "" {
		t.Errorf("the inventory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(inventory[:2], readInventory(cr, watches.Allow{})); diff != "" {
		t.Errorf("where none may be cluster-scoped (-want +got):\n%s", diff)
	}
	entries := writeInventory(inventory).([]any)
	want := []any{map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "u",
		"fields": "f"}, map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a"},
		map[string]any{"version": "v1", "kind": "Namespace", "name": "n", "uid": "u"}}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]apply.Ref{inventory[0].Ref, inventory[1].Ref, inventory[2].Ref}, refsIn(inventory)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	before := inventory[:1:1]
	if both := union(before, refsIn(inventory)); len(both) != 3 || both[0].Fields != "f" || len(before) != 1 {
		t.Errorf("together: %v", both)
	}
}

// Where a resource may have objects does not depend on what its status says.
func TestWhereAResourceMayReach(t *testing.T) {
	cr := parse(t, "{apiVersion: a/v1, kind: B, metadata: {name: web, namespace: shop}}")
	root := parse(t, "{apiVersion: a/v1, kind: B, metadata: {name: web}}")
	for _, tt := range []struct {
		cr    *unstructured.Unstructured
		allow watches.Allow
		to    string
		want  bool
	}{
		{cr, watches.Allow{}, "shop", true},
		{cr, watches.Allow{}, "other", false},
		{cr, watches.Allow{}, "", false},
		{cr, watches.Allow{ClusterScoped: true}, "", true},
		{cr, watches.Allow{ClusterScoped: true}, "other", false},
		{cr, watches.Allow{Namespaces: []string{"other"}}, "other", true},
		{cr, watches.Allow{Namespaces: []string{"other"}}, "", false},
		{cr, watches.Allow{Namespaces: []string{"other"}}, "third", false},
		{cr, watches.Allow{Namespaces: []string{"*"}}, "third", true},
		{cr, watches.Allow{Namespaces: []string{"*"}}, "", false},
		{root, watches.Allow{}, "", true},
		{root, watches.Allow{}, "shop", false},
	} {
		if got := mayReach(tt.cr, tt.allow, tt.to); got != tt.want {
			t.Errorf("%q of one in %q, %+v: %t", tt.to, tt.cr.GetNamespace(), tt.allow, got)
		}
	}
}

// A resource that is gone has no status either, which says nothing of its kind.
func TestStatusOfOneThatIsGone(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	cr := s.web()
	s.deletes()
	changed, err := s.r.status.write(t.Context(), cr, map[string]any{"a": "b"})
	if !changed || !apierrors.IsNotFound(err) || s.r.status.plain.Load() || s.r.status.generation(cr) != cr.GetGeneration() {
		t.Errorf("%t, %v", changed, err)
	}
}

// A status that is as it was is not written; what is written in the midst of a reconciliation leaves the rest of it as it is.
func TestStatusIsWrittenWhenItDiffers(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	cr := s.web()
	status := func() map[string]any { return s.web().Object["status"].(map[string]any) }
	before := status()
	s.wrote = nil
	same := func(what string, err error) {
		t.Helper()
		if err != nil || len(s.wrote) > 0 {
			t.Errorf("%s: %v, wrote %v", what, err, s.wrote)
		}
	}
	same("the status", s.r.writeStatus(t.Context(), cr, cr.DeepCopy().Object["status"].(map[string]any)))
	inventory := readInventory(cr, watches.Allow{})
	inventory[0].UID, inventory[0].Fields = "another", "another"
	same("an inventory of the same objects", s.r.recordInventory(t.Context(), cr, inventory))
	same("no hooks", s.r.recordProgress(t.Context(), cr, Progress{}))
	if err := s.r.recordProgress(t.Context(), cr, Progress{Event: "post-install", Revision: 1}); err != nil {
		t.Fatal(err)
	}
	if readProgress(s.web()).Event != "post-install" || cr.GetResourceVersion() != s.web().GetResourceVersion() {
		t.Errorf("hooks that run: %v", status())
	}
	if err := s.r.recordProgress(t.Context(), cr, Progress{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, status()); diff != "" {
		t.Errorf("when no hook runs any more, of the status (-before +after):\n%s", diff)
	}
	s.wants("written", s.wrote, "status of Web shop/web: hooks", "status of Web shop/web: hooks")
	s.refusals["status"] = errAway
	if err := s.r.recordProgress(t.Context(), cr, Progress{Event: "post-install"}); !errors.Is(err, errAway) {
		t.Errorf("a write that fails: %v", err)
	}
}

// Each step is told in an Event of its own, once it has done something; what failed or is held back is not told as done.
func TestWhatIsTold(t *testing.T) {
	made := apply.ChangeSet{{Ref: deployment, Action: apply.Created}}
	same := apply.ChangeSet{{Ref: deployment, Action: apply.Unchanged}}
	hook := NextHook{Hook: job(t, "h", "pre-install"), Progress: Progress{Event: "pre-install"}}
	failing := effect{step: Install{}, changes: made, failure: classify(errAway)}
	is := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{conditions.Condition(TypeReleaseFailed, status, "InstallError", message)}
	}
	for name, tt := range map[string]struct {
		done        effect
		before, now []metav1.Condition
		told        []string
	}{
		"an install": {done: effect{step: Install{}, changes: made}, told: []string{"Normal Installed created Deployment shop/web"}},
		"an upgrade": {done: effect{step: Upgrade{Revision: 3}, changes: made},
			told: []string{"Normal Upgraded revision 3: created Deployment shop/web"}},
		"a takeover": {done: effect{step: TakeOver{Revision: 4}, changes: same},
			told: []string{"Normal TakenOver revision 4 of another operator: nothing changed"}},
		"a repair":                {done: effect{step: Repair{}, changes: made}, told: []string{"Normal Repaired created Deployment shop/web"}},
		"a repair of nothing":     {done: effect{step: Repair{}, changes: same}},
		"a hook":                  {done: effect{step: StartHook{Hook: hook}}, told: []string{"Normal HookStarted pre-install hook Job h"}},
		"nothing":                 {done: effect{step: Nothing{}, changes: made}},
		"a deletion":              {done: effect{step: Uninstall{}}},
		"a deletion that waits":   {done: effect{step: Uninstall{}, remaining: []apply.Ref{deployment}}},
		"a deletion that goes on": {done: effect{step: Uninstall{}, hooks: Progress{Event: "post-delete"}}},
		"a deletion that goes on, and left something": {done: effect{step: Uninstall{}, hooks: Progress{Event: "post-delete"},
			remaining: []apply.Ref{deployment}}, told: []string{"Warning NotWaitedFor still being deleted after 5m0s: Deployment web"}},
		"a deletion without its hooks": {done: effect{step: Uninstall{}, hooksSkipped: "no"},
			told: []string{"Warning HooksSkipped the hooks of the deletion cannot be rendered: no"}},
		"one that is held": {done: effect{step: Upgrade{Revision: 3}, changes: made, held: true}},
		"as before":        {done: failing, before: is("True", "m"), now: is("True", "m")},
		"a failure":        {done: failing, now: is("True", "m"), told: []string{"Warning InstallError m"}},
		"another failure":  {done: failing, before: is("True", "l"), now: is("True", "m"), told: []string{"Warning InstallError m"}},
		"it fails now":     {done: failing, before: is("False", "m"), now: is("True", "m"), told: []string{"Warning InstallError m"}},
		"it works now": {done: effect{step: Install{}, changes: made}, before: is("True", "m"), now: is("False", "m"),
			told: []string{"Normal Installed created"}},
		"it cannot be": {done: failing, now: append(is("True", "m"), conditions.Condition(TypeIrreconcilable, "True", "Why", "w")),
			told: []string{"Warning Why w"}},
	} {
		recorder := events.NewFakeRecorder(5)
		cr := parse(t, "{apiVersion: v1, kind: Web, metadata: {name: web}, status: {}}")
		var list []any
		for _, c := range tt.now {
			entry, err := toUnstructured(&c)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, entry)
		}
		cr.Object["status"].(map[string]any)[fieldConditions] = list
		(&Reconciler{events: recorder}).tell(cr, tt.done, tt.before)
		close(recorder.Events)
		var told []string
		for e := range recorder.Events {
			told = append(told, e)
		}
		if len(told) != len(tt.told) || len(told) > 0 && !strings.HasPrefix(told[0], tt.told[0]) {
			t.Errorf("%s: told %q, want %q", name, told, tt.told)
		}
	}
}

// Finalizers of others stay, in their order; a resource that is gone needs no change.
func TestFinalizersOfOthersStay(t *testing.T) {
	s := newShop(t, "finalizers: [example.com/a]", "{text: a}", chartOf(t, configTemplate), Options{})
	cr := s.web()
	if err := s.r.addFinalizer(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"example.com/a", Finalizer}, s.web().GetFinalizers()); diff != "" {
		t.Error(diff)
	}
	s.edit(func(o *unstructured.Unstructured) {
		o.SetFinalizers(append(o.GetFinalizers(), SDKFinalizer, "example.com/b"))
	})
	if err := s.r.removeFinalizers(t.Context(), cr, []string{Finalizer}); !apierrors.IsConflict(err) {
		t.Errorf("it has changed since it was read: %v", err)
	}
	cr = s.web()
	if err := s.r.removeFinalizers(t.Context(), cr, []string{Finalizer, SDKFinalizer}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"example.com/a", "example.com/b"}, s.web().GetFinalizers()); diff != "" {
		t.Error(diff)
	}
	if err := s.r.removeFinalizers(t.Context(), cr, []string{"example.com/a", "example.com/b"}); err != nil {
		t.Fatal(err)
	}
	s.settle()
	before := s.web()
	if err := s.r.addFinalizer(t.Context(), s.web()); err != nil {
		t.Fatal(err)
	}
	s.r.reader = behind{state: before}
	s.wrote = nil
	if result, err := s.reconcile(); err != nil || result.RequeueAfter == 0 || len(s.wrote) > 0 {
		t.Errorf("a cache that does not show it yet is acted on: %v, %v, wrote %v", result, err, s.wrote)
	}
	gone := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: gone, namespace: shop, resourceVersion: '1'}}")
	if err := s.r.addFinalizer(t.Context(), gone); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
}

// What the same questions are answered with decides whether a chart that looks is rendered again.
func TestAnswersAreCompared(t *testing.T) {
	answer, fails := map[string]any{"a": "b"}, error(nil)
	var asked []string
	look := chart.Lookup(func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		asked = append(asked, strings.Join([]string{apiVersion, kind, namespace, name}, " "))
		return answer, fails
	})
	is := &looked{}
	for _, name := range []string{"x", "y"} {
		if found, err := is.note(look)("v1", "ConfigMap", "shop", name); err != nil || found["a"] != "b" {
			t.Fatalf("%v, %v", found, err)
		}
	}
	fails = errAway
	if _, err := is.note(look)("v1", "ConfigMap", "shop", "z"); !errors.Is(err, errAway) {
		t.Error(err)
	}
	if same, err := is.same(look); same || !errors.Is(err, errAway) {
		t.Errorf("nobody answers: %t, %v", same, err)
	}
	asked, fails = nil, nil
	if same, err := is.same(look); !same || err != nil {
		t.Errorf("the same answers: %t, %v", same, err)
	}
	if diff := cmp.Diff([]string{"v1 ConfigMap shop x", "v1 ConfigMap shop y"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	answer = map[string]any{"a": "c"}
	if same, err := is.same(look); same || err != nil {
		t.Errorf("another answer: %t, %v", same, err)
	}
	if answerDigest(map[string]any{"f": func() {}}) != "" || answerDigest(nil) == "" {
		t.Error("what cannot be encoded is taken for something")
	}
}
