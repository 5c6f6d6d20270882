// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package read reads what the commands of the plugin show, with limits: what there is more of is said, and left out. Secrets are never
// read.
package read

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/overview"
)

// RedisCluster is that kind, in whatever version the cluster serves it.
var RedisCluster = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "RedisCluster"}

// Kinds are those of the operator.
var Kinds = []schema.GroupKind{
	RedisCluster,
	{Group: "controller.controller.daocloud.io", Kind: "Application"},
	{Group: "appcontroller.middleware.hc.cn", Kind: "App"},
	{Group: "stable.example.com", Kind: "CronTab"},
	{Group: "k8s.io", Kind: "FooBar"},
}

// pageSize is how many objects one request asks for, most how many of one kind are read: more than the largest RedisCluster has pods.
const pageSize, most = 250, 2000

// Reader reads from one API server.
type Reader struct {
	client.Reader
	// Mapper tells which versions of a kind the server has.
	Mapper meta.RESTMapper
	Now    func() time.Time
}

// Served is the version in which the server prefers to serve a kind.
func (r Reader) Served(kind schema.GroupKind) (schema.GroupVersionKind, error) {
	mapping, err := r.Mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return schema.GroupVersionKind{}, fmt.Errorf("the cluster has no %s: its CustomResourceDefinition is not installed", kind)
	}
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("ask which versions of %s there are: %w", kind, err)
	}
	return mapping.GroupVersionKind, nil
}

// Object reads one custom resource.
func (r Reader) Object(ctx context.Context, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	gvk, err := r.Served(kind)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := r.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// Typed is a RedisCluster as this version knows it: fields of a newer operator are left out, those that an older one lacks are empty.
func Typed(object *unstructured.Unstructured) (*v1alpha1.RedisCluster, error) {
	encoded, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	cluster := &v1alpha1.RedisCluster{}
	if err := json.Unmarshal(encoded, cluster); err != nil {
		return nil, fmt.Errorf("%s of %s is of a form that this version of the plugin cannot read: %w", object.GetKind(),
			object.GetAPIVersion(), err)
	}
	return cluster, nil
}

// TypedCluster reads a RedisCluster as Typed has it.
func (r Reader) TypedCluster(ctx context.Context, key client.ObjectKey) (*v1alpha1.RedisCluster, error) {
	object, err := r.Object(ctx, RedisCluster, key)
	if err != nil {
		return nil, err
	}
	return Typed(object)
}

// Cluster reads what there is to see of a RedisCluster. What besides the object cannot be read is Unread.
func (r Reader) Cluster(ctx context.Context, key client.ObjectKey) (overview.Seen, error) {
	object, err := r.Object(ctx, RedisCluster, key)
	if err != nil {
		return overview.Seen{}, err
	}
	seen := overview.Seen{Now: r.Now()}
	if seen.Cluster, err = Typed(object); err != nil {
		return seen, err
	}
	namespace, own := client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: key.Name}
	seen.Pods, err = list(ctx, r, func() *corev1.PodList { return &corev1.PodList{} }, podItems, namespace, own)
	seen.Unread = unread(seen.Unread, "pods", err)
	seen.Claims, err = list(ctx, r, func() *corev1.PersistentVolumeClaimList { return &corev1.PersistentVolumeClaimList{} }, claimItems,
		namespace, own)
	seen.Unread = unread(seen.Unread, "persistentvolumeclaims", err)
	seen.Events, err = r.events(ctx, seen)
	seen.Unread = unread(seen.Unread, "events", err)
	seen.Memory, err = r.memory(ctx, namespace, own)
	seen.Unread = unread(seen.Unread, "memory", err)
	return seen, nil
}

// List reads the objects of all kinds, in one namespace or, when that is empty, in all.
func (r Reader) List(ctx context.Context, namespace string) (overview.SeenList, error) {
	seen := overview.SeenList{AllNamespaces: namespace == "", Now: r.Now()}
	for _, kind := range Kinds {
		gvk, err := r.Served(kind)
		if err != nil {
			seen.Unread = append(seen.Unread, overview.Unread{What: kind.Kind, Why: err.Error()})
			continue
		}
		items, err := r.objects(ctx, gvk, client.InNamespace(namespace))
		seen.Objects = append(seen.Objects, items...)
		seen.Unread = unread(seen.Unread, kind.Kind, err)
	}
	if len(seen.Unread) == len(Kinds) {
		return seen, fmt.Errorf("nothing could be read: %s", seen.Unread[0].Why)
	}
	return seen, nil
}

// list reads the pages of a list, up to most objects. It returns what it has read together with the error.
func list[L client.ObjectList, T any](ctx context.Context, r Reader, fresh func() L, items func(L) []T,
	options ...client.ListOption) ([]T, error) {
	var all []T
	token := ""
	for {
		page := fresh()
		if err := r.Reader.List(ctx, page, append(slices.Clone(options), client.Limit(pageSize), client.Continue(token))...); err != nil {
			return all, err
		}
		all = append(all, items(page)...)
		token = page.GetContinue()
		switch {
		case token == "":
			return all, nil
		case len(all) >= most:
			return all, fmt.Errorf("there are more than %d, and the first of them were read", len(all))
		}
	}
}

func podItems(l *corev1.PodList) []corev1.Pod { return l.Items }

func claimItems(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }

func eventItems(l *corev1.EventList) []corev1.Event { return l.Items }

// objects lists a kind that has no Go type here.
func (r Reader) objects(ctx context.Context, kind schema.GroupVersionKind,
	options ...client.ListOption) ([]unstructured.Unstructured, error) {
	fresh := func() *unstructured.UnstructuredList {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return all
	}
	return list(ctx, r, fresh, func(l *unstructured.UnstructuredList) []unstructured.Unstructured { return l.Items }, options...)
}

// unread notes an error.
func unread(list []overview.Unread, what string, err error) []overview.Unread {
	switch {
	case err == nil:
		return list
	case apierrors.IsForbidden(err):
		return append(list, overview.Unread{What: what, Why: "you may not: " + err.Error()})
	}
	return append(list, overview.Unread{What: what, Why: err.Error()})
}

// EventsOf are those about a RedisCluster.
func (r Reader) EventsOf(ctx context.Context, cluster *v1alpha1.RedisCluster) ([]corev1.Event, error) {
	return r.eventsWith(ctx, cluster.Namespace, "involvedObject.uid", string(cluster.UID))
}

func (r Reader) eventsWith(ctx context.Context, namespace, field, value string) ([]corev1.Event, error) {
	return list(ctx, r, func() *corev1.EventList { return &corev1.EventList{} }, eventItems, client.InNamespace(namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(field, value)})
}

// events are those about the RedisCluster, and warnings about its pods and claims.
func (r Reader) events(ctx context.Context, seen overview.Seen) ([]corev1.Event, error) {
	own, err := r.EventsOf(ctx, seen.Cluster)
	if err != nil {
		return own, err
	}
	warnings, err := r.eventsWith(ctx, seen.Cluster.Namespace, "type", corev1.EventTypeWarning)
	ours := map[string]bool{}
	for _, pod := range seen.Pods {
		ours[string(pod.UID)] = true
	}
	for _, claim := range seen.Claims {
		ours[string(claim.UID)] = true
	}
	return append(own, slices.DeleteFunc(warnings, func(e corev1.Event) bool { return !ours[string(e.InvolvedObject.UID)] })...), err
}

// metrics is the kind of what kubelets measured of a pod (metrics-server, or another).
var metrics = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}

const longestQuantity = 24

// memory is what containers of Redis use. A cluster without metrics says nothing, and that is no error.
func (r Reader) memory(ctx context.Context, namespace client.InNamespace, own client.MatchingLabels) (map[string]resource.Quantity, error) {
	measured, err := r.objects(ctx, metrics, namespace, own)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
		return nil, nil
	}
	used := map[string]resource.Quantity{}
	for i := range measured {
		containers, _, _ := unstructured.NestedSlice(measured[i].Object, "containers")
		for _, c := range containers {
			container, _ := c.(map[string]any)
			if name, _ := container["name"].(string); name != "redis" {
				continue
			}
			text, _, _ := unstructured.NestedString(container, "usage", "memory")
			if len(text) > longestQuantity {
				continue // some take for ever to parse
			}
			if quantity, err := resource.ParseQuantity(text); err == nil {
				used[measured[i].GetName()] = quantity
			}
		}
	}
	return used, err
}

// Key names an object.
func Key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// All are the objects of a kind in a namespace.
func (r Reader) All(ctx context.Context, kind schema.GroupKind, namespace string) ([]unstructured.Unstructured, error) {
	gvk, err := r.Served(kind)
	if err != nil {
		return nil, err
	}
	objects, err := r.objects(ctx, gvk, client.InNamespace(namespace))
	if err != nil {
		return objects, fmt.Errorf("list %s in %s: %w", kind.Kind, namespace, err)
	}
	return objects, nil
}

// Labelled are the objects of a kind that carry the label of a RedisCluster.
func (r Reader) Labelled(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) ([]unstructured.Unstructured, error) {
	return r.objects(ctx, kind, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: key.Name})
}

// Instances are the pods of a RedisCluster's instances, by name.
func (r Reader) Instances(ctx context.Context, key client.ObjectKey) ([]corev1.Pod, error) {
	pods, err := list(ctx, r, func() *corev1.PodList { return &corev1.PodList{} }, podItems, client.InNamespace(key.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: key.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of RedisCluster %s: %w", key, err)
	}
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		_, _, is := cluster.InstanceOf(pod.Name)
		return !is
	})
	if len(pods) == 0 {
		return nil, fmt.Errorf("RedisCluster %s has no pods", key)
	}
	return pods, nil
}
