// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestPathOf(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		"spec":               {"spec"},
		"spec.ports[1].name": {"spec", "ports", element, "name"},
		"spec.ports[1]":      {"spec", "ports", element},
		"spec.template.spec.containers[0].env[12].valueFrom": {"spec", "template", "spec", "containers", element, "env", element, "valueFrom"},
		"data[a.b]":    {"data", "a.b"},
		"data[a.b].c":  {"data", "a.b", "c"},
		"a[0]":         {"a", element},
		"spec.broken[": {"spec", "broken", element},
	} {
		if diff := cmp.Diff(want, pathOf(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Nothing is settled that is not of what the chart renders, whatever a refusal names.
func TestRefusedPaths(t *testing.T) {
	refusal := func(fields ...string) error {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{}}}
		for _, field := range fields {
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Field: field})
		}
		return err
	}
	for name, tt := range map[string]struct {
		refusal error
		want    [][]string
	}{
		"of fields":       {refusal("spec.ports[1].name", "data"), [][]string{{"spec", "ports", element, "name"}, {"data"}}},
		"of others":       {refusal("", "metadata.name", "status.phase"), nil},
		"without details": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}, nil},
		"of no API":       {errors.New("timeout"), nil},
	} {
		if diff := cmp.Diff(tt.want, refusedPaths(tt.refusal)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The end-to-end effect of each case is tested in test/apiserver/apply; these are the ways in which nothing may happen.
func TestSettle(t *testing.T) {
	for name, tc := range map[string]struct{ live, desired, path, want string }{
		"a list that is not rendered": {`{spec: {ports: [{name: a, port: 1}]}}`, `{spec: {}}`, "spec.ports[0].name",
			`{spec: {ports: [{name: a, port: 1}]}}`},
		"an object that is not rendered": {`{spec: {strategy: {a: b}}}`, `{spec: {}}`, "spec.strategy.a", `{spec: {strategy: {a: b}}}`},
		"two desired elements of one name": {`{spec: {ports: [{name: a, port: 1}]}}`, `{spec: {ports: [{name: a, port: 2}, {name: a, port: 3}]}}`,
			"spec.ports[0].name", `{spec: {ports: [{name: a, port: 1}]}}`},
		"an element of another's": {`{spec: {ports: [{name: theirs, port: 1}]}}`, `{spec: {ports: [{name: a, port: 2}]}}`,
			"spec.ports[0].name", `{spec: {ports: [{name: theirs, port: 1}]}}`},
		"elements that are not objects, and one that is": {`{spec: {args: [a]}}`, `{spec: {args: [{x: 1}]}}`, "spec.args[0]",
			`{spec: {args: [a]}}`},
		"elements without a name, and one that is no object": {`{spec: {args: [{y: 1}]}}`, `{spec: {args: [{x: 1}, a]}}`, "spec.args[0]",
			`{spec: {args: [{x: 1}]}}`},
		"elements that are not objects": {`{spec: {args: [a]}}`, `{spec: {args: [b]}}`, "spec.args[0]",
			`{spec: {args: [a]}}`},
		"a field that is not rendered": {`{spec: {theirs: 1, type: X}}`, `{spec: {type: Z}}`, "spec.theirs",
			`{spec: {type: X}}`},
		"a field of the object itself that is not rendered": {`{data: {a: b}, more: 1}`, `{data: {a: b}}`, "more", `{data: {a: b}}`},
		"a member of a union": {`{spec: {volume: {theirs: {a: 1}, size: 1}}}`, `{spec: {volume: {ours: {b: 2}}}}`, "spec.volume.theirs",
			`{spec: {volume: {size: 1, ours: {b: 2}}}}`},
		"a member that is desired has another in its way": {`{spec: {volume: {theirs: {a: 1}, ours: {b: 1}}}}`,
			`{spec: {volume: {ours: {b: 2}}}}`,
			"spec.volume.ours", `{spec: {volume: {ours: {b: 2}}}}`},
		"a member that nobody has": {`{spec: {volume: {theirs: {a: 1}}}}`, `{spec: {volume: {ours: {b: 2}}}}`, "spec.volume.none",
			`{spec: {volume: {ours: {b: 2}}}}`},
		"a field of a member": {`{spec: {volume: {kind: {a: 1, b: 1}, size: 1}}}`, `{spec: {volume: {kind: {a: 2}}}}`, "spec.volume.kind.b",
			`{spec: {volume: {kind: {a: 2}, size: 1}}}`},
		"an element as a whole": {`{spec: {ports: [{name: a, port: 1, theirs: 2}, {name: b, port: 3}]}}`, `{spec: {ports: [{name: a, port: 2}]}}`,
			"spec.ports[0]", `{spec: {ports: [{name: a, port: 2}, {name: b, port: 3}]}}`},
		"a field of a member of an element": {`{spec: {volumes: [{name: a, kind: {x: 1, y: 1}, size: 1}]}}`,
			`{spec: {volumes: [{name: a, kind: {x: 2}}]}}`, "spec.volumes[0].kind.y", `{spec: {volumes: [{name: a, kind: {x: 2}, size: 1}]}}`},
		"a field that is an object here and none there": {`{spec: {volume: text}}`, `{spec: {volume: {a: 1}}}`, "spec.volume.a",
			`{spec: {volume: text}}`},
		"another's field beside": {`{spec: {theirs: 1, type: X}}`, `{spec: {type: Y}}`, "spec.type",
			`{spec: {theirs: 1, type: Y}}`},
		"what the API server allocated": {`{spec: {ports: [{name: a, port: 1, nodePort: 30000}]}}`, `{spec: {ports: [{name: a, port: 2}]}}`,
			"spec.ports[1].name", `{spec: {ports: [{name: a, port: 2, nodePort: 30000}]}}`},
		"the number an autoscaler set": {`{spec: {replicas: 7, a: 1}}`, `{spec: {b: 1}}`, "spec", `{spec: {replicas: 7, b: 1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			live := decoded(t, tc.live)
			settle(live, decoded(t, tc.desired), pathOf(tc.path))
			if diff := cmp.Diff(decoded(t, tc.want), live); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
