// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWithoutDuplicates(t *testing.T) {
	const typed = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): "
	for name, tc := range map[string]struct{ refusal, object, want, says string }{
		"the last value of a variable counts": {
			refusal: typed + `.spec.containers[name="a"].env: duplicate entries for key [name="A"]`,
			object:  `{spec: {containers: [{name: a, env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: A, value: "3"}, {name: C}]}]}}`,
			want:    `{spec: {containers: [{name: a, env: [{name: B, value: "2"}, {name: A, value: "3"}, {name: C}]}]}}`,
		},
		"several": {
			refusal: typed +
				"errors:\n  .spec.containers[name=\"a\"].env: duplicate entries for key [name=\"A\"]\n  .spec.containers[name=\"a\"].ports: duplicate entries for key [containerPort=80,protocol=\"TCP\"]",
			object: `{spec: {containers: [{name: a, env: [{name: A}, {name: A}], ports: [{containerPort: 80}, {containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}}`,
			want:   `{spec: {containers: [{name: a, env: [{name: A}], ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}}`,
		},
		"different ports of one number": {
			refusal: typed + `.spec.containers[name="a"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]`,
			object:  `{spec: {containers: [{name: a, ports: [{name: http, containerPort: 80}, {name: metrics, containerPort: 80, protocol: TCP}]}]}}`,
			says:    `different elements of one key (containerPort: 80, protocol: TCP) in spec.containers[name="a"].ports`,
		},
		"a set": {
			refusal: typed + `.metadata.finalizers: duplicate entries for key [="a/b"]`,
			object:  `{metadata: {finalizers: [a/b, c/d, a/b]}}`,
			want:    `{metadata: {finalizers: [c/d, a/b]}}`,
		},
		"a list of the object itself": {
			refusal: typed + `.args: duplicate entries for key [="a"]`,
			object:  `{args: [a, b, a]}`,
			want:    `{args: [b, a]}`,
		},
		"elements that have no keys": {
			refusal: typed + `.ports: duplicate entries for key [containerPort=80]`,
			object:  `{ports: [x, {containerPort: 80}, y, {containerPort: 80}]}`,
			want:    `{ports: [x, y, {containerPort: 80}]}`,
		},
		"a key that is not understood": {
			refusal: typed + `.env: duplicate entries for key [oops]`,
			object:  `{env: [{name: A}, {name: A}]}`,
			want:    `{env: [{name: A}, {name: A}]}`,
		},
		"an element and no list": {
			refusal: typed + `.spec.containers[name="a"]: duplicate entries for key [name="A"]`,
			object:  `{spec: {containers: [{name: a}, x]}}`,
			want:    `{spec: {containers: [{name: a}, x]}}`,
		},
		"lists of what is no object": {
			refusal: typed + `.spec.containers[name="a"].env: duplicate entries for key [name="A"]`,
			object:  `{spec: {containers: [x, {name: a, env: [{name: A}, {name: A}]}]}}`,
			want:    `{spec: {containers: [x, {name: a, env: [{name: A}]}]}}`,
		},
		"a list without a name": {
			refusal: typed + `: duplicate entries for key [name="A"]`,
			object:  `{spec: {}}`,
			says:    "different elements of one key (name: A)",
		},
		"a path that leads nowhere": {
			refusal: typed + `.spec.nothing[a="b"].at.all: duplicate entries for key [name="A"]`,
			object:  `{spec: {}}`,
			want:    `{spec: {}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: decoded(t, tc.object)}
			duplicates := duplicatesIn(apierrors.NewInternalError(errors.New(tc.refusal)))
			if want := strings.Count(tc.refusal, duplicateWording); len(duplicates) != want {
				t.Errorf("%d are named, found %v", want, duplicates)
			}
			single, err := withoutDuplicates(object, duplicates)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || len(duplicates) == 0 {
				t.Fatal(err, duplicates)
			}
			if diff := cmp.Diff(decoded(t, tc.want), single.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeyIn(t *testing.T) {
	for text, want := range map[string]map[string]any{
		`containerPort=80,protocol="TCP"]`: {"containerPort": 80.0, "protocol": "TCP"},
		`="value"]`:                        {"": "value"},
		`containerPort=80,protocol=oops]`:  {"containerPort": 80.0},
		`oops]`:                            {},
	} {
		if diff := cmp.Diff(want, keyIn(text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
