// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	routeAPI = "gateway.networking.k8s.io/v1/HTTPRoute"
	// routedTemplate makes a route where the cluster has such, else a ConfigMap.
	routedTemplate = `{{ if .Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/HTTPRoute" }}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: {{ .Release.Name }}}
spec:
  hostnames: [{{ .Values.text | quote }}]
  parentRefs:
  - name: g
{{ else }}
{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {text: {{ .Values.text | quote }}}}
{{ end }}`
	accepted = `{parents: [{parentRef: {name: g}, conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "True"}]}]}`
	refused  = `{parents: [{parentRef: {name: g}, conditions: [{type: Accepted, status: "False", reason: R, message: m}]}]}`
)

func routed(cr *unstructured.Unstructured) []string {
	if asked, _, _ := unstructured.NestedBool(cr.Object, "spec", "routed"); asked {
		return []string{routeAPI}
	}
	return nil
}

// What is reached through a former object is reached all the time: it stays until the one that replaces it works.
func TestAFormerObjectStaysUntilTheNextOneWorks(t *testing.T) {
	s := newShop(t, "", "{text: a, routed: true}", chartOf(t, routedTemplate, configTemplate), Options{Awaits: routed})
	s.settle()
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != incompleteFor || s.object(configs, "shop", "plain") == nil {
		t.Errorf("without the API: %v, %v", result, err)
	}
	s.says("without the API", map[string]string{"Ready": "True", "Deployed": "True InstallSuccessful"})
	s.told()
	s.asker.apis = []string{"v1", routeAPI}
	s.clock = s.clock.Add(incompleteFor)
	s.wants("the API is there", s.settle(), "status of Web shop/web: inventory", "apply HTTPRoute shop/web",
		"status of Web shop/web: conditions inventory")
	s.says("the route is new", map[string]string{"Deployed": "True InstallSuccessful: revision 1"})
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != retryForeign || len(s.told()) > 0 {
		t.Errorf("the route is new: %v, %v", result, err)
	}
	s.sets(routes, "web", refused)
	s.wants("the route does not work", s.settle(), "status of Web shop/web: conditions")
	s.says("the route does not work", map[string]string{"Ready": "False ChildNotReady: HTTPRoute web is not accepted by Gateway shop/g: R: m"})
	s.unseen["HTTPRoute web"] = true
	s.settle()
	delete(s.unseen, "HTTPRoute web")
	if s.object(configs, "shop", "plain") == nil {
		t.Error("the former object is gone")
	}
	s.sets(routes, "web", accepted)
	if got := s.settle(); s.object(configs, "shop", "plain") != nil || !slices.Contains(got, "delete ConfigMap shop/plain") {
		t.Errorf("the route works: %v", got)
	}
	s.says("the route works", map[string]string{"Ready": "True", "Deployed": "True UpgradeSuccessful: revision 2"})
	s.wants("told", s.told(), "Normal Upgraded revision 2: deleted ConfigMap shop/plain")
}

// Nothing stands in where nothing was before, where nobody asks for it, and what cannot be looked at is not taken for ready.
func TestStandIns(t *testing.T) {
	ready := func(s *shop, _ *[]string) {
		s.sets(routes, "web", accepted)
	}
	for name, tt := range map[string]struct {
		spec   string
		served bool // from the beginning on
		change func(*shop, *[]string)
		stays  bool
		fails  bool
	}{
		"asked for":      {"{text: a, routed: true}", false, nil, true, false},
		"not asked for":  {"{text: a}", false, nil, false, false},
		"nothing before": {"{text: a, routed: true}", true, nil, false, false},
		"it works":       {"{text: a, routed: true}", false, ready, false, false},
	} {
		s := newShop(t, "", tt.spec, chartOf(t, routedTemplate, configTemplate), Options{Awaits: routed})
		if tt.served {
			s.asker.apis = []string{"v1", routeAPI}
		}
		s.settle()
		s.asker.apis = []string{"v1", routeAPI}
		s.clock = s.clock.Add(capabilitiesFor)
		s.settle()
		if tt.change != nil {
			tt.change(s, nil)
			s.settle()
		}
		if stays := s.object(configs, "shop", "plain") != nil; stays != tt.stays {
			t.Errorf("%s: the former object stays: %t", name, stays)
		}
		if s.object(routes, "shop", "web") == nil {
			t.Errorf("%s: there is no route", name)
		}
		if tt.served {
			s.asks("{text: z, routed: true}")
			s.settle()
			s.says(name, map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"})
		}
	}
	s := newShop(t, "", "{text: a, routed: true}", chartOf(t, routedTemplate), Options{Awaits: routed})
	s.settle()
	s.asker.apis, s.clock = []string{"v1", routeAPI}, s.clock.Add(capabilitiesFor)
	s.refusals["cache HTTPRoute"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "plain") == nil || s.object(routes, "shop",
		"web") != nil {
		t.Errorf("whether it works is not known: %v", err)
	}
	s.says("told", map[string]string{"ReleaseFailed": "True UpgradeError: look whether HTTPRoute shop/web is ready"})
}

// What stood there before stays also beside a stand-in that there was not before, whichever comes last.
func TestAStandInBesideANewOne(t *testing.T) {
	const more = `{{ if and .Values.more (not (.Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/HTTPRoute")) }}
{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {text: a}}
{{ end }}`
	for _, name := range []string{"a-first", "z-last"} {
		s := newShop(t, "", "{text: a, routed: true}", chartOf(t, routedTemplate, strings.ReplaceAll(more, "%s", name)), Options{Awaits: routed})
		s.settle()
		s.asks("{text: a, routed: true, more: true}")
		s.asker.apis, s.clock = []string{"v1", routeAPI}, s.clock.Add(capabilitiesFor)
		s.settle()
		if s.object(configs, "shop", "plain") == nil || s.object(routes, "shop", "web") == nil {
			t.Errorf("%s: the former object is gone: %v", name, s.wrote)
		}
		s.sets(routes, "web", accepted)
		if s.settle(); s.object(configs, "shop", "plain") != nil || s.object(configs, "shop", name) != nil {
			t.Errorf("%s: the route works: %v", name, s.wrote)
		}
	}
}

// An API that is asked for and not served is looked for every minute, an answer that could not be had as well.
func TestAwaited(t *testing.T) {
	s := newShop(t, "", "{text: a, routed: true}", chartOf(t, routedTemplate), Options{Awaits: routed})
	cr := s.web()
	for name, tt := range map[string]struct {
		apis []string
		err  error
		want int
	}{"served": {[]string{routeAPI}, nil, 0}, "not served": {nil, nil, 1}, "not known": {[]string{routeAPI}, errAway, 1}} {
		s.asker.apis, s.asker.err, s.clock = tt.apis, tt.err, s.clock.Add(time.Hour)
		if got := s.r.awaited(cr); len(got) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s.asker.err = errAway
	s.r.options.Awaits = nil
	if got := s.r.awaited(cr); got != nil {
		t.Errorf("a kind that awaits nothing: %v", got)
	}
	s.r.options.Awaits = func(*unstructured.Unstructured) []string { return nil }
	asked := s.asker.asked
	if got := s.r.awaited(cr); got != nil || s.asker.asked != asked {
		t.Errorf("a resource that awaits nothing: %v, asked %d times", got, s.asker.asked-asked)
	}
}
