// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What our fields and another writer's make together and is refused, is settled: what is refused and nothing else, of the owner's
// object and no other, if it still is the one that was read.
func TestResolveConflict(t *testing.T) {
	text := field.NewPath("data").Key("text")
	const applied = "apply a as middleware-operator by force if a"
	const settled = `patch a {"data":{"text":"new"},"metadata":{"resourceVersion":"100"}}`
	old := strings.Replace(configText, "new", "old", 1)
	unread := errors.New("timeout")
	update := metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:more":{}}}`)}
	ofStatus, ofAnother := update, update
	ofStatus.Subresource, ofAnother.Manager = "status", "another"
	for name, tt := range map[string]struct {
		was      string
		live     func(*unstructured.Unstructured)
		gone     bool
		paths    []*field.Path
		refusals map[string][]error
		want     []string
		says     string
	}{
		"settled": {was: old, paths: []*field.Path{text}, want: []string{settled, applied}},
		"settled, beside other writers": {was: old, live: managed(entry(`{"f:data":{}}`), ofStatus, ofAnother), paths: []*field.Path{text},
			want: []string{settled, applied}},
		"what we wrote by a patch becomes ours": {was: old, live: managed(entry(`{"f:data":{}}`), update), paths: []*field.Path{text},
			want: []string{settled, `patch a [{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"middleware-operator",` +
				`"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:more":{}}}}]},` +
				`{"op":"replace","path":"/metadata/resourceVersion","value":"150"}]`, applied}},
		"which fails": {was: old, live: managed(entry(`{"f:data":{}}`), update), paths: []*field.Path{text},
			refusals: map[string][]error{"patch": {nil, unread}}, want: []string{settled, ""}, says: "timeout"},
		"not of the spec": {was: old, paths: []*field.Path{field.NewPath("metadata", "labels"), field.NewPath("status", "a")},
			says: "no good"},
		"the data as a whole":    {was: old, paths: []*field.Path{field.NewPath("data")}, want: []string{settled, applied}},
		"a field without a name": {was: old, paths: []*field.Path{field.NewPath("")}, says: "no good"},
		"no field is named":      {was: old, says: "is invalid"},
		"nothing differs":        {was: configText, paths: []*field.Path{text}, says: "no good"},
		"it is gone":             {was: old, gone: true, paths: []*field.Path{text}, says: "no good"},
		"it cannot be read":      {was: old, paths: []*field.Path{text}, refusals: map[string][]error{"get": {unread}}, says: "timeout"},
		"it is another's":        {was: old, live: anothers, paths: []*field.Path{text}, says: "belongs to Shop b"},
		"it is refused as settled": {was: old, paths: []*field.Path{text}, refusals: map[string][]error{"patch": {invalid("worse")}},
			want: []string{settled}, says: "no good"},
		"it has changed": {was: old, paths: []*field.Path{text}, refusals: map[string][]error{"patch": {unread}},
			want: []string{settled}, says: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			live, shown := existing(t, tt.was), existing(t, tt.was)
			if tt.live != nil {
				tt.live(live)
			}
			if tt.gone {
				live = nil
			}
			d := newDesk(live, shown)
			if tt.refusals != nil {
				d.refusals = tt.refusals
			}
			d.refusals["apply"] = []error{invalid("no good", tt.paths...)}
			_, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{desired(t, configText)})
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			for i, want := range tt.want {
				if want == "" && i < len(d.said)-1 {
					tt.want[i] = d.said[i+1]
				}
			}
			if diff := cmp.Diff(append([]string{applied}, tt.want...), d.said); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// The number of replicas stays when a chart stops to render it, as long as it is ours.
func TestPreserveReplicas(t *testing.T) {
	const applied, passed = "apply a as middleware-operator by force if a", "apply a as middleware-operator-replicas if a"
	scaled := strings.Replace(deploymentText, "spec: {", "spec: {replicas: 3, ", 1)
	const taken = `patch a [{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"middleware-operator","operation":"Apply",` +
		`"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{},"f:spec":{"f:replicas":{}}}}]},` +
		`{"op":"replace","path":"/metadata/resourceVersion","value":"100"}]`
	ours := managed(entry(`{"f:spec":{"f:replicas":{}}}`))
	helms := managed(metav1.ManagedFieldsEntry{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1",
		FieldsV1:   metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{}}},"f:spec":{"f:replicas":{}}}`)})
	for name, tt := range map[string]struct {
		desired     string
		live, shown func(*unstructured.Unstructured)
		gone        bool
		refusals    map[string][]error
		want        []string
		says        string
	}{
		"it is no longer rendered": {desired: deploymentText, live: ours, shown: ours, want: []string{passed, applied}},
		"it is rendered":           {desired: scaled, live: ours, shown: ours, want: []string{applied}},
		"it was never ours":        {desired: deploymentText, want: []string{applied}},
		"it is another's by now":   {desired: deploymentText, shown: ours, want: []string{applied}},
		"another has set it meanwhile": {desired: deploymentText, live: ours, shown: ours, refusals: map[string][]error{"apply": {conflict()}},
			want: []string{passed, applied}},
		"it cannot be kept": {desired: deploymentText, live: ours, shown: ours, refusals: map[string][]error{"apply": {errors.New("timeout")}},
			want: []string{passed}, says: "keep the number of replicas"},
		"it cannot be read": {desired: deploymentText, live: ours, shown: ours, refusals: map[string][]error{"get": {errors.New("timeout")}},
			says: "keep the number of replicas"},
		"it is gone": {desired: deploymentText, gone: true, shown: ours, want: []string{applied}},
		"nobody has set it": {desired: deploymentText, live: func(o *unstructured.Unstructured) {
			ours(o)
			unstructured.RemoveNestedField(o.Object, "spec", "replicas")
		}, shown: ours, want: []string{applied}},
		"it is Helm's, which becomes ours first": {desired: deploymentText, live: helms, shown: helms, want: []string{taken, passed, applied}},
	} {
		t.Run(name, func(t *testing.T) {
			live, shown := existing(t, scaled), existing(t, scaled)
			if tt.live != nil {
				tt.live(live)
			}
			if tt.shown != nil {
				tt.shown(shown)
			}
			if tt.gone {
				live = nil
			}
			d := newDesk(live, shown)
			if tt.refusals != nil {
				d.refusals = tt.refusals
			}
			_, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{desired(t, tt.desired)})
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			if diff := cmp.Diff(tt.want, d.said); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// What the cache shows of an object may precede our own apply, which made the number of replicas ours: then the object itself is asked.
func TestPreserveReplicasBehindTheCache(t *testing.T) {
	scaled := strings.Replace(deploymentText, "spec: {", "spec: {replicas: 3, ", 1)
	for version, want := range map[string]int{"102": 2, "100": 1, "99": 1} {
		d := newDesk(existing(t, scaled, managed(entry(`{"f:spec":{"f:replicas":{}}}`))), existing(t, scaled))
		ref := RefOf(existing(t, scaled))
		d.memory.put("shop", applied{ref: ref, version: version})
		if _, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{desired(t, deploymentText)}); err != nil || len(d.said) != want {
			t.Errorf("applied version %s, shown 100: %v, %v", version, d.said, err)
		}
	}
}

// What Helm wrote, and nobody else, becomes ours before the first apply to it.
func TestTakeOverFromHelm(t *testing.T) {
	helms := metav1.ManagedFieldsEntry{Manager: "manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1",
		FieldsV1:   metav1.NewFieldsV1(`{"f:data":{"f:text":{}},"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{}}}}`)}
	status, users := helms, helms
	status.Subresource = "status"
	users.FieldsV1 = metav1.NewFieldsV1(`{"f:data":{"f:more":{}}}`)
	const applied = "apply a as middleware-operator by force if a"
	for name, tt := range map[string]struct {
		live     *unstructured.Unstructured
		refusals map[string][]error
		folds    bool
		want     []string
		says     string
	}{
		"Helm's":           {live: existing(t, configText, managed(helms, users)), folds: true, want: []string{applied}},
		"a status by Helm": {live: existing(t, configText, managed(status)), want: []string{applied}},
		"a user's":         {live: existing(t, configText, managed(users)), want: []string{applied}},
		"gone":             {want: []string{applied}},
		"it cannot be read": {live: existing(t, configText, managed(helms)), refusals: map[string][]error{"get": {errors.New("timeout")}},
			says: "take over"},
		"it has changed": {live: existing(t, configText, managed(helms)), refusals: map[string][]error{"patch": {errors.New("timeout")}},
			folds: true, says: "take over"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(tt.live, existing(t, configText, managed(users)))
			if tt.refusals != nil {
				d.refusals = tt.refusals
			}
			_, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{desired(t, configText)})
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			if tt.folds {
				if len(d.said) == 0 || !strings.Contains(d.said[0], `"manager":"middleware-operator","operation":"Apply"`) {
					t.Fatalf("nothing was taken over: %q", d.said)
				}
				d.said = d.said[1:]
			}
			if diff := cmp.Diff(tt.want, d.said, cmp.Transformer("empty",
				func(all []string) string { return strings.Join(all, "; ") })); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// A process that ends between what it settled and folding that leaves an entry of its own; the next apply folds it.
func TestWhatWasSettledIsFolded(t *testing.T) {
	update := metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:text":{}}}`)}
	const fold = `patch a [{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"middleware-operator",` +
		`"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:text":{}}}}]},` +
		`{"op":"replace","path":"/metadata/resourceVersion","value":"100"}]`
	const applied = "apply a as middleware-operator by force if a"
	unread := errors.New("timeout")
	for name, tt := range map[string]struct {
		refusals map[string][]error
		want     []string
		says     string
	}{
		"folded":         {nil, []string{fold, applied}, ""},
		"it is not read": {map[string][]error{"get": {unread}}, nil, "fold what was settled before: timeout"},
		"which fails":    {map[string][]error{"patch": {unread}}, []string{fold}, "fold what was settled before: timeout"},
	} {
		live := existing(t, configText, managed(entry(`{"f:data":{}}`), update))
		d := newDesk(live, live.DeepCopy())
		if tt.refusals != nil {
			d.refusals = tt.refusals
		}
		_, err := d.applies(t, configText)
		says := tt.says
		if says == "" {
			says = "<nil>"
		}
		if diff := cmp.Diff(tt.want, d.said); diff != "" || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
