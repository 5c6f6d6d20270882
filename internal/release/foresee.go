// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// Cluster is the one for which Foresee looks ahead.
type Cluster struct {
	// Capabilities are asked for if the chart looks at them.
	Capabilities func() (chart.Capabilities, error)
	// Live reads what exists. Nil is no cluster at all: there nothing exists, and lookup finds nothing.
	Live client.Client
	// Namespaced reports whether a kind lives in namespaces, where Live is nil.
	Namespaced func(schema.GroupVersionKind) (bool, error)
	// Dry takes what Deploy writes, and must not carry it out.
	Dry client.Client
}

// Foresight is what a reconciliation of a resource would do.
type Foresight struct {
	// Desired is rendered always, unless the resource is invalid or rendering failed. It is both rendered and a failure when something
	// may not be made.
	Desired
	// Allowed is what the resource may cause to exist.
	Allowed chart.Allowed

	engine *Reconciler
	seen   Snapshot
	cr     *unstructured.Unstructured
}

// Foresee looks ahead for a resource as it is stored, as if it were neither paused nor being deleted.
func Foresee(ctx context.Context, cr *unstructured.Unstructured, w watches.Watch, c *chart.Chart, o Options, in Cluster) (*Foresight,
	error) {
	r := &Reconciler{gvk: w.GroupVersionKind, chart: c, options: o.withDefaults(w), entry: w, live: in.Live, namespaced: in.Namespaced}
	r.cluster = &discovered{ask: in.Capabilities, now: r.options.Now}
	if in.Live == nil {
		r.live, r.lookup = nowhere{}, func(context.Context, *unstructured.Unstructured) chart.Lookup { return findNothing }
	} else {
		r.namespaced, r.lookup = scopes(in.Live), r.lookupLive
	}
	r.children = childReader{r.live}
	r.applier = apply.New(in.Dry, r.children)
	f := &Foresight{engine: r, cr: cr, Allowed: r.allowed(cr)}
	var err error
	if f.seen, err = r.observeRelease(ctx, cr); err != nil {
		return nil, err
	}
	f.seen.Deleting, f.seen.Paused = false, false
	if f.Desired, err = r.desired(ctx, cr, f.seen); err != nil || len(f.Invalid) > 0 || f.Rendered != nil {
		return f, err
	}
	if f.Failure == nil { // nothing changed
		f.Rendered, f.Failure = r.rendered(ctx, cr, f.Desired, f.Revision)
	} else { // there is no digest; what was rendered to find it is of interest even if it may not be made
		f.Rendered, f.Failure = r.render(ctx, cr, f.Values, f.Revision)
	}
	return f, err
}

// Deploy applies and deletes, through Cluster.Dry, what a reconciliation would.
func (f *Foresight) Deploy(ctx context.Context) (applied, pruned apply.ChangeSet, err error) {
	wanted, err := f.engine.compose(ctx, f.cr, f.Desired, f.seen, f.Revision)
	if err != nil {
		return nil, nil, err
	}
	return f.engine.carryOut(ctx, f.cr, wanted, f.seen)
}

// Sent are the objects of the release and those of its hooks as they would be sent.
func (f *Foresight) Sent() (objects, hooks []*unstructured.Unstructured, err error) {
	for _, object := range f.Rendered.Objects {
		namespaced, err := f.engine.namespaced(object.GroupVersionKind())
		if err != nil {
			return nil, nil, fmt.Errorf("find the scope of %s: %w", apply.RefOf(object), err)
		}
		objects = append(objects, apply.Stamp(object, f.cr, f.engine.gvk, namespaced))
	}
	for _, hook := range f.Rendered.Hooks {
		object, err := f.engine.hookObject(f.cr, hook)
		if err != nil {
			return nil, nil, err
		}
		hooks = append(hooks, object)
	}
	return objects, hooks, nil
}

// nowhere is a cluster in which nothing exists. Everything else of client.Client is nil and never called.
type nowhere struct{ client.Client }

func (nowhere) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: object.GetObjectKind().GroupVersionKind().Kind}, key.Name)
}

func (nowhere) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func findNothing(_, _, _, _ string) (map[string]any, error) { return nil, nil }
