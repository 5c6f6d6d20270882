// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func TestEverySampleIsAdmitted(t *testing.T) {
	files, err := filepath.Glob(root + "/config/samples/*_*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d samples (%v), want at least one a kind", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
				t.Fatal(err)
			}
			if object.GetNamespace() == "" {
				object.SetNamespace("default")
			}
			// What kubectl does today: a field that the schema does not know is an error, not dropped.
			err = kube.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDefaultsAreVisible(t *testing.T) {
	cluster := manifest(t, redis, "RedisCluster", `{}`)
	if err := kube.Create(t.Context(), cluster, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	for _, field := range [][]string{{"spec", "replicas"}, {"spec", "repository"}, {"spec", "version"}, {"spec", "storage", "size"}} {
		if _, found, err := unstructured.NestedFieldNoCopy(cluster.Object, field...); !found || err != nil {
			t.Errorf("%s has no default", strings.Join(field, "."))
		}
	}
}

// The rules of an update, with what an operator that is gone or older may have left behind.
func TestUpdates(t *testing.T) {
	object := manifest(t, application, "Application",
		`{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: "busybox:1.36"}]}}}}}`)
	object.SetName("updated")
	object.SetFinalizers([]string{"example.com/hold"})
	if err := kube.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	patch := func(patch string) error {
		return kube.Patch(t.Context(), object.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	err := patch(`{"spec":{"selector":{"matchLabels":{"app":"b"}}}}`)
	if err == nil || !strings.Contains(err.Error(), "spec.") {
		t.Errorf("changing the selector gave %v, want a refusal with a field path", err)
	}
	if err := patch(`{"metadata":{"annotations":{"a":"b"}}}`); err != nil {
		t.Errorf("an annotation cannot be changed: %v", err)
	}
	if err := kube.Delete(t.Context(), object.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := patch(`{"metadata":{"finalizers":[]}}`); err != nil {
		t.Errorf("a finalizer cannot be taken off: %v", err)
	}
	eventually(t, "the object stays", func(ctx context.Context) error {
		err := kube.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
		if err == nil {
			return errors.New("it can still be read")
		}
		return client.IgnoreNotFound(err)
	})
}
