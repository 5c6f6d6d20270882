// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// The annotations of helm-operator and helm-operator-plugins, with their meaning there. rollback-force is accepted too and
// has no meaning: nothing is ever rolled back.
const (
	annotationDomain = "helm.sdk.operatorframework.io/"

	// UpgradeForceAnnotation lets objects be deleted and made anew when fields have to change that Kubernetes does not change.
	UpgradeForceAnnotation = annotationDomain + "upgrade-force"
	// UninstallWaitAnnotation makes the deletion of a resource wait until its children are gone.
	UninstallWaitAnnotation = annotationDomain + "uninstall-wait"
	// ReconcilePeriodAnnotation replaces the watch's reconcilePeriod.
	ReconcilePeriodAnnotation = annotationDomain + "reconcile-period"
)

// mostValues is what the values of one resource may be: a rendering reads and writes them several times, and one that takes long
// keeps others of its kind waiting. Charts that take whole dashboards as values are given some 100 KiB.
var mostValues = rules.Size{Bytes: 512 << 10, Entries: 20_000}

// leastPeriod is the shortest that an annotation is taken at its word for: whoever may annotate one resource keeps no worker busy.
const leastPeriod = time.Second

// disableHooks are the annotations that switch hooks off, by the action they belong to.
var disableHooks = map[string]string{
	"install": annotationDomain + "install-disable-hooks",
	"upgrade": annotationDomain + "upgrade-disable-hooks",
	"delete":  annotationDomain + "uninstall-disable-hooks",
}

// valuesOf are what the chart of a resource is given: its spec, and the watch's overrides over it. The error is for a person.
func valuesOf(cr *unstructured.Unstructured, entry watches.Watch) (map[string]any, error) {
	spec, found, err := unstructured.NestedMap(cr.Object, "spec")
	if err != nil {
		return nil, field.Invalid(field.NewPath("spec"), "", "must be an object")
	}
	if !found {
		spec = map[string]any{}
	}
	values := runtime.DeepCopyJSON(spec)
	for _, key := range slices.Sorted(maps.Keys(entry.OverrideValues)) {
		if err := chart.Override(values, key, entry.OverrideValues[key]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// revisionOf is what the chart sees as .Release. It depends on the revision alone, so that rendering a revision again gives
// the same objects.
func revisionOf(cr *unstructured.Unstructured, revision int64) chart.Release {
	return chart.Release{Name: cr.GetName(), Namespace: cr.GetNamespace(), Revision: int(revision), IsInstall: revision == 1,
		IsUpgrade: revision > 1}
}

// allowed is what a resource may cause to exist: the kinds its chart writes, in its own namespace, and what the watch adds.
// A cluster-scoped resource may have cluster-scoped objects.
func (r *Reconciler) allowed(cr *unstructured.Unstructured) chart.Allowed {
	allow := r.entry.Allow
	return chart.Allowed{
		Namespace: cr.GetNamespace(), Namespaces: allow.Namespaces, ClusterScoped: allow.ClusterScoped || cr.GetNamespace() == "",
		Kinds: append(r.chart.Kinds(), allow.Kinds...), Namespaced: r.namespaced,
	}
}

// desired is what the resource asks for. It is pure but for what charts may see of the cluster: its capabilities, which are
// cached, and what lookup reads. A chart is rendered only if the digest does not tell that nothing changed.
func (r *Reconciler) desired(ctx context.Context, cr *unstructured.Unstructured, seen Snapshot) (Desired, error) {
	d := Desired{WaitForDeletion: cr.GetAnnotations()[UninstallWaitAnnotation] == "true", Revision: seen.nextRevision()}
	for action, annotation := range disableHooks {
		if cr.GetAnnotations()[annotation] == "true" {
			d.WithoutHooks = append(d.WithoutHooks, action)
		}
	}
	if refused := rules.AtMost(field.NewPath("spec"), cr.Object["spec"], mostValues); len(refused) > 0 && !seen.Deleting {
		d.Invalid = refused
		return d, nil
	}
	if r.options.Validate != nil {
		d.Invalid = r.options.Validate(cr)
	}
	var refused *chart.Error
	var err error
	if d.Values, err = valuesOf(cr, r.entry); errors.As(err, &refused) {
		return d, err // the watches file is wrong, not the resource
	} else if err != nil {
		d.Invalid = append(d.Invalid, field.Invalid(field.NewPath("spec"), "", "must be an object"))
		return d, nil //nolint:nilerr // it is in what is returned
	}
	withProxy(d.Values, r.entry.ProxyVariables, r.options.Proxy)
	if seen.Deleting { // what is deployed goes, whatever it is
		d.Digest, d.Revision = seen.Deployed.Digest, max(seen.Deployed.Revision, 1)
	} else {
		d.Awaited = r.awaited(cr)
		if d.Digest, d.Failure = r.digest(ctx, cr, d.Values, max(seen.Deployed.Revision, 1)); d.Failure != nil {
			return d, nil //nolint:nilerr // it is in what is returned
		}
	}
	r.madeBy(cr, seen, &d)
	if !seen.outdated(d.Digest) {
		d.Revision = seen.Deployed.Revision
	}
	if len(d.Invalid) > 0 && !seen.Deleting || seen.Paused || !r.mustRender(d, seen) {
		return d, nil
	}
	if former := seen.Former; former != nil && former.Complete && !seen.Deleting {
		d.Rendered, d.Failure = r.render(ctx, cr, d.Values, former.Revision)
		if d.Failure == nil && sameObjects(d.Rendered.Objects, former.Objects, cr.GetNamespace()) {
			d.Revision = former.Revision
			return d, nil
		}
	}
	d.Rendered, d.Failure = r.renderOnce(ctx, cr, d)
	if d.Failure == nil {
		d.OutOfReach, err = r.outOfReach(cr, d)
	}
	return d, err
}

// mustRender reports whether what is to be done cannot be said from digests alone.
func (r *Reconciler) mustRender(d Desired, seen Snapshot) bool {
	if seen.Deleting {
		return r.chart.HasHooks() && len(seen.Finalizers) > 0
	}
	return seen.outdated(d.Digest) && !d.held(seen, r.options.Now()) || seen.Hooks.Event != ""
}

// renderOnce renders a revision. What a chart gives that is not deterministic is kept until it is applied completely, and what
// has hooks as long as they run.
func (r *Reconciler) renderOnce(ctx context.Context, cr *unstructured.Unstructured, d Desired) (*chart.Rendered, error) {
	if r.chart.Deterministic() && !r.chart.HasHooks() {
		return r.render(ctx, cr, d.Values, d.Revision)
	}
	kept := r.memory.Get(cr.GetUID())
	if kept.rendered != nil && kept.digest == d.Digest && kept.revision == d.Revision {
		return kept.rendered, nil
	}
	rendered, err := r.render(ctx, cr, d.Values, d.Revision)
	if err == nil {
		r.memory.Update(cr.GetUID(), func(m *memory) {
			m.rendered, m.digest, m.revision, m.deployed = rendered, d.Digest, d.Revision, false
		})
	}
	return rendered, err
}

// render returns what a revision consists of, checked against what the resource may create.
func (r *Reconciler) render(ctx context.Context, cr *unstructured.Unstructured, values map[string]any, revision int64) (*chart.Rendered,
	error) {
	return r.renderWith(ctx, cr, values, revision, r.lookup(ctx, cr))
}

func (r *Reconciler) renderWith(ctx context.Context, cr *unstructured.Unstructured, values map[string]any, revision int64,
	lookup chart.Lookup) (*chart.Rendered, error) {
	if err := r.crds.install(ctx); err != nil { // the scope of a kind is known once it is served
		return nil, err
	}
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	capabilities.Lookup = lookup
	return r.renderFor(cr, values, revision, capabilities)
}

func (r *Reconciler) renderFor(cr *unstructured.Unstructured, values map[string]any, revision int64,
	capabilities chart.Capabilities) (*chart.Rendered, error) {
	rendered, err := r.chart.Render(values, revisionOf(cr, revision), capabilities)
	if err != nil {
		return nil, err
	}
	return rendered, chart.Check(rendered, r.allowed(cr))
}

// digest identifies what the chart would render. A chart that looks at objects of the cluster has to be rendered to know, unless
// they are as they were. If it gives something else each time, what it looks at cannot be told from what it invents, and only
// its input counts.
func (r *Reconciler) digest(ctx context.Context, cr *unstructured.Unstructured, values map[string]any, revision int64) (string, error) {
	capabilities, err := r.capabilities()
	if err != nil {
		return "", err
	}
	input, err := r.chart.DigestFor(values, revisionOf(cr, 1), capabilities)
	if err != nil || !r.chart.UsesLookup() {
		return input, err
	}
	lookup := r.lookup(ctx, cr)
	if before := r.memory.Get(cr.GetUID()).looked; before != nil && before.input == input && before.revision == revision {
		if same, err := before.same(lookup); err == nil && same { // what is not answered is asked again, and is an error then
			return before.digest, nil
		}
	}
	now := &looked{input: input, revision: revision}
	first, err := r.renderWith(ctx, cr, values, revision, now.note(lookup))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(input + "\n" + first.Manifest))
	now.digest = hex.EncodeToString(sum[:])
	if !r.chart.Deterministic() {
		second, err := r.render(ctx, cr, values, revision)
		if err != nil {
			return "", err
		}
		if first.Manifest != second.Manifest {
			now.digest = input
		}
	}
	r.memory.Update(cr.GetUID(), func(m *memory) { m.looked = now })
	return now.digest, nil
}

// outOfReach reports whether something of the rendering outlives the resource unless we delete it, or has to run when it goes.
func (r *Reconciler) outOfReach(cr *unstructured.Unstructured, d Desired) (bool, error) {
	objects := d.Rendered.Objects
	for _, event := range []hookEvent{preInstall, postInstall, preUpgrade, postUpgrade, preDelete, postDelete} {
		for _, hook := range hooksOf(d, event) {
			if event == preDelete || event == postDelete {
				return true, nil
			}
			objects = append(slices.Clip(objects), hook.Object)
		}
	}
	for _, object := range objects {
		ref, err := r.refOf(object, cr)
		if err != nil {
			return false, err
		}
		if cr.GetNamespace() != "" && ref.Namespace != cr.GetNamespace() && !apply.IsKept(object.GetAnnotations()) {
			return true, nil
		}
	}
	return false, nil
}

// refOf names an object where it will be.
func (r *Reconciler) refOf(object *unstructured.Unstructured, cr *unstructured.Unstructured) (apply.Ref, error) {
	ref := apply.RefOf(object)
	namespaced, err := r.namespaced(ref.GroupVersionKind)
	switch {
	case err != nil:
		return ref, fmt.Errorf("find the scope of %s: %w", ref, err)
	case !namespaced:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = cr.GetNamespace()
	}
	return ref, nil
}

func (r *Reconciler) refsOf(objects []*unstructured.Unstructured, cr *unstructured.Unstructured) ([]apply.Ref, error) {
	refs := make([]apply.Ref, 0, len(objects))
	for _, object := range objects {
		ref, err := r.refOf(object, cr)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// period is how often the resource is looked at without a reason; zero means never. What lookup reads cannot be watched, so a
// chart that uses it is looked at as often as helm-operator does it unless something else is said.
func (r *Reconciler) period(cr *unstructured.Unstructured) time.Duration {
	if d, err := time.ParseDuration(cr.GetAnnotations()[ReconcilePeriodAnnotation]); err == nil && d >= 0 {
		if d > 0 {
			d = max(d, leastPeriod)
		}
		return d
	}
	period := cmp.Or(r.entry.ReconcilePeriod, r.options.ReconcilePeriod)
	if period == 0 && r.chart.UsesLookup() {
		return LookupPeriod
	}
	return period
}
