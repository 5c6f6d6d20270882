// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	deploymentKind  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	serviceKind     = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	accountKind     = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	configMapKind   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	clusterRoleKind = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

// childrenOf are the objects that the charts render for a resource.
func childrenOf(cr *unstructured.Unstructured) []*unstructured.Unstructured {
	namespace, name := cr.GetNamespace(), cr.GetName()
	if cr.GetKind() == readerKind.Kind {
		return []*unstructured.Unstructured{
			environment.Object(clusterRoleKind, "", namespace+"-"+name), environment.Object(configMapKind, namespace, name),
		}
	}
	return []*unstructured.Unstructured{
		environment.Object(deploymentKind, namespace, name), environment.Object(serviceKind, namespace, name),
		environment.Object(accountKind, namespace, name),
		environment.Object(configMapKind, namespace, name), environment.Object(configMapKind, namespace, name+"-cache"),
	}
}

// identity is what of an object must outlast the change of operators.
type identity struct {
	UID        types.UID
	Created    time.Time
	Generation int64
	// Annotations of a Deployment count for its generation. Labels are not here: this operator adds its own.
	Annotations map[string]string
	// Content is all but metadata and status.
	Content map[string]any
}

func identityOf(o *unstructured.Unstructured) identity {
	content := o.DeepCopy().Object
	delete(content, "metadata")
	delete(content, "status")
	return identity{UID: o.GetUID(), Created: o.GetCreationTimestamp().Time, Generation: o.GetGeneration(),
		Annotations: o.GetAnnotations(), Content: content}
}

// identities are those of a resource and its children, by kind and name. What is not there is left out.
func identities(t *testing.T, cr *unstructured.Unstructured) map[string]identity {
	t.Helper()
	all := map[string]identity{}
	for _, o := range append(childrenOf(cr), environment.Object(cr.GroupVersionKind(), cr.GetNamespace(), cr.GetName())) {
		if environment.Get(t, api, o) {
			all[title(o)] = identityOf(o)
		}
	}
	return all
}

func title(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// condition reads one of a resource's conditions; nil if it has none.
func condition(t *testing.T, cr *unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	if !environment.Get(t, api, cr) {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, entry := range list {
		if c, _ := entry.(map[string]any); c["type"] == name {
			return c
		}
	}
	return nil
}

// takenOver says what is missing until this operator has a resource in hand.
func takenOver(t *testing.T, cr *unstructured.Unstructured) string {
	t.Helper()
	if deployed := condition(t, cr, "Deployed"); deployed["status"] != "True" {
		return fmt.Sprintf("%s is not deployed: %v", title(cr), cr.Object["status"])
	}
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	inventory, _, _ := unstructured.NestedSlice(cr.Object, "status", "inventory")
	if observed != cr.GetGeneration() || len(inventory) != len(childrenOf(cr)) {
		return fmt.Sprintf("%s: generation %d of %d observed, inventory %v, conditions %v", title(cr), observed, cr.GetGeneration(), inventory,
			cr.Object["status"].(map[string]any)["conditions"])
	}
	return ""
}

// revision is a line of `helm history`.
type revision struct {
	Revision    int       `json:"revision"`
	Updated     time.Time `json:"updated"`
	Status      string    `json:"status"`
	Chart       string    `json:"chart"`
	Description string    `json:"description"`
}

// history is what `helm history` says of a release, oldest first.
func history(t *testing.T, cr *unstructured.Unstructured) []revision {
	t.Helper()
	var revisions []revision
	environment.Check(t, json.Unmarshal([]byte(helm(t, "history", cr.GetName(), "--namespace", cr.GetNamespace(), "--output", "json")),
		&revisions))
	return revisions
}

// states are the revisions' numbers and states.
func states(revisions []revision) []string {
	var list []string
	for _, r := range revisions {
		list = append(list, fmt.Sprintf("%d %s", r.Revision, r.Status))
	}
	return list
}

// manifest is what `helm get manifest` says of a release: content by kind and name, without metadata.
func manifest(t *testing.T, cr *unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	objects := map[string]map[string]any{}
	for document := range strings.SplitSeq("\n"+helm(t, "get", "manifest", cr.GetName(), "--namespace", cr.GetNamespace()), "\n---") {
		o := &unstructured.Unstructured{}
		environment.Check(t, yaml.Unmarshal([]byte(document), &o.Object))
		if len(o.Object) > 0 {
			objects[title(o)] = identityOf(o).Content
		}
	}
	return objects
}

// records are the Secrets that hold a release's history.
func records(t *testing.T, cr *unstructured.Unstructured) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	environment.Check(t,
		api.List(context.Background(), list, client.InNamespace(cr.GetNamespace()), client.MatchingLabels{"owner": "helm", "name": cr.GetName()}))
	return list.Items
}

// leavePending rewrites a release's only record as a helm-operator leaves it that is killed while it installs.
func leavePending(t *testing.T, cr *unstructured.Unstructured) {
	t.Helper()
	list := records(t, cr)
	if len(list) != 1 {
		t.Fatalf("%s has %d records", title(cr), len(list))
	}
	secret := &list[0]
	release := decode(t, secret.Data["release"])
	environment.Check(t, unstructured.SetNestedField(release, "pending-install", "info", "status"))
	secret.Data["release"] = encode(t, release)
	secret.Labels["status"] = "pending-install"
	environment.Check(t, api.Update(context.Background(), secret))
}

// decode and encode are Helm's: JSON, compressed, in base64.
func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	compressed, err := base64.StdEncoding.DecodeString(string(data))
	environment.Check(t, err)
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	environment.Check(t, err)
	text, err := io.ReadAll(reader)
	environment.Check(t, err)
	release := map[string]any{}
	environment.Check(t, json.Unmarshal(text, &release))
	return release
}

func encode(t *testing.T, release map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(release)
	environment.Check(t, err)
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err = writer.Write(text)
	environment.Check(t, err)
	environment.Check(t, writer.Close())
	return []byte(base64.StdEncoding.EncodeToString(compressed.Bytes()))
}

// remains says what of a resource, its children and its history is there after it was deleted. What it controls is the garbage
// collector's, which does not run here.
func remains(t *testing.T, cr *unstructured.Unstructured) string {
	t.Helper()
	gone := environment.Object(cr.GroupVersionKind(), cr.GetNamespace(), cr.GetName())
	if environment.Get(t, api, gone) {
		return fmt.Sprintf("%s is there, with finalizers %v and status %v", title(gone), gone.GetFinalizers(), gone.Object["status"])
	}
	collected := func(o metav1.Object) bool {
		return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == cr.GetUID() })
	}
	for _, o := range childrenOf(cr) {
		if environment.Get(t, api, o) && !collected(o) {
			return fmt.Sprintf("%s is there, with owners %v", title(o), o.GetOwnerReferences())
		}
	}
	for _, secret := range records(t, cr) {
		if !collected(&secret) {
			return fmt.Sprintf("Secret %s is there", secret.Name)
		}
	}
	return ""
}
