// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// leaveRelease makes what helm-operator leaves: objects of its own, and a record for each revision.
func (s *shop) leaveRelease(revisions ...int64) {
	s.t.Helper()
	cr := s.web()
	for _, revision := range revisions {
		rendered, err := s.r.render(s.t.Context(), cr, cr.Object["spec"].(map[string]any), revision)
		if err != nil {
			s.t.Fatal(err)
		}
		if c := s.r.recordHistory(s.t.Context(), cr, rendered, revision); c.Status != "True" {
			s.t.Fatal(c)
		}
		s.change(secrets, "shop", chart.StoredName("web", int(revision)), func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		for _, o := range rendered.Objects {
			if s.object(o.GroupVersionKind(), "shop", o.GetName()) != nil {
				continue
			}
			made := o.DeepCopy()
			made.SetNamespace("shop")
			ofOurs(made)
			made.SetLabels(nil)
			if err := s.put(made); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.restart()
	s.wrote, s.read = nil, nil
}

// The release of another operator becomes ours as it is, with its objects and its revision.
func TestAReleaseIsTakenOver(t *testing.T) {
	for _, finalizer := range []string{Finalizer, SDKFinalizer} {
		s := newShop(t, "finalizers: ["+finalizer+"]", "{text: a}", chartOf(t, configTemplate, hookTemplate("h", "pre-upgrade", "")), Options{},
			namespace("shop"))
		s.leaveRelease(3)
		uid := s.object(configs, "shop", "web").GetUID()
		got := s.settle()
		if slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "delete") || strings.HasPrefix(w, "create") }) {
			t.Errorf("written: %v", got)
		}
		s.says("taken over", map[string]string{"Deployed": "True UpgradeSuccessful: revision 3", "Ready": "True",
			"HistoryRecorded": "True Recorded"})
		if now := s.object(configs, "shop", "web"); now.GetUID() != uid || s.object(secrets, "shop", chart.StoredName("web", 4)) != nil {
			t.Errorf("it is made anew: %v", now)
		}
		s.wants("told", s.told(), "Normal TakenOver revision 3 of another operator: configured ConfigMap shop/web")
		s.wants("idle", append(s.settle(), s.read...))
		s.asks("{text: z}")
		s.play(func() {})
		s.says("then", map[string]string{"Deployed": "True UpgradeSuccessful: revision 4"})
		s.deletes()
		s.play(func() {})
		if s.web() != nil || s.object(secrets, "shop", chart.StoredName("web", 3)) != nil {
			t.Error("something of it is left")
		}
	}
}

// Only records of the very release count; one of them that cannot be read holds a takeover up.
func TestRecordsOfOthersAreNotTakenOver(t *testing.T) {
	secret := func(name, owner, kind string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"owner": "helm",
			"name": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Web", Name: "web", UID: types.UID(owner)}}},
			Type: corev1.SecretType(kind), Data: map[string][]byte{"release": []byte("nonsense")}}
	}
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{},
		secret("a", "another", chart.StoredType), secret("b", "u", "Opaque"))
	s.leaveRelease(3)
	s.settle()
	s.says("taken over", map[string]string{"Deployed": "True UpgradeSuccessful: revision 3"})
	s = newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{}, secret("c", "u", chart.StoredType))
	if _, err := s.reconcile(); err == nil || !strings.Contains(err.Error(), "read c: ") || s.object(configs, "shop", "web") != nil {
		t.Errorf("%v", err)
	}
	unknown := &chart.StoredRelease{Revision: 1, Rendered: &chart.Rendered{Objects: []*unstructured.Unstructured{parse(t,
		"{apiVersion: v1, kind: ConfigMap}")}}}
	if _, err := formerOf([]*chart.StoredRelease{unknown}, func(*unstructured.Unstructured) (apply.Ref, error) {
		return apply.Ref{},
			errAway
	}); !errors.Is(err, errAway) {
		t.Errorf("whose place is not known: %v", err)
	}
	named := &chart.StoredRelease{Rendered: &chart.Rendered{Objects: []*unstructured.Unstructured{
		parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: other}, data: {a: b}}")}}}
	onlyNames(named)
	if o := named.Rendered.Objects[0]; apply.RefOf(o).String() != "Secret other/a" || o.Object["data"] != nil {
		t.Errorf("%v", o)
	}
}

// A release that asks for something else by now is upgraded: to the next revision, and what it had besides goes.
func TestAReleaseThatChangedIsUpgraded(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a, names: [b]}", chartOf(t, configTemplate, listTemplate), Options{})
	s.leaveRelease(2, 3)
	s.asks("{text: a, names: [c]}")
	s.settle()
	s.says("upgraded", map[string]string{"Deployed": "True UpgradeSuccessful: revision 4", "Ready": "True"})
	for name, there := range map[string]bool{"web": true, "b": false, "c": true} {
		if (s.object(configs, "shop", name) != nil) != there {
			t.Errorf("%s is there: %t", name, !there)
		}
	}
}

// A resource that is deleted before its release was taken over takes that along.
func TestAReleaseThatIsDeletedBeforeItWasTakenOver(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate, hookTemplate("bye", "pre-delete", "")), Options{},
		namespace("shop"))
	s.leaveRelease(1)
	s.deletes()
	got := s.play(func() {})
	if s.web() != nil || s.object(configs, "shop", "web") != nil || !slices.Contains(got, "create Job shop/bye") {
		t.Errorf("something of it is left: %v", got)
	}
}

// Where Secrets may not be listed it is told what would let the release be taken over, and nothing is made over it.
func TestATakeoverThatIsForbidden(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{ServiceAccount: "ops:op"})
	s.leaveRelease(1)
	s.refusals["list"] = apierrors.NewForbidden(corev1.Resource("secrets"), "x", nil)
	s.wants("written", s.settle(), "status of Web shop/web: conditions observedGeneration")
	s.says("forbidden", map[string]string{"Irreconcilable": "True Forbidden: another operator may have left a release", "Deployed": "False"})
	if message := s.condition("Irreconcilable"); !strings.Contains(message, "--serviceaccount=ops:op") {
		t.Errorf("it says %s", message)
	}
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != retryForeign {
		t.Errorf("%v, %v", result, err)
	}
}

// Who owns an object, and in which words its namespace is written down, is no difference; all else is.
func TestSameObjects(t *testing.T) {
	const ours = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}"
	for text, want := range map[string]bool{
		ours: true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {a: b}}":                                            true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}, data: {a: b}}":                                           false,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}, annotations: {}}, data: {a: b}}":                                true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {" + handler.TypeAnnotation + ": x}}, data: {a: b}}":           true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {" + handler.NamespacedNameAnnotation + ": x}}, data: {a: b}}": true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {c: d}}, data: {a: b}}":                                        false,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {c: d}}, data: {a: b}}":                                             false,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}, status: {}}":                                                 true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: c}}":                                                             false,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: b}}":                                                                false,
	} {
		theirs := parse(t, text)
		before := theirs.DeepCopy()
		if sameObjects([]*unstructured.Unstructured{parse(t, ours)}, []*unstructured.Unstructured{theirs}, "shop") != want {
			t.Errorf("%s: %t", text, !want)
		}
		if text == ours && before.GetName() != theirs.GetName() {
			t.Error("what is compared is changed")
		}
	}
}
