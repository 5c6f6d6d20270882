// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// optional are the kinds of children that an earlier rendering may have made and the
// present one may not hold. StatefulSets are not among them: those go by steps.
var optional = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// statefulSet is the one kind of children that names Secrets.
const statefulSet = "StatefulSet"

// children renders the chart of a cluster and compares it with what exists.
type children struct {
	chart    *chart.Chart
	applier  *apply.Applier
	cache    client.Reader
	observer *observe.Observer
	mapper   meta.RESTMapper

	mu    sync.Mutex
	known map[types.UID]rendering
}

// rendering is the last one of a cluster, kept because most passes ask for the same.
type rendering struct {
	digest  string
	objects []*unstructured.Unstructured
}

// wanted is what the chart renders for a pass, and what it no longer renders.
type wanted struct {
	// objects are without the StatefulSets that are held back.
	objects  []*unstructured.Unstructured
	obsolete []apply.Ref
	// nodeTimeout is the cluster-node-timeout that the configuration asks for.
	nodeTimeout time.Duration
	// settings are those that are asked for; nil when they are not known.
	settings []values.Setting
}

// observe renders the children for the effective topology, and notes in the snapshot
// which of them are not as rendered. Errors that trying again cannot help are StallErrors.
func (c *children) observe(ctx context.Context, cluster *v1alpha1.RedisCluster, d plan.Desired, s *snapshot.Snapshot, now time.Time) (wanted, error) {
	if d.Deleting || len(d.Problems) > 0 {
		return wanted{}, nil
	}
	text, problem, err := c.observer.Settings(ctx, cluster, now)
	if err != nil {
		return wanted{}, err
	}
	if problem != "" {
		return wanted{}, &act.StallError{Cause: "InvalidSpec", Message: problem}
	}
	settings, err := values.ParseConfig(text)
	if err != nil {
		c.observer.ForgetSettings(cluster.UID) // so that the next pass sees them mended
		return wanted{}, &act.StallError{Cause: "InvalidSpec", Message: fmt.Sprintf("spec.pod[0].configmap: %v", err)}
	}
	d.Settings = values.AskedFor(cluster, settings)
	topology := plan.Effective(d, s)
	if refused := admission.CheckTemplate(cluster, len(topology)); len(refused) > 0 { // it may have more shards than the spec asks for
		return wanted{}, &act.StallError{Cause: "InvalidSpec", Message: refused[0].Error()}
	}
	objects, err := c.render(cluster, values.Build(asTemplated(cluster, s), topology, values.Inputs{Settings: plan.EffectiveSettings(d, s)}))
	if err != nil {
		return wanted{}, &act.StallError{Cause: "RenderFailed", Message: err.Error()}
	}
	w := wanted{objects: objects, settings: d.Settings, nodeTimeout: nodeTimeout(d.Settings)}
	pending, err := c.applier.Pending(ctx, cluster, objects)
	var notOurs *apply.NotOursError
	if errors.As(err, &notOurs) {
		return wanted{}, &act.StallError{Cause: "NameTaken", Message: notOurs.Error()}
	}
	if err != nil {
		return wanted{}, err
	}
	if d.Paused {
		if pending, err = c.missing(ctx, cluster, pending); err != nil {
			return wanted{}, err
		}
	}
	if slices.ContainsFunc(pending, func(ref apply.Ref) bool { return ref.Kind == statefulSet }) {
		if s.Withheld = c.observer.Withheld(ctx, cluster); s.Withheld != nil {
			pending = slices.DeleteFunc(pending, func(ref apply.Ref) bool { return ref.Kind == statefulSet })
			w.objects = slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() == statefulSet })
		}
	}
	if w.obsolete, err = c.obsolete(ctx, cluster, objects); err != nil {
		return wanted{}, err
	}
	for _, ref := range slices.Concat(pending, w.obsolete) {
		s.Pending = append(s.Pending, ref.Kind+" "+ref.Name)
	}
	return w, nil
}

// nodeTimeout is cluster-node-timeout of the merged settings; 0 when it is not a number.
func nodeTimeout(settings []values.Setting) time.Duration {
	for _, setting := range settings {
		if setting.Name == "cluster-node-timeout" && len(setting.Args) == 1 {
			milliseconds, err := strconv.Atoi(setting.Args[0])
			if err == nil {
				return time.Duration(milliseconds) * time.Millisecond
			}
		}
	}
	return 0
}

// missing keeps of the pending children those that do not exist, when nothing is known of
// the others: after a restart of the operator only an apply would tell whether they are as
// rendered, and a paused cluster is not applied.
func (c *children) missing(ctx context.Context, cluster *v1alpha1.RedisCluster, pending []apply.Ref) ([]apply.Ref, error) {
	if drift, err := c.applier.Drifted(ctx, cluster); drift.Known || err != nil {
		return pending, err
	}
	var missing []apply.Ref
	for _, ref := range pending {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(ref.GroupVersionKind)
		err := c.cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
		if apierrors.IsNotFound(err) {
			missing = append(missing, ref)
		} else if err != nil {
			return nil, fmt.Errorf("read %s from the cache: %w", ref, err)
		}
	}
	return missing, nil
}

// asTemplated is the cluster with the storage that the StatefulSets' claim template asks
// for: the template cannot change, and claims grow by a step of their own.
func asTemplated(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) *v1alpha1.RedisCluster {
	claim := cluster.Spec.Claim()
	if claim == nil || len(s.Shards) == 0 || s.Shards[0].ClaimSize == "" {
		return cluster
	}
	size, err := resource.ParseQuantity(s.Shards[0].ClaimSize)
	if err != nil {
		return cluster
	}
	templated := cluster.DeepCopy()
	claim.Size = size
	templated.Spec.Storage = claim
	return templated
}

func (c *children) render(cluster *v1alpha1.RedisCluster, v map[string]any) ([]*unstructured.Unstructured, error) {
	release := chart.Release{Name: cluster.Name, Namespace: cluster.Namespace, Revision: 1, IsInstall: true}
	digest, err := c.chart.DigestFor(v, release, chart.Capabilities{})
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if objects, ok := c.kept(cluster.UID, digest); ok {
		return objects, nil
	}
	// What strings make of the objects is checked with one shard: they are the same in all, and
	// the check renders twice more.
	if _, err := c.chart.Render(values.OneShard(v), release, chart.Capabilities{}); err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	rendered, err := c.chart.AllowStructuredValues().Render(v, release, chart.Capabilities{})
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	allowed := chart.Allowed{Namespace: cluster.Namespace, Kinds: c.chart.Kinds(), Namespaced: func(kind schema.GroupVersionKind) (bool, error) {
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace, err
	}}
	if err := chart.Check(rendered, allowed); err != nil {
		return nil, fmt.Errorf("the rendered chart: %w", err)
	}
	c.keep(cluster.UID, rendering{digest: digest, objects: rendered.Objects})
	return rendered.Objects, nil
}

// kept is the last rendering of a cluster if it was of a digest. Nothing is rendered under the
// lock, which all clusters share: passes of one cluster come one after the other anyway.
func (c *children) kept(uid types.UID, digest string) (objects []*unstructured.Unstructured, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, ok := c.known[uid]
	return was.objects, ok && was.digest == digest
}

func (c *children) keep(uid types.UID, r rendering) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[types.UID]rendering{}
	}
	c.known[uid] = r
}

// obsolete finds children of ours that are not rendered any more.
func (c *children) obsolete(ctx context.Context, cluster *v1alpha1.RedisCluster, objects []*unstructured.Unstructured) ([]apply.Ref, error) {
	var obsolete []apply.Ref
	for _, kind := range optional {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.cache.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
			return nil, fmt.Errorf("list children of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			ref := apply.Ref{GroupVersionKind: kind, Namespace: item.Namespace, Name: item.Name, UID: item.UID}
			owner := metav1.GetControllerOf(item)
			rendered := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GroupVersionKind().GroupKind() == kind.GroupKind() && o.GetName() == item.Name
			})
			if owner != nil && owner.UID == cluster.UID && !rendered && item.DeletionTimestamp == nil {
				obsolete = append(obsolete, ref)
			}
		}
	}
	return obsolete, nil
}

func (c *children) forget(uid types.UID) {
	c.applier.Forget(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, uid)
}
