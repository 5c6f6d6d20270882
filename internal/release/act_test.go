// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

var errAway = errors.New("connection refused")

// immutable is a refusal to change an object in place.
func immutable() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web",
		field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable")})
}

// What a revision consists of is written down before it is made, what is no longer rendered goes after that, then comes the history, and
// the status says last that the revision is deployed. An object that is as it was applied costs no request.
func TestARevisionIsDeployedInOrder(t *testing.T) {
	s := newShop(t, "", "{text: a, names: [b, c]}", chartOf(t, configTemplate, listTemplate), Options{})
	s.wants("install", s.settle(), "status of Web shop/web: inventory",
		"apply ConfigMap shop/web", "apply ConfigMap shop/b", "apply ConfigMap shop/c", "create Secret shop/sh.helm.release.v1.web.v1",
		"status of Web shop/web: conditions deployedRelease inventory observedGeneration")
	s.wants("told", s.told(), "Normal Installed created ConfigMap shop/web, created ConfigMap shop/b, created ConfigMap shop/c")
	s.says("installed", map[string]string{"Deployed": "True InstallSuccessful: revision 1 of release web",
		"Ready": "True ChildrenReady: all 3 objects are ready", "Progressing": "False ChildrenReady", "ReleaseFailed": "False NotFailed",
		"Irreconcilable": "False Reconcilable", "Stalled": "False NotStalled", "HistoryRecorded": "True Recorded", "Paused": "False NotPaused"})
	s.wants("idle", append(s.settle(), s.read...))

	s.asks("{text: a, names: [d]}")
	s.wants("upgrade", s.settle(), "status of Web shop/web: inventory", "apply ConfigMap shop/d",
		"delete ConfigMap shop/c", "delete ConfigMap shop/b",
		"update Secret shop/sh.helm.release.v1.web.v1", "create Secret shop/sh.helm.release.v1.web.v2",
		"status of Web shop/web: conditions deployedRelease inventory observedGeneration")
	s.wants("told", s.told(),
		"Normal Upgraded revision 2: created ConfigMap shop/d, deleted ConfigMap shop/c, deleted ConfigMap shop/b")
	s.says("upgraded", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2 of release web"})
	s.wants("idle", append(append(s.settle(), s.read...), s.told()...))

	s.restart()
	s.wants("idle after a start", append(append(s.settle(), s.read...), s.told()...))
	s.change(configs, "shop", "d", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"text": "theirs"} })
	s.wants("a change of somebody else", s.settle(), "apply ConfigMap shop/web", "apply ConfigMap shop/d", // each once by a process
		"status of Web shop/web: inventory")
	if slices.ContainsFunc(s.read, func(r string) bool { return strings.HasPrefix(r, "get Secret") }) {
		t.Errorf("what is rendered the same again is not looked up: %v", s.read)
	}
	s.wants("told", s.told(), "Normal Repaired configured ConfigMap shop/d")
	s.wants("idle", append(s.settle(), s.read...))
	if text := s.object(configs, "shop", "d").Object["data"].(map[string]any)["text"]; text != "a" {
		t.Errorf("the ConfigMap says %v", text)
	}
	s.remove(configs, "shop", "d")
	s.wants("a deletion by somebody else", s.settle(), "apply ConfigMap shop/d", "status of Web shop/web: inventory")
	s.wants("told", s.told(), "Normal Repaired recreated ConfigMap shop/d")
	if s.says("repaired", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"}); s.object(secrets, "shop",
		"sh.helm.release.v1.web.v3") != nil {
		t.Error("a repair is no revision")
	}
}

// A reconciliation that ends anywhere leaves nothing that the status does not name, and the next one goes on.
func TestEveryWriteMayBeTheLast(t *testing.T) {
	for last := range 8 {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			s := newShop(t, "", "{text: a, names: [b, c]}", chartOf(t, configTemplate, listTemplate), Options{})
			s.settle()
			s.asks("{text: z, names: [c, d]}")
			s.wrote = nil
			s.ends = last + 1
			_, err := s.reconcile()
			if s.ends = 0; len(s.wrote) != last+1 {
				t.Fatalf("there are %d writes", len(s.wrote))
			}
			named := refsIn(readInventory(s.web(), watches.Allow{}))
			for _, name := range []string{"web", "b", "c", "d"} {
				if o := s.object(configs, "shop", name); o != nil && !slices.ContainsFunc(named, apply.RefOf(o).Same) {
					t.Errorf("the status does not name %s", name)
				}
			}
			if deployed := readDeployed(s.web()).Revision; err == nil || deployed != 1 {
				t.Errorf("%s: %v, revision %d is said to be deployed", s.wrote[last], err, deployed)
			}
			for range 2 { // with the same process, then with another one
				s.settle()
				s.says("then", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2", "Ready": "True", "ReleaseFailed": "False",
					"HistoryRecorded": "True"})
				for name, text := range map[string]string{"web": "z", "c": "z", "d": "z", "b": ""} {
					o := s.object(configs, "shop", name)
					if (o != nil) != (text != "") || o != nil && o.Object["data"].(map[string]any)["text"] != text {
						t.Errorf("%s: %v", name, o)
					}
				}
				if len(readInventory(s.web(), watches.Allow{})) != 3 {
					t.Errorf("the inventory: %v", s.web().Object["status"])
				}
				s.restart()
			}
		})
	}
}

// A refusal is told once, with what it means, and tried again as long as that may help.
func TestWhatIsRefusedIsTold(t *testing.T) {
	rbac := apierrors.NewForbidden(corev1.Resource("configmaps"), "web",
		errors.New(`User "op" cannot patch resource "configmaps" in API group "" in the namespace "shop"`))
	for name, tt := range map[string]struct {
		request string
		answer  error
		retried bool // at once, with backoff
		later   bool // after a minute
		says    map[string]string
	}{
		"nobody answers": {"apply", errAway, true, false,
			map[string]string{"ReleaseFailed": "True InstallError: apply ConfigMap shop/web: connection",
				"Irreconcilable": "False", "Stalled": "False NotStalled", "Ready": "False ReconcileError: apply ConfigMap",
				"Progressing": "True ReconcileError: apply"}},
		"the operator may not": {"apply", rbac, false, true, map[string]string{"ReleaseFailed": "True InstallError: the operator may not patch",
			"Irreconcilable": "True Forbidden: the operator may not patch ConfigMap shop/web",
			"Stalled":        "True Forbidden: the operator may not patch",
			"Ready":          "False Forbidden", "Progressing": "False Forbidden"}},
		"it cannot be changed": {"apply", immutable(), false, false,
			map[string]string{"Irreconcilable": "True ImmutableField: ConfigMap shop/web"}},
		"the history": {"create Secret", errAway, false, false, map[string]string{"HistoryRecorded": "False WriteFailed: record revision 1",
			"Ready": "True", "ReleaseFailed": "False"}},
		"the inventory": {"status", errAway, true, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
			s.refusals[tt.request] = tt.answer
			for range 2 {
				result, err := s.reconcile()
				if (err != nil) != tt.retried || (result.RequeueAfter == retryForeign) != tt.later {
					t.Errorf("%v, %v", result, err)
				}
				s.says(name, tt.says)
			}
			told := s.told()
			warnings := slices.DeleteFunc(slices.Clone(told), func(e string) bool { return !strings.HasPrefix(e, "Warning ") })
			if failed := s.condition("ReleaseFailed"); strings.HasPrefix(failed, "True") && len(told) > len(warnings) {
				t.Errorf("told as if it were done: %q", told)
			}
			if len(warnings) != min(len(tt.says), 1) {
				t.Errorf("told: %q", warnings)
			}
			delete(s.refusals, tt.request)
			s.settle()
			s.says("when it is not refused any more", map[string]string{"Ready": "True", "ReleaseFailed": "False NotFailed",
				"Irreconcilable": "False Reconcilable", "Deployed": "True", "HistoryRecorded": "True"})
		})
	}
}

// Objects of others are neither changed nor deleted, by whatever name they have.
func TestWhatIsNotOursStays(t *testing.T) {
	foreign := func(namespace, name string) *corev1.ConfigMap {
		c := &corev1.ConfigMap{Data: map[string]string{"text": "theirs"}}
		c.Namespace, c.Name, c.UID = namespace, name, "theirs"
		return c
	}
	s := newShop(t, "", "{text: a, names: [b]}", chartOf(t, configTemplate, listTemplate), Options{}, foreign("shop", "b"),
		foreign("other", "web"))
	s.settle()
	s.says("a name is taken", map[string]string{"Irreconcilable": "True ObjectNotOurs: ConfigMap shop/b exists"})
	if s.object(configs, "shop", "web") != nil {
		t.Error("half of a release was made although the cache shows that it cannot be")
	}
	s.asks("{text: a}")
	s.settle()
	s.says("another name", map[string]string{"Irreconcilable": "False", "Ready": "True", "Deployed": "True"})
	// whoever may write the status may name anything
	s.edit(func(o *unstructured.Unstructured) {
		entry := func(namespace, name string) any {
			return map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name}
		}
		list := o.Object["status"].(map[string]any)["inventory"].([]any)
		o.Object["status"].(map[string]any)["inventory"] = append(list, entry("shop", "b"), entry("other", "web"))
	})
	s.asks("{text: z}")
	s.settle()
	s.deletes()
	s.settle()
	for _, namespace := range []string{"shop/b", "other/web"} {
		at, name, _ := strings.Cut(namespace, "/")
		if o := s.object(configs, at, name); o == nil || o.Object["data"].(map[string]any)["text"] != "theirs" {
			t.Errorf("%s: %v", namespace, o)
		}
	}
}

// What cannot be changed in place is deleted and made anew only where somebody asked for it.
func TestForcedUpgrade(t *testing.T) {
	for force, want := range map[string]string{"true": "", "false": "True ImmutableField", "yes": "True ImmutableField"} {
		s := newShop(t, "", "{text: a}", chartOf(t, deploymentTemplate), Options{})
		s.settle()
		s.told()
		s.edit(annotated(UpgradeForceAnnotation, force))
		s.asks("{text: z}")
		s.refusals["apply Deployment"] = immutable()
		s.settle()
		if want != "" {
			s.says("not forced", map[string]string{"Irreconcilable": want, "ReleaseFailed": "True UpgradeError"})
			if s.object(deployments, "shop", "web") == nil {
				t.Errorf("with %q it is deleted", force)
			}
			continue
		}
		s.wants("told", s.told(), "Normal Upgraded revision 2: deleted Deployment shop/web")
		if s.object(deployments, "shop", "web") != nil {
			t.Error("it is not deleted")
		}
		delete(s.refusals, "apply Deployment")
		if s.wants("then", s.settle()[:1], "apply Deployment shop/web"); s.object(deployments, "shop", "web") == nil {
			t.Error("it is not made anew")
		}
		s.says("then", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"})
	}
}

// A kind that cannot be watched gets no objects: nobody would hear of what becomes of them.
func TestKindsAreWatchedFirst(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.unwatched = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "web") != nil {
		t.Errorf("%v, %v", err, s.wrote)
	}
	s.unwatched, s.watched = nil, nil
	if s.settle(); !slices.Contains(s.watched, "ConfigMap") || s.object(configs, "shop", "web") == nil {
		t.Errorf("watched: %v", s.watched)
	}
}

// A history that may not be kept is tried once by each process, and so is one whose name another release has; what failed may pass. What is
// not known any more is not recorded, but only if it is known that it is not.
func TestHowOftenTheHistoryIsTried(t *testing.T) {
	const record = "create Secret shop/sh.helm.release.v1.web.v1"
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.refusals["create Secret"] = forbidden
	s.settle()
	s.wants("it was tried", s.settle())
	s.restart()
	s.wants("another process", s.settle(), record)
	s.wants("it has tried, too", s.settle())
	s.says("forbidden", map[string]string{"HistoryRecorded": "False Forbidden"})

	for template, free := range map[string]string{configTemplate: "True Recorded", passwordTemplate: "False NameTaken"} {
		s = newShop(t, "", "{text: a}", chartOf(t, template), Options{}, foreignRecord(1))
		s.settle()
		s.restart()
		s.settle()
		s.says("taken", map[string]string{"HistoryRecorded": "False NameTaken"})
		s.remove(secrets, "shop", chart.StoredName("web", 1))
		s.restart()
		s.settle()
		s.says("free", map[string]string{"HistoryRecorded": free})
	}

	s = newShop(t, "", "{text: a}", chartOf(t, passwordTemplate), Options{})
	s.refusals["create Secret"] = errAway
	s.settle()
	s.restart()
	s.refusals["get Secret shop/sh"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("whether it is recorded is not known: %v", err)
	}
	s.says("it is not known", map[string]string{"HistoryRecorded": "False WriteFailed"})
	s.refusals["get Secret shop/sh"] = forbidden
	s.settle()
	s.says("it was not recorded", map[string]string{"HistoryRecorded": "False RenderingLost"})
}

// A repair that leaves hooks or a record to be done goes on with them, since no event may tell of it; else there is nothing to go on with.
// After an installation the events of its objects do.
func TestWhatFollowsARepair(t *testing.T) {
	for name, tt := range map[string]struct {
		hooks, unrecorded, repair bool
		want                      time.Duration
	}{
		"a repair":                             {false, false, true, 0},
		"a repair while hooks run":             {true, false, true, goOn},
		"a repair of what is not recorded":     {false, true, true, goOn},
		"an installation that is not recorded": {false, true, false, 0},
	} {
		templates := []string{configTemplate}
		if tt.hooks {
			templates = append(templates, hookTemplate("h", "post-install", ""))
		}
		s := newShop(t, "", "{text: a}", chartOf(t, templates...), Options{})
		if tt.unrecorded {
			s.refusals["create Secret"] = errAway
		}
		if tt.repair {
			s.settle()
			s.settle()
			s.remove(configs, "shop", "web")
		}
		result, err := s.reconcile()
		if err != nil || result.RequeueAfter != tt.want || s.object(configs, "shop", "web") == nil {
			t.Errorf("%s: %v, %v", name, result, err)
		}
	}
}
