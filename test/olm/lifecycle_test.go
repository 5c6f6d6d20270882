// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/live"
)

var (
	catalogSource   = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "CatalogSource"}
	subscription    = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"}
	serviceVersion  = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"}
	operatorGroup   = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"}
	conditionOfOurs = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"}
)

const catalogName = "middleware-operator-catalog"

func object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// field is a string of an object, empty when it is not there.
func field(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// serve makes OLM know the catalog of a version, instead of another version's.
func serve(t *testing.T, version string) {
	t.Helper()
	source := object(catalogSource, "olm", catalogName)
	spec := map[string]any{"sourceType": "grpc", "image": catalogImage(version), "displayName": "Middleware Operator",
		"grpcPodConfig": map[string]any{"securityContextConfig": "restricted"}}
	source.Object["spec"] = spec
	err := live.Kube.Create(t.Context(), source)
	if apierrors.IsAlreadyExists(err) {
		live.Change(t, source, func(o *unstructured.Unstructured) { o.Object["spec"] = spec })
	} else if err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the catalog of "+version+" is served", func() error {
		if err := live.Get(t, source); err != nil {
			return err
		}
		if state := field(source, "status", "connectionState", "lastObservedState"); state != "READY" {
			return fmt.Errorf("the catalog is %q", state)
		}
		return servedByImage(t, catalogImage(version))
	})
}

// servedByImage checks that a catalog's pod of that image is ready, and no other.
func servedByImage(t *testing.T, image string) error {
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace("olm"), client.MatchingLabels{"olm.catalogSource": catalogName}); err !=
		nil {
		return err
	}
	if len(pods.Items) != 1 || pods.Items[0].Spec.Containers[0].Image != image {
		return fmt.Errorf("%d catalog pods", len(pods.Items))
	}
	return nil
}

// installation is an operator that OLM has installed.
type installation struct {
	t         *testing.T
	namespace string
}

// namespaceOf makes a namespace that the test removes. Pods in it have no privilege at all.
func namespaceOf(t *testing.T, name string) string {
	t.Helper()
	return namespaceAt(t, name, "restricted")
}

// namespaceAt is namespaceOf with another level of pod security.
func namespaceAt(t *testing.T, name, level string) string {
	t.Helper()
	live.Create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}})
	t.Cleanup(func() {
		if t.Failed() {
			live.Report(t, name)
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_ = live.Kube.Delete(context.Background(), ns)
		gone(t, ns)
	})
	return name
}

// gone waits until an object is deleted, also when the test has ended.
func gone(t *testing.T, o client.Object) {
	t.Helper()
	live.EventuallyIn(context.Background(), t, o.GetName()+" is gone", func() error {
		err := live.Kube.Get(context.Background(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w)", err)
	})
}

// group makes OLM install operators of a namespace for these namespaces; none means all.
func group(t *testing.T, namespace string, targets ...string) {
	t.Helper()
	g := object(operatorGroup, namespace, namespace)
	spec := map[string]any{}
	if len(targets) > 0 {
		list := make([]any, len(targets))
		for i, target := range targets {
			list[i] = target
		}
		spec["targetNamespaces"] = list
	}
	g.Object["spec"] = spec
	live.Create(t, g)
}

// subscribe installs the newest version of the channel stable.
func subscribe(t *testing.T, namespace string) installation {
	t.Helper()
	s := object(subscription, namespace, "middleware-operator")
	s.Object["spec"] = map[string]any{"name": "middleware-operator", "channel": "stable", "source": catalogName, "sourceNamespace": "olm"}
	live.Create(t, s)
	return installation{t, namespace}
}

// succeeded waits until OLM says that a version is installed and runs.
func (i installation) succeeded(version string) {
	i.t.Helper()
	csv := object(serviceVersion, i.namespace, csvName(version))
	live.Eventually(i.t, csv.GetName()+" has Succeeded", func() error {
		if err := live.Get(i.t, csv); err != nil {
			return err
		}
		if phase := field(csv, "status", "phase"); phase != "Succeeded" {
			return fmt.Errorf("%s: %s: %s", phase, field(csv, "status", "reason"), field(csv, "status", "message"))
		}
		return nil
	})
}

// remove uninstalls the operator, and wants nothing to be left of it but what OLM leaves for good: the definitions of the
// kinds, so that no object of theirs goes with an operator.
func (i installation) remove(version string) {
	i.t.Helper()
	i.disable(i.namespace)
	for _, o := range []client.Object{object(subscription, i.namespace, "middleware-operator"),
		object(serviceVersion, i.namespace, csvName(version))} {
		if err := live.Kube.Delete(i.t.Context(), o); err != nil {
			i.t.Fatal(err)
		}
		gone(i.t, o)
	}
	live.Eventually(i.t, "nothing is left of the operator", func() error { return nothingLeft(i.t, i.namespace) })
}

// enable gives the operator the Secrets of a namespace, with the command that the documentation gives.
func (i installation) enable(namespace string) {
	i.t.Helper()
	live.Create(i.t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "middleware-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-namespace"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: i.namespace, Name: "middleware-operator"}},
	})
}

// disable takes back what enable gave, if it did.
func (i installation) disable(namespace string) {
	i.t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "middleware-operator"}}
	if err := live.Kube.Delete(i.t.Context(), binding); client.IgnoreNotFound(err) != nil {
		i.t.Fatal(err)
	}
}

// stays is what an uninstallation leaves, besides the definitions of the kinds and the roles that OLM derives from them (they go
// with the definitions). None of it grants anything to the operator, whose service account is gone.
var stays = map[string]string{
	"ClusterRole middleware-operator-namespace":           "OLM never removes a ClusterRole that a bundle brought; people have bound it",
	"ClusterRole middleware-operator-metrics-reader":      "as above",
	"ClusterRole middleware-operator-rediscluster-editor": "as above; it is about people's right to scale what is left",
	"ClusterRole middleware-operator-app-editor":          "as above",
	"Lease middleware-operator":                           "the operator made it; it goes with the namespace",
}

// nothingLeft names what is left of the operator in the cluster and in its namespace.
func nothingLeft(t *testing.T, namespace string) error {
	var left []string
	for _, kind := range []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Version: "v1", Kind: "Pod"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "Secret"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		conditionOfOurs,
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := live.Kube.List(t.Context(), list); err != nil {
			return err
		}
		for i := range list.Items {
			o := &list.Items[i]
			ours := strings.HasPrefix(o.Name, "middleware-operator") || strings.Contains(o.Name, "middleware.hc.cn") ||
				o.Labels["olm.owner"] == csvName(given.current) || o.Labels["olm.owner"] == csvName(given.previous)
			_, expected := stays[kind.Kind+" "+o.Name]
			if ours && !expected && !derivedFromDefinition(o) && (o.Namespace == "" || o.Namespace == namespace) {
				left = append(left, kind.Kind+" "+o.Name)
			}
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left: %s", strings.Join(left, ", "))
	}
	return nil
}

// derivedFromDefinition reports whether an object goes with a CustomResourceDefinition.
func derivedFromDefinition(o *metav1.PartialObjectMetadata) bool {
	for _, owner := range o.OwnerReferences {
		if strings.EqualFold(owner.Kind, "CustomResourceDefinition") {
			return true
		}
	}
	return false
}
