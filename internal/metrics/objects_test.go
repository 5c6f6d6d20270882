// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var appKind = schema.GroupVersionKind{Group: "apps.example.com", Version: "v1", Kind: "App"}

var states = map[string]State{}

func app(name string, generation int64, state State) client.Object {
	states[name] = state
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(appKind)
	object.SetNamespace("shop")
	object.SetName(name)
	object.SetGeneration(generation)
	return object
}

func condition(is string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: is, Status: status, Reason: reason, LastTransitionTime: metav1.Unix(1795514400, 0)}
}

func apps(reader client.Reader, elected <-chan struct{}) *allObjects {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appKind.GroupVersion().WithKind("AppList"))
	all := newObjects()
	all.kinds[appKind] = Kind{GroupVersionKind: appKind, List: list, Reader: reader, Elected: elected,
		State:    func(o client.Object) State { return states[o.GetName()] },
		Selected: func(o client.Object) bool { return o.GetName() != "other" }}
	return all
}

// told are the series of a collector, as name{label values} value.
func told(t *testing.T, collector prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			found[strings.TrimPrefix(family.GetName(), namespace+"_resource_")+"{"+strings.Join(values, ",")+"}"] = m.GetGauge().GetValue()
		}
	}
	return found
}

// The state of objects is told by who reconciles them, as long as they are there.
func TestStateOfObjects(t *testing.T) {
	good := app("good", 3, State{Observed: 3, Conditions: []metav1.Condition{condition("Ready", "True", "Deployed")}})
	bad := app("bad", 4, State{Observed: 2, Conditions: []metav1.Condition{
		condition("Ready", "False", "InstallFailed"), condition("Stalled", "Unknown", "Retrying")}})
	cache := fake.NewClientBuilder().WithObjects(good, bad, app("new", 1, State{Observed: -1}), app("other", 1, State{})).Build()
	elected := make(chan struct{})
	all := apps(cache, elected)
	if standby := told(t, all); len(standby) > 0 {
		t.Errorf("who does not lead tells %v", standby)
	}
	close(elected)
	want := map[string]float64{
		"condition{apps.example.com,App,good,shop,Deployed,Ready}":        1,
		"condition{apps.example.com,App,bad,shop,InstallFailed,Ready}":    0,
		"condition{apps.example.com,App,bad,shop,Retrying,Stalled}":       -1,
		"generations_behind{apps.example.com,App,good,shop}":              0,
		"generations_behind{apps.example.com,App,bad,shop}":               2,
		"ready_changed_timestamp_seconds{apps.example.com,App,good,shop}": 1795514400,
		"ready_changed_timestamp_seconds{apps.example.com,App,bad,shop}":  1795514400,
	}
	if diff := cmp.Diff(want, told(t, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := cache.Delete(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	for series := range told(t, all) {
		if strings.Contains(series, ",bad,") {
			t.Errorf("%s outlives its object", series)
		}
	}
}

// Conditions that others write cost no more than a bound, and do not spoil what is told of other objects.
func TestConditionsOfOthers(t *testing.T) {
	var list []metav1.Condition
	for range 50 {
		list = append(list, condition("Twice", "True", "Same"), condition(strings.Repeat("x\xff", 1000), "False", "\xff"),
			condition("Ready", "what", strings.Repeat("é", 1000)))
	}
	elected := make(chan struct{})
	close(elected)
	loud := app("loud", 1, State{Observed: -1, Conditions: list})
	all := apps(fake.NewClientBuilder().WithObjects(loud).Build(), elected)
	found := told(t, all)
	if len(found) != 4 { // three conditions, and since when it is Ready or not
		t.Errorf("%d series: %v", len(found), found)
	}
	for series := range found {
		if len(series) > 300 {
			t.Errorf("%d bytes: %s", len(series), series)
		}
	}
}
