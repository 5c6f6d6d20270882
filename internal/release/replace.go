// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// standIns returns what the chart makes without the APIs that a resource asks for, as long as the objects of these APIs are not
// ready: what is reached through a former object is reached all the time. It is nothing if there is no such former object.
func (r *Reconciler) standIns(ctx context.Context, cr *unstructured.Unstructured, desired Desired, rendered *chart.Rendered,
	previous []apply.Known, revision int64) ([]*unstructured.Unstructured, error) {
	if r.options.Awaits == nil {
		return nil, nil
	}
	unready, err := r.unready(ctx, cr, rendered, r.options.Awaits(cr))
	if len(unready) == 0 {
		return nil, err
	}
	cluster, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	cluster.APIVersions = slices.DeleteFunc(slices.Clone(cluster.APIVersions), func(api string) bool { return slices.Contains(unready, api) })
	without, err := r.renderFor(cr, desired.Values, revision, cluster)
	if err != nil {
		return nil, err
	}
	wanted, err := r.refsOf(rendered.Objects, cr)
	if err != nil {
		return nil, err
	}
	known := false
	var others []*unstructured.Unstructured
	for _, object := range without.Objects {
		ref, err := r.refOf(object, cr)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(wanted, ref.Same) {
			continue
		}
		others = append(others, object)
		known = known || slices.ContainsFunc(previous, func(k apply.Known) bool { return k.Same(ref) })
	}
	if !known {
		return nil, nil
	}
	return others, nil
}

// unready returns those of the APIs of which something was rendered that does not do its work yet.
func (r *Reconciler) unready(ctx context.Context, cr *unstructured.Unstructured, rendered *chart.Rendered, apis []string) ([]string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	var unready []string
	for _, object := range rendered.Objects {
		api := object.GetAPIVersion() + "/" + object.GetKind()
		if !slices.Contains(apis, api) || slices.Contains(unready, api) {
			continue
		}
		ref, err := r.refOf(object, cr)
		if err != nil {
			return nil, err
		}
		shown := kindOf(ref.GroupVersionKind)
		err = r.children.get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, shown)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("look whether %s is ready: %w", ref, err)
		}
		if err != nil || readinessOf(shown).progress != ready {
			unready = append(unready, api)
		}
	}
	return unready, nil
}
