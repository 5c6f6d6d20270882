// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CRDs of a chart are made before its first release, and neither changed nor deleted ever; the release waits until they are served.
func TestCRDsComeFirst(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{})
	crd := func(name string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "+name+"}, spec: {group: ours}}")
	}
	theirs := crd("b.example.com")
	theirs.Object["spec"] = map[string]any{"group": "theirs"}
	if err := s.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	s.r.crds.client, s.r.crds.crds = s.live(), []*unstructured.Unstructured{crd("a.example.com"), crd("b.example.com")}
	serve := func(name string) { s.sets(crds, name, `{conditions: [{type: Established, status: "True"}]}`) }
	s.refusals["create CustomResourceDefinition"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "a.example.com of the chart's crds/") {
		t.Errorf("not made: %v", err)
	}
	delete(s.refusals, "create CustomResourceDefinition")
	result, err := s.reconcile()
	if err != nil || result.RequeueAfter != servedAfter || s.object(configs, "shop", "web") != nil {
		t.Errorf("made: %v, %v", result, err)
	}
	if s.object(crds, "", "a.example.com") == nil {
		t.Fatal("it is not made")
	}
	err = s.r.crds.install(t.Context())
	if !errors.Is(err, errNotServed) || !strings.Contains(err.Error(), "a.example.com, b.example.com of the chart's crds/") {
		t.Errorf("neither is served: %v", err)
	}
	serve("b.example.com")
	if err := s.r.crds.install(t.Context()); !errors.Is(err, errNotServed) || strings.Contains(err.Error(), "b.example.com") {
		t.Errorf("one is served: %v", err)
	}
	serve("a.example.com")
	s.settle()
	if s.says("both are served", map[string]string{"Ready": "True"}); s.object(configs, "shop", "web") == nil {
		t.Error("the release is not made")
	}
	s.asks("{text: z}")
	s.settle()
	if slices.ContainsFunc(append(s.read, s.wrote...), func(w string) bool { return strings.Contains(w, "CustomResourceDefinition") }) {
		t.Errorf("they are looked at again: %v, %v", s.read, s.wrote)
	}
	s.deletes()
	s.settle()
	for name, group := range map[string]string{"a.example.com": "ours", "b.example.com": "theirs"} {
		if o := s.object(crds, "", name); o == nil || o.Object["spec"].(map[string]any)["group"] != group {
			t.Errorf("%s: %v", name, o)
		}
	}
}

// An operator that may not make CRDs says what helps.
func TestCRDsThatAreForbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "a", errors.New("no"))
	for _, request := range []string{"get", "create"} {
		s := newServer(t)
		i := crdInstaller{client: s.live(), crds: []*unstructured.Unstructured{
			parse(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}")}}
		s.refusals[request] = forbidden
		if err := i.install(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "install the CRDs yourself") {
			t.Errorf("%s: %v", request, err)
		}
		s.refusals = nil
		if err := i.install(t.Context()); !errors.Is(err, errNotServed) {
			t.Errorf("%s, then: %v", request, err)
		}
	}
}
