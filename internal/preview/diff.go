// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
)

// Diff writes what applying the resources of a request would change in a cluster, as a unified diff, and reports whether there is
// anything. Nothing is written to the cluster: the resource is stored, its objects are applied and deleted in dry runs, which go
// through defaulting, admission and the rights of whoever asks.
//
// Two things are only seen when they happen: the new form of an object that is deleted and made anew, and fields that are given
// up by helm-operator when its release is taken over.
func Diff(ctx context.Context, request Request, cfg *rest.Config) (different bool, err error) {
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return false, fmt.Errorf("reach the cluster: %w", err)
	}
	live, err := client.New(cfg, client.Options{HTTPClient: transport})
	if err != nil {
		return false, fmt.Errorf("reach the cluster: %w", err)
	}
	work, err := request.prepare(live.RESTMapper())
	if err != nil {
		return false, err
	}
	c := comparison{work: work, live: live, cfg: cfg, http: transport}
	for _, d := range work.resources {
		differs, err := c.compare(ctx, d)
		if err != nil {
			return different, errorsOf(d.located(SeverityError, err)...)
		}
		different = different || differs
	}
	return different, nil
}

type comparison struct {
	*work
	live client.Client
	cfg  *rest.Config
	http *http.Client
}

// compare does the work of a reconciliation for one resource, in dry runs, and writes the difference.
func (c *comparison) compare(ctx context.Context, d document) (bool, error) {
	k, err := c.kindOf(d)
	if err != nil {
		return false, err
	}
	cr, err := c.store(ctx, d.object)
	if err != nil {
		return false, err
	}
	answers := newRecorder(client.NewDryRunClient(c.live))
	done, err := k.foresee(ctx, cr, release.Cluster{Live: c.live, Dry: answers,
		Capabilities: func() (chart.Capabilities, error) { return release.Discover(c.cfg, c.http) }})
	if err != nil {
		return false, err
	}
	applied, pruned, err := done.Deploy(ctx)
	if err != nil {
		return false, err
	}
	if hooks := len(done.Rendered.Hooks); hooks > 0 {
		c.note("%s: %s not compared", d, count(hooks, "hook"))
	}
	return c.print(ctx, applied, pruned, answers)
}

// store returns the resource as the API server would store it: with defaults, admitted, with the status of the live one.
func (c *comparison) store(ctx context.Context, cr *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	namespaced, err := c.live.IsObjectNamespaced(cr)
	if err != nil {
		return nil, fmt.Errorf("find the scope of %s: %w", cr.GetKind(), err)
	}
	if namespaced {
		cr.SetNamespace(cmp.Or(cr.GetNamespace(), c.Namespace, exampleNamespace))
	}
	dry := client.NewDryRunClient(c.live)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(cr.GroupVersionKind())
	err = c.live.Get(ctx, client.ObjectKeyFromObject(cr), live)
	switch {
	case apierrors.IsNotFound(err):
		if err := dry.Create(ctx, cr); err != nil {
			return nil, fmt.Errorf("create it: %w", err)
		}
		return cr, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	next := live.DeepCopy()
	for key, value := range cr.Object {
		if key != "metadata" && key != "status" {
			next.Object[key] = value
		}
	}
	next.SetLabels(over(live.GetLabels(), cr.GetLabels()))
	next.SetAnnotations(over(live.GetAnnotations(), cr.GetAnnotations()))
	if err := dry.Update(ctx, next); err != nil {
		return nil, fmt.Errorf("change it: %w", err)
	}
	return next, nil
}

func over(below, above map[string]string) map[string]string {
	all := maps.Clone(below)
	if all == nil {
		return above
	}
	maps.Copy(all, above)
	return all
}

// print compares what the applies were answered with what is there.
func (c *comparison) print(ctx context.Context, applied, pruned apply.ChangeSet, answers *recorder) (different bool, err error) {
	for i, change := range slices.Concat(applied, pruned) {
		before, err := c.present(ctx, change.Ref)
		if err != nil {
			return different, err
		}
		change.UID = ""
		after := answers.applied[change.Ref]
		if change.Action == apply.Deleted {
			after = nil
			if i < len(applied) {
				c.note("%s is deleted and made anew: it has a field that cannot be changed", change.Ref)
			}
		}
		text, err := difference(change.Ref, before, after)
		if err != nil {
			return different, err
		}
		different = different || text != ""
		if _, err := fmt.Fprint(c.Out, text); err != nil {
			return different, err
		}
	}
	return different, nil
}

// present reads an object; nil when there is none.
func (c *comparison) present(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.GroupVersionKind)
	err := c.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return object, nil
}
