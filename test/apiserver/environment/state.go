// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/crash"
)

// Record writes the objects of a world's one namespace to a file, as they are, in the order of the world's kinds.
func Record(t testing.TB, w crash.World, file string) {
	t.Helper()
	objects, err := w.Objects(context.Background())
	Check(t, err)
	var documents []string
	for _, object := range objects {
		for _, path := range [][]string{{"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"}} {
			unstructured.RemoveNestedField(object.Object, path...)
		}
		if ip, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); ip != "None" { // another Service may have it
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		}
		text, err := yaml.Marshal(object.Object)
		Check(t, err)
		documents = append(documents, string(text))
	}
	Check(t, os.MkdirAll(filepath.Dir(file), 0o750))
	Check(t, os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o600))
}

// Restore makes the objects of a file in a namespace: as they were, with their status and with whose which field was, but for their
// UIDs, which all of them refer to as they are now, and for the name of their namespace.
func Restore(t testing.TB, api client.Client, namespace, file string) {
	t.Helper()
	ctx := context.Background()
	text, err := os.ReadFile(file) //nolint:gosec // a test says which
	Check(t, err)
	uids := map[string]string{}
	// read is an object of the file, in the namespace of now and with what is known of UIDs.
	read := func(document string) *unstructured.Unstructured {
		for _, uid := range slices.Sorted(maps.Keys(uids)) {
			document = strings.ReplaceAll(document, uid, uids[uid])
		}
		encoded, err := yaml.YAMLToJSON([]byte(document))
		Check(t, err)
		object := &unstructured.Unstructured{}
		Check(t, object.UnmarshalJSON(encoded))
		return object
	}
	documents := strings.Split(string(text), "\n---\n")
	uids[read(documents[0]).GetNamespace()] = namespace
	for _, document := range documents {
		object := read(document)
		uid := string(object.GetUID())
		object.SetUID("")
		object.SetManagedFields(nil)
		if object.GetKind() == "Job" { // the API server selects its pods by its UID
			unstructured.RemoveNestedField(object.Object, "spec", "selector")
			for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
				unstructured.RemoveNestedField(object.Object, "metadata", "labels", label)
				unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", label)
			}
		}
		Check(t, api.Create(ctx, object))
		uids[uid] = string(object.GetUID())
	}
	for _, document := range documents {
		recorded := read(document)
		Eventually(t, recorded.GetKind()+" "+recorded.GetName()+" is restored", func() string {
			live := Object(recorded.GroupVersionKind(), namespace, recorded.GetName())
			Check(t, api.Get(ctx, client.ObjectKeyFromObject(live), live))
			if status, has := recorded.Object["status"]; has {
				live.Object["status"] = status
				if err := api.Status().Update(ctx, live); err != nil && !apierrors.IsInvalid(err) {
					return err.Error()
				} // a Job that has ended meanwhile does not end again
				Check(t, api.Get(ctx, client.ObjectKeyFromObject(live), live))
			}
			live.SetManagedFields(recorded.GetManagedFields())
			live.SetOwnerReferences(recorded.GetOwnerReferences())
			if err := api.Update(ctx, live); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// Templates are the pod templates of a world, as JSON, by kind and name, and what counts their changes.
func Templates(t testing.TB, w crash.World) map[string]string {
	t.Helper()
	objects, err := w.Objects(context.Background())
	Check(t, err)
	templates := map[string]string{}
	for _, object := range objects {
		for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate"}} {
			template, found, _ := unstructured.NestedMap(object.Object, path...)
			if !found || object.GetAPIVersion() != "apps/v1" && object.GetAPIVersion() != "batch/v1" {
				continue
			}
			text, err := json.Marshal(template)
			Check(t, err)
			templates[object.GetKind()+" "+object.GetName()+" "+string(object.GetUID())] = string(text)
		}
	}
	return templates
}
