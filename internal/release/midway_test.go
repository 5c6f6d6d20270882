// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

func (s *shop) text(name string) any {
	s.t.Helper()
	if o := s.object(configs, "shop", name); o != nil {
		return o.Object["data"].(map[string]any)["text"]
	}
	return nil
}

// A change that failed midway and is taken back is taken back where it was made; what was begun stays in the inventory.
func TestAChangeThatIsTakenBackMidway(t *testing.T) {
	for name, templates := range map[string][]string{"a chart": {configTemplate, listTemplate},
		"one that takes its chance": {passwordTemplate, configTemplate, listTemplate}} {
		s := newShop(t, "", "{text: a, names: [b]}", chartOf(t, templates...), Options{})
		s.refusals["create Secret"], s.refusals["get Secret shop/sh"] = errAway, nil
		s.settle()
		s.asks("{text: z, names: [b, c]}")
		s.refusals["apply ConfigMap shop/b"] = errAway
		if _, err := s.reconcile(); !errors.Is(err, errAway) || s.text("web") != "z" {
			t.Fatalf("%s: %v", name, err)
		}
		if n := len(readInventory(s.web(), watches.Allow{})); n != len(templates)+1 {
			t.Errorf("%s: %d objects in the inventory", name, n)
		}
		delete(s.refusals, "apply ConfigMap shop/b")
		s.asks("{text: w, names: [b]}")
		s.refusals["apply ConfigMap shop/b"] = errAway
		if _, err := s.reconcile(); !errors.Is(err, errAway) || s.text("web") != "w" {
			t.Errorf("%s: another change: %v, it says %v", name, err, s.text("web"))
		}
		delete(s.refusals, "apply ConfigMap shop/b")
		s.asks("{text: a, names: [b]}")
		s.settle()
		if s.text("web") != "a" || s.text("b") != "a" {
			t.Errorf("%s: it says %v and %v", name, s.text("web"), s.text("b"))
		}
		s.says(name, map[string]string{"Deployed": "True InstallSuccessful: revision 1", "Ready": "True"})
	}
}

// So is one of which only the digest was not known; and what the cluster says while a revision is applied is not taken for what it was made
// by. A repair asks for nothing more.
func TestWhatIsAskedForAfterARevision(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, `{{ $_ := lookup "v1" "ConfigMap" "shop" "source" }}`+configTemplate), Options{})
	s.settle()
	s.settle()
	unanswered := func(request string) {
		if strings.HasPrefix(request, "apply ConfigMap") {
			s.refusals["get ConfigMap shop/source"] = errAway
		}
	}
	s.on = unanswered
	s.remove(configs, "shop", "web")
	if s.must(); s.text("web") != "a" {
		t.Errorf("repaired: it says %v", s.text("web"))
	}
	s.on = nil
	delete(s.refusals, "get ConfigMap shop/source")
	s.asks("{text: z}")
	s.on = unanswered
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.text("web") != "z" {
		t.Errorf("%v, it says %v", err, s.text("web"))
	}
	s.on = nil
	delete(s.refusals, "get ConfigMap shop/source")
	s.asks("{text: a}")
	if s.settle(); s.text("web") != "a" {
		t.Errorf("taken back: it says %v", s.text("web"))
	}
	s.says("taken back", map[string]string{"Deployed": "True InstallSuccessful: revision 1", "ReleaseFailed": "False"})

	s = newShop(t, "", "{text: a}", chartOf(t, routedTemplate), Options{})
	s.on = func(string) { s.asker.apis, s.clock = []string{"v1", routeAPI}, now.Add(capabilitiesFor) }
	s.must()
	if s.must(); s.object(routes, "shop", "web") == nil {
		t.Error("an API that came meanwhile is missed")
	}
}

// What comes first holds up what comes after: an inventory that is not written, children that are not deleted or not seen.
func TestWhatComesFirstHoldsUpTheRest(t *testing.T) {
	s := newShop(t, "", "{text: a, names: [b]}", chartOf(t, configTemplate, listTemplate), Options{})
	fails := func(request, says string) {
		t.Helper()
		s.refusals[request] = errAway
		if _, err := s.reconcile(); !errors.Is(err, errAway) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", request, err)
		}
		delete(s.refusals, request)
	}
	if fails("status of Web shop/web: inventory", "record the inventory"); s.text("web") != nil {
		t.Error("something is made that no inventory lists")
	}
	s.on = func(request string) {
		if strings.HasPrefix(request, "apply ConfigMap shop/b") {
			s.refusals["cache"] = errAway
		}
	}
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("what was made is not seen: %v", err)
	}
	s.on = nil
	delete(s.refusals, "cache")
	s.settle()
	s.asks("{text: a}")
	fails("delete ConfigMap", "delete ConfigMap shop/b")
	s.says("not deleted", map[string]string{"Deployed": "True InstallSuccessful: revision 1", "ReleaseFailed": "True UpgradeError"})
	s.settle()
	s.says("deleted", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2", "ReleaseFailed": "False"})
}

// Whatever place is not known at whatever moment: nothing is made in another, and it is asked for again.
func TestPlacesThatAreNotKnown(t *testing.T) {
	for last := range 40 {
		s := newShop(t, "", "{text: a, routed: true}", chartOf(t, routedTemplate, configTemplate), Options{Awaits: routed})
		s.settle()
		s.asker.apis, s.clock = []string{"v1", routeAPI}, s.clock.Add(capabilitiesFor)
		known, calls := s.r.namespaced, 0
		s.r.namespaced = func(kind schema.GroupVersionKind) (bool, error) {
			if calls++; calls == last+1 {
				return false, errAway
			}
			return known(kind)
		}
		_, err := s.reconcile()
		if calls <= last {
			if err != nil || last < 5 {
				t.Errorf("%d calls: %v", calls, err)
			}
			return
		}
		if !errors.Is(err, errAway) || s.object(routes, "shop", "web") != nil {
			t.Errorf("call %d: %v, %v", last, err, s.wrote)
		}
		s.settle()
		s.says("then", map[string]string{"ReleaseFailed": "False"})
		if s.object(routes, "shop", "web") == nil || s.object(configs, "shop", "plain") == nil {
			t.Errorf("call %d: then it is not made", last)
		}
	}
	t.Error("there is no end to it")
}

// behind is a cache that shows one state of an object for ever.
type behind struct {
	client.Reader
	state *unstructured.Unstructured
}

func (b behind) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	b.state.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

// A cache that does not show our own write yet is not acted on: nothing is done, or told, twice.
func TestACacheThatIsBehind(t *testing.T) {
	for what, metadata := range map[string]string{"the status": "", "the finalizer": waitsForChildren} {
		s := newShop(t, metadata, "{text: a}", chartOf(t, configTemplate), Options{})
		s.r.reader = behind{state: s.web()}
		s.must()
		if len(s.wrote) == 0 {
			t.Fatal("nothing is written")
		}
		s.told()
		s.must()
		if result, err := s.reconcile(); err != nil || result.RequeueAfter == 0 || len(s.wrote)+len(s.read)+len(s.told()) > 0 {
			t.Errorf("%s: %v, %v, wrote %v", what, result, err, s.wrote)
		}
	}
}

// What a child said before it was changed says nothing of the change: neither is the resource ready, nor its turn over, before the cache
// shows the child as it was applied.
func TestReadyIsOfWhatWasApplied(t *testing.T) {
	const available = "{observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}"
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, deploymentTemplate), Options{})
	s.settle()
	s.sets(deployments, "web", available)
	s.settle()
	s.says("at first", map[string]string{"Ready": "True"})
	s.former = map[string]*unstructured.Unstructured{"Deployment web": s.object(deployments, "shop", "web")}
	s.asks("{text: z}")
	for range 3 {
		s.must()
		s.says("while the cache is behind", map[string]string{"Ready": "False ChildNotReady: Deployment web is not seen yet as it was applied",
			"Deployed": "True"})
	}
	lags := effect{children: []Child{{Behind: true}}, deployed: Deployed{Chart: "web-2", Turn: Turn{Chart: "web-2"}}}
	isReady := []metav1.Condition{{Type: TypeReady, Status: metav1.ConditionTrue}}
	if turn := lags.turnOf(isReady, now); !turn.DoneAt.IsZero() {
		t.Errorf("its turn is over: %v", turn)
	}
	s.former = nil
	s.must()
	s.says("when it shows the change", map[string]string{"Ready": "True"})
}

// What a chart sees of its revision is what Helm shows it.
func TestWhatAChartSeesOfItsRevision(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, labels: {a: {{ .Values.text }}}}\ndata:\n"+
			"  text: \"{{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Name }} {{ .Release.Namespace }}\"\n"), Options{})
	if s.settle(); s.text("web") != "1 true false web shop" {
		t.Errorf("at first: %v", s.text("web"))
	}
	s.asks("{text: z}")
	if s.settle(); s.text("web") != "2 false true web shop" {
		t.Errorf("then: %v", s.text("web"))
	}
	ref, err := s.r.refOf(parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: shop}}"), s.web())
	if err != nil || ref.Namespace != "" {
		t.Errorf("what is in no namespace: %v, %v", ref, err)
	}
}

// What was rendered is remembered as long as its hooks run, or while it cannot be rendered again; else it is not.
func TestWhatIsRemembered(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.refusals["apply"] = errAway
	if _, err := s.reconcile(); err == nil || s.r.memory.Get("u").rendered != nil {
		t.Errorf("a chart that renders the same again: %v", err)
	}
	s = newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("h", "post-install", "hook-succeeded")), Options{})
	if s.settle(); s.r.memory.Get("u").rendered == nil {
		t.Error("its hooks run")
	}
	s.endJobs(completed)
	got := s.settle()
	if recorded := slices.Index(got, "status of Web shop/web: hooks"); recorded < 0 || slices.Index(got, "delete Job shop/h") != recorded+1 {
		t.Errorf("that a hook ended is written down before it is deleted: %v", got)
	}
	if s.r.memory.Get("u").rendered != nil {
		t.Error("its hooks have run")
	}
	s = newShop(t, "", "{text: a}", chartOf(t, passwordTemplate, sourceTemplate), Options{})
	s.settle()
	s.wants("a chart that looks, and gives something else each time", s.settle())
	s.restart()
	s.wants("the same, of another process", s.settle())
	s.says("installed", map[string]string{"Deployed": "True InstallSuccessful: revision 1"})
}

// Hooks that follow an installation run although its status could not be written at once, or was without an answer.
func TestHooksAfterAStatusThatWasNotWrittenDown(t *testing.T) {
	for _, answered := range []bool{false, true} {
		s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("h", "post-install", "")), Options{})
		s.refusals["status of Web shop/web: conditions"] = errAway
		if _, err := s.reconcile(); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		delete(s.refusals, "status of Web shop/web: conditions")
		if !answered {
			s.must()
			s.r.memory.Update("u", func(m *memory) { m.applied = "" }) // it does not know that this was written
		}
		if s.settle(); s.object(jobs, "shop", "h") == nil {
			t.Errorf("answered %t: the hook does not run", answered)
		}
	}
}

// A repair that waits until a child is gone is not tried again and again: its disappearance is an event.
func TestRepairAwaitsADeletion(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, deploymentTemplate), Options{})
	s.settle()
	s.settle()
	s.change(configs, "shop", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/held"}) })
	s.remove(configs, "shop", "web")
	s.remove(deployments, "shop", "web")
	s.settle()
	if s.object(deployments, "shop", "web") == nil {
		t.Error("it is not repaired")
	}
	for range 3 {
		if result, err := s.reconcile(); err != nil || result.RequeueAfter > 0 && result.RequeueAfter <= goOn {
			t.Errorf("%v, %v", result, err)
		}
	}
}

// The inventory tells of children as they are, also when a status could not be written after they were made anew.
func TestAnInventoryThatWasNotWrittenDown(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	s.wants("it is seen", s.settle())
	s.remove(configs, "shop", "web")
	s.refusals["status"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "web") == nil {
		t.Fatal(err)
	}
	delete(s.refusals, "status")
	s.settle()
	if known := readInventory(s.web(), s.r.entry.Allow); known[0].UID != s.object(configs, "shop", "web").GetUID() {
		t.Errorf("%s is in the inventory, not %s", known[0].UID, s.object(configs, "shop", "web").GetUID())
	}
	s.wants("idle", s.settle())
}

// What was begun and could not be written down goes on.
func TestAHookThatWasNotWrittenDown(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("h", "pre-install", "")), Options{})
	s.refusals["status"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(jobs, "shop", "h") == nil {
		t.Fatal(err)
	}
	delete(s.refusals, "status")
	s.settle()
	if event, _, _ := unstructured.NestedString(s.web().Object, "status", "hooks", "event"); event != "pre-install" {
		t.Errorf("hooks of %q run", event)
	}
	s = newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("h", "pre-install", "")), Options{})
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != goOn {
		t.Errorf("a hook that was just made is looked at: %v, %v", result, err)
	}
}

// The answers that a deletion and a lookup need after something was done are awaited.
func TestAnswersThatAreMissingAfterwards(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, keptTemplate), Options{})
	s.on = func(request string) {
		if strings.HasPrefix(request, "apply Secret") {
			s.refusals["get Secret shop/web"] = errAway
		}
	}
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("what was made is not looked at: %v", err)
	}
	s = newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate, hookTemplate("h", "post-install", "")), Options{},
		namespace("shop"))
	s.play(func() {})
	s.deletes()
	s.on = func(request string) {
		if strings.HasPrefix(request, "delete ConfigMap") {
			s.refusals["get ConfigMap"] = errAway
		}
	}
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("whether it is gone is not known: %v", err)
	}
	s.on = nil
	delete(s.refusals, "get ConfigMap")
	s.refusals["delete Job"] = errAway
	var err error
	for range 3 {
		_, err = s.reconcile()
	}
	if !errors.Is(err, errAway) || s.web() == nil || s.object(secrets, "shop", chart.StoredName("web", 1)) == nil {
		t.Fatalf("it is gone, or its history is, before its hooks are: %v", err)
	}
	delete(s.refusals, "delete Job")
	if s.settle(); s.web() != nil || s.object(jobs, "shop", "h") != nil {
		t.Error("something is left")
	}
}
