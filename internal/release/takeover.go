// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// Former is a release that another operator made for a resource: helm-operator-plugins or operator-sdk's helm-operator.
type Former struct {
	// Revision is its highest revision.
	Revision int64
	// Complete reports whether this revision was deployed; it may have failed, or been left pending by a crash.
	Complete bool
	// Objects are those of that revision as they were recorded.
	Objects []*unstructured.Unstructured
	// Refs are the objects of this and of every other recorded revision that may still have some.
	Refs []apply.Ref
}

// findFormer looks for a release in Helm's history that the resource's status does not know. It asks the API server only if
// the resource shows that an operator like ours had it: by a finalizer, or by a release in its status.
func (r *Reconciler) findFormer(ctx context.Context, cr *unstructured.Unstructured, seen Snapshot) (*Former, error) {
	if seen.Deployed.Digest != "" || cr.GetNamespace() == "" || r.memory.Get(cr.GetUID()).unclaimed {
		return nil, nil
	}
	if len(seen.Finalizers) == 0 && seen.Deployed.Name == "" {
		r.memory.Update(cr.GetUID(), func(m *memory) { m.unclaimed = true })
		return nil, nil
	}
	past, err := r.recordedReleases(ctx, cr)
	if apierrors.IsForbidden(err) {
		forbidden := &apply.ForbiddenError{
			Verb: "list", Err: err, Ref: apply.Ref{Namespace: cr.GetNamespace(), Name: "owner=helm,name=" + cr.GetName(),
				GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret")}}
		return nil, fmt.Errorf(
			"another operator may have left a release, which is looked for among the Secrets: %w; until all resources of the namespace are taken over: "+
				"kubectl create role middleware-operator-takeover -n %[2]s --verb=list --resource=secrets && "+
				"kubectl create rolebinding middleware-operator-takeover -n %[2]s --role=middleware-operator-takeover --serviceaccount=%[3]s",
			forbidden, cr.GetNamespace(), r.options.ServiceAccount)
	}
	if err != nil {
		return nil, fmt.Errorf("look for a release that another operator left: %w", err)
	}
	return formerOf(past, func(o *unstructured.Unstructured) (apply.Ref, error) { return r.refOf(o, cr) })
}

// recordsAtOnce is how many records are in memory at once: each may have 1 MiB, and anybody may write more of them.
const recordsAtOnce = 5

// recordedReleases are the revisions that other operators recorded for a resource, the newest with its objects, of the others only
// how these are called.
func (r *Reconciler) recordedReleases(ctx context.Context, cr *unstructured.Unstructured) (past []*chart.StoredRelease, err error) {
	var newest *chart.StoredRelease
	next := ""
	for more := true; more; more = next != "" {
		secrets := &corev1.SecretList{}
		if err := r.live.List(ctx, secrets, client.InNamespace(cr.GetNamespace()), client.MatchingLabels{"owner": "helm", "name": cr.GetName()},
			client.Limit(recordsAtOnce), client.Continue(next)); err != nil {
			return nil, err
		}
		next = secrets.Continue
		for i := range secrets.Items {
			secret := &secrets.Items[i]
			if string(secret.Type) != chart.StoredType || !refersTo(secret, cr.GetUID()) || secret.Annotations[recordedByAnnotation] == recordedBy {
				continue
			}
			recorded, err := chart.DecodeRelease(secret.Data["release"])
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", secret.Name, err)
			}
			past = append(past, recorded)
			if newest == nil || recorded.Revision > newest.Revision {
				newest, recorded = recorded, newest
			}
			onlyNames(recorded)
		}
	}
	return past, nil
}

// onlyNames drops of a revision all but how its objects are called.
func onlyNames(recorded *chart.StoredRelease) {
	if recorded == nil {
		return
	}
	var named []*unstructured.Unstructured
	for _, object := range recorded.Rendered.Objects {
		one := &unstructured.Unstructured{}
		one.SetGroupVersionKind(object.GroupVersionKind())
		one.SetNamespace(object.GetNamespace())
		one.SetName(object.GetName())
		named = append(named, one)
	}
	recorded.Rendered = &chart.Rendered{Objects: named}
}

// formerOf sums up what is recorded of a release; nil when nothing is.
func formerOf(past []*chart.StoredRelease, refOf func(*unstructured.Unstructured) (apply.Ref, error)) (*Former, error) {
	if len(past) == 0 {
		return nil, nil
	}
	slices.SortFunc(past, func(a, b *chart.StoredRelease) int { return cmp.Compare(b.Revision, a.Revision) })
	former := &Former{Revision: int64(past[0].Revision), Complete: past[0].Status == chart.StatusDeployed, Objects: past[0].Rendered.Objects}
	for _, revision := range past {
		for _, object := range revision.Rendered.Objects {
			ref, err := refOf(object)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(former.Refs, ref.Same) {
				former.Refs = append(former.Refs, ref)
			}
		}
		if revision.Status == chart.StatusDeployed {
			break // what was before it was pruned when it was deployed
		}
	}
	return former, nil
}

// sameObjects reports whether two renderings ask for the same. The other operators record who owns an object in its manifest, and
// may record the namespace that it is in anyway: neither counts.
func sameObjects(ours, theirs []*unstructured.Unstructured, namespace string) bool {
	plain := func(objects []*unstructured.Unstructured) map[string]any {
		byName := map[string]any{}
		for _, object := range objects {
			o := object.DeepCopy()
			if o.GetNamespace() == namespace {
				o.SetNamespace("")
			}
			o.SetOwnerReferences(nil)
			annotations := o.GetAnnotations()
			delete(annotations, handler.NamespacedNameAnnotation)
			delete(annotations, handler.TypeAnnotation)
			if len(annotations) == 0 {
				annotations = nil
			}
			o.SetAnnotations(annotations)
			if len(o.GetLabels()) == 0 {
				o.SetLabels(nil)
			}
			unstructured.RemoveNestedField(o.Object, "status")
			byName[apply.RefOf(o).String()+o.GroupVersionKind().String()] = o.Object
		}
		return byName
	}
	return reflect.DeepEqual(plain(ours), plain(theirs))
}
