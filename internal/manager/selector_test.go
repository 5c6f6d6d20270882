// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A selector is written in one way, so that one that says the same has the same Lease; the refusal says which way.
func TestSelectorsAreWrittenInOneWay(t *testing.T) {
	for given, want := range map[string]string{ // what to write instead; empty: it is right
		"":                          "",
		"tier=gold":                 "",
		"tier!=gold":                "",
		"!tier":                     "",
		"tier":                      "",
		"a=b,tier in (gold,silver)": "",
		"tier notin (gold,silver)":  "",
		"tier==gold":                `"tier=gold"`,
		"tier in (gold)":            `"tier=gold"`,
		"tier notin (gold)":         `"tier!=gold"`,
		"tier = gold":               `"tier=gold"`,
		"tier in (silver, gold)":    `"tier in (gold,silver)"`,
		"b=c,a=b":                   `"a=b,b=c"`,
		"a=b,a=b":                   `"a=b"`,
		"tier=":                     "",
		"tier in gold":              "is not a label selector",
		"tier=a b":                  "is not a label selector",
	} {
		o := DefaultOptions()
		o.Selector = given
		err := o.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", given, err, want)
		}
		if want != "" && strings.HasPrefix(want, `"`) {
			if o.Selector = strings.Trim(want, `"`); o.Validate() != nil {
				t.Errorf("%q: what is to be written instead is refused: %v", given, o.Validate())
			}
		}
	}
}

// Each selector has a Lease of its own, and none the one that is there without; the chart gives the right to the same names.
func TestLeaseNames(t *testing.T) {
	names := map[string]string{"": "middleware-operator", "tier=gold": "middleware-operator-66869e39", "tier!=gold": "middleware-operator-"}
	seen := map[string]bool{}
	for selector, want := range names {
		o := DefaultOptions()
		o.Selector = selector
		name := o.leaseName()
		if !strings.HasPrefix(name, want) || seen[name] {
			t.Errorf("%q has the lease %s, want %s", selector, name, want)
		}
		seen[name] = true
	}
	o := DefaultOptions()
	o.LeaderElection.ID, o.Selector = strings.Repeat("a", 250), "tier=gold"
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "give a shorter one") {
		t.Errorf("a name that is too long: %v", err)
	}
}

// Selected are custom kinds that are served, of controllers and of the scheme; children are read as ever.
func TestSelectedKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	redis := redisv1alpha1.GroupVersion
	cluster, backup, schedule := redis.WithKind("RedisCluster"), redis.WithKind("RedisBackup"), redis.WithKind("RedisBackupSchedule")
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	chart := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{cluster, backup, deployment, chart} { // not the schedule
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	o := DefaultOptions()
	none, err := o.selected(api{scheme: scheme, mapper: mapper}, []controller{{gvk: cluster}})
	if err != nil || none != nil {
		t.Errorf("without a selector there are %v (%v)", none, err)
	}
	o.Selector = "tier=gold"
	selected, err := o.selected(api{scheme: scheme, mapper: mapper}, []controller{{gvk: cluster}, {gvk: chart}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[schema.GroupVersionKind]string{}
	for object, by := range selected {
		got[object.GetObjectKind().GroupVersionKind()] = by.Label.String()
	}
	for kind, want := range map[schema.GroupVersionKind]string{
		cluster: "tier=gold", backup: "tier=gold", chart: "tier=gold", schedule: "", deployment: "",
	} {
		if got[kind] != want {
			t.Errorf("%s is selected by %q, want %q", kind.Kind, got[kind], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("selected are %v", got)
	}
}
