// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
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
	for _, field := range [][]string{{"spec", "replicas"}, {"spec", "storage", "size"}} {
		if _, found, err := unstructured.NestedFieldNoCopy(cluster.Object, field...); !found || err != nil {
			t.Errorf("%s has no default", strings.Join(field, "."))
		}
	}
}

// TestTheImageOfTheDeploymentIsWritten, at the making of an object, and never later: what runs does not change because the
// operator's default did.
func TestTheImageOfTheDeploymentIsWritten(t *testing.T) {
	pinned := "8.0.6@" + digest
	for i, test := range []struct {
		apiVersion, kind, made, applied string
		want                            map[string]any
	}{
		{redis, "RedisCluster", `{}`, "", map[string]any{"repository": mirror + "/redis", "version": pinned}},
		{redis, "RedisCluster", `{version: 7.2.5}`, "", map[string]any{"repository": mirror + "/redis", "version": "7.2.5"}},
		{redis, "RedisCluster", `{repository: docker.io/valkey/valkey}`, "",
			map[string]any{"repository": "docker.io/valkey/valkey", "version": "8.0.6"}},
		{redis, "RedisCluster", `{repository: docker.io/library/redis, version: 8.0.1}`, `{}`,
			map[string]any{"repository": "docker.io/library/redis", "version": "8.0.1"}},
		{redis, "RedisCluster", `{repository: docker.io/library/redis, version: 8.0.1}`, `{version: 8.0.2}`,
			map[string]any{"repository": "docker.io/library/redis", "version": "8.0.2"}},
		{foobar, "FooBar", `{command: echo}`, "", map[string]any{"image": mirror + "/busybox@" + digest}},
		{foobar, "FooBar", `{command: echo, image: "docker.io/library/busybox:1.35"}`, `{command: echo}`,
			map[string]any{"image": "docker.io/library/busybox:1.35"}},
	} {
		object := manifest(t, test.apiVersion, test.kind, test.made)
		object.SetName(fmt.Sprintf("image-%d", i))
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		if test.applied != "" {
			again := manifest(t, test.apiVersion, test.kind, test.applied)
			again.SetName(object.GetName())
			eventually(t, "the update", func(ctx context.Context) error {
				if err := kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				again.SetResourceVersion(object.GetResourceVersion())
				return kube.Update(ctx, again)
			})
			object = again
		}
		got := map[string]any{}
		for field := range test.want {
			got[field], _, _ = unstructured.NestedString(object.Object, "spec", field)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s, then %s: %s", test.kind, test.made, test.applied, diff)
		}
		if err := kube.Delete(t.Context(), object); err != nil {
			t.Error(err)
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

// A claim an instance can be asked for as a volume, too: with the size and class of storage.
func TestVolumeOfTypePVCTakesStorage(t *testing.T) {
	for name, write := range map[string]func(*unstructured.Unstructured) error{
		"created": func(o *unstructured.Unstructured) error { return kube.Create(t.Context(), o, client.DryRunAll) },
		"applied": func(o *unstructured.Unstructured) error {
			return kube.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.DryRunAll, client.FieldOwner("kubectl"))
		},
	} {
		cluster := manifest(t, redis, "RedisCluster", `{storage: {size: 5Gi, storageClassName: fast}, pod: [{volumes: {type: pvc}}]}`)
		if err := write(cluster); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		size, _, _ := unstructured.NestedString(cluster.Object, "spec", "storage", "size")
		pods, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "pod")
		if _, there := pods[0].(map[string]any)["volumes"]; size != "5Gi" || there {
			t.Errorf("%s: it is %v", name, cluster.Object["spec"])
		}
	}
}

// What is accepted and changes nothing is told to who writes it.
func TestWarningsReachTheClient(t *testing.T) {
	var told warnings
	config := rest.CopyConfig(restConfig)
	config.WarningHandler = &told
	warned, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster := manifest(t, redis, "RedisCluster",
		`{repository: docker.io/valkey/valkey, version: 9.1.2, updateStrategy: {pipeline: "7"}, pod: [{env: [{name: MAXMEMORY, value: 2gb}, {name: MAXMEMORY_POLICY, value: allkeys-lru}]}]}`)
	if err := warned.Create(t.Context(), cluster, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	want := warnings{
		"spec.pod[0].env[1].name: MAXMEMORY_POLICY changes nothing in Redis, which reads no settings from its environment; use spec.config[maxmemory-policy]",
		"spec.updateStrategy.pipeline: valkey 9.1 moves whole slots by itself, and no MIGRATE carries keys; remove it, or set spec.updateStrategy.keysPerSecond to have the operator move keys",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// warnings are what the API server told a client.
type warnings []string

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }
