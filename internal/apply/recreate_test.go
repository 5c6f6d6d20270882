// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What cannot be changed in place is deleted only if somebody allowed it, and only the very object of the owner's that was read. The
// pods of a StatefulSet stay if the new one selects them.
func TestRecreate(t *testing.T) {
	const allowed = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {middleware.hc.cn/recreate-on-immutable: "true"}}}`
	const applied, deleted = "apply a as middleware-operator by force if a", "delete ConfigMap n/a if a Background"
	unread := errors.New("timeout")
	for name, tt := range map[string]struct {
		desired  string
		live     func(*unstructured.Unstructured)
		was      string // desired if empty
		gone     bool
		how      []Option
		refusals map[string][]error
		want     []string
		action   Action
		says     string
	}{
		"the chart allows it":  {desired: allowed, want: []string{deleted}, action: Deleted},
		"the caller allows it": {desired: configText, how: []Option{Recreate()}, want: []string{deleted}, action: Deleted},
		"nobody allows it":     {desired: configText, says: "cannot be changed in place"},
		"the chart does not": {desired: strings.Replace(allowed, `"true"`, `"false"`, 1),
			says: "cannot be changed in place"},
		"it is kept":             {desired: allowed, live: keeps, says: "helm.sh/resource-policy: keep"},
		"it is being deleted":    {desired: allowed, live: leaving, action: Deleting},
		"it is another's by now": {desired: allowed, live: anothers, says: "belongs to Shop b"},
		"it is gone":             {desired: allowed, gone: true, says: "look at what cannot be changed in place"},
		"it cannot be read":      {desired: allowed, refusals: map[string][]error{"get": {unread}}, says: "timeout"},
		"it disappears": {desired: allowed, refusals: map[string][]error{"delete": {notFound()}}, want: []string{deleted},
			says: "disappeared"},
		"it cannot be deleted": {desired: allowed, refusals: map[string][]error{"delete": {unread}}, want: []string{deleted},
			says: "timeout"},
		"a StatefulSet keeps its pods": {desired: statefulText, how: []Option{Recreate()}, want: []string{"delete StatefulSet n/a if a Orphan"},
			action: Deleted},
		"a StatefulSet selects others": {desired: statefulText, was: strings.Replace(statefulText, "app: a", "app: b", 1),
			how:  []Option{Recreate()},
			want: []string{"delete StatefulSet n/a if a Background"}, action: Deleted},
		"a Deployment": {desired: deploymentText, how: []Option{Recreate()}, want: []string{"delete Deployment n/a if a Background"},
			action: Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			was := tt.was
			if was == "" {
				was = tt.desired
			}
			live, shown := existing(t, was), existing(t, was)
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
			d.refusals["apply"] = []error{invalid("field is immutable", field.NewPath("spec"))}
			changes, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{desired(t, tt.desired)}, tt.how...)
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			if diff := cmp.Diff(append([]string{applied}, tt.want...), d.said); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if err == nil && (len(changes) != 1 || changes[0].Action != tt.action || changes[0].UID != "a") {
				t.Errorf("told %v, want %s", changes, tt.action)
			}
		})
	}
}
