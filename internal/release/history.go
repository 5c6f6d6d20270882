// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/shell"
)

// recordedByAnnotation is on the Secrets of Helm's history that this operator wrote; Helm does not look at it. After a crash behind
// the record it tells a revision of ours, whose deployment the status does not know yet, from what another operator left.
const (
	recordedByAnnotation = "middleware.hc.cn/recorded-by"
	recordedBy           = "middleware-operator"
)

// errTaken means that a Secret of Helm's history belongs to another release of the same name.
var errTaken = errors.New("another release of this name is recorded in this namespace")

// recordHistory writes a revision into Helm's storage, after the fact: nothing depends on it, so a failure is a condition and
// the release goes on. Secrets are read and written by name, past any cache.
func (r *Reconciler) recordHistory(ctx context.Context, cr *unstructured.Unstructured, rendered *chart.Rendered,
	revision int64) *metav1.Condition {
	release := revisionOf(cr, revision)
	condition := conditions.Condition(TypeHistoryRecorded, metav1.ConditionFalse, ReasonHistoryFailed, "")
	if release.Namespace == "" {
		condition.Reason, condition.Message = ReasonHistoryClusterScoped,
			"Helm keeps its history in a namespace, and this resource is in none; everything else works"
		return &condition
	}
	err := r.writeHistory(ctx, cr, rendered, release)
	switch {
	case err == nil:
		return recorded(release)
	case apierrors.IsForbidden(err):
		condition.Reason, condition.Message = ReasonHistoryForbidden,
			fmt.Sprintf("the operator may not keep Helm's history (Secrets) in this namespace, everything else works; to allow it: "+
				"kubectl create rolebinding middleware-operator -n %s --clusterrole=middleware-operator-namespace --serviceaccount=%s",
				release.Namespace, r.options.ServiceAccount)
	case errors.Is(err, errTaken):
		condition.Reason, condition.Message = ReasonHistoryNameTaken, err.Error()+"; it is left as it is, and this release has no Helm history"
	default:
		condition.Message = err.Error()
	}
	return &condition
}

// recorded reports whether Helm's history knows the release.
func recorded(release chart.Release) *metav1.Condition {
	c := conditions.Condition(TypeHistoryRecorded, metav1.ConditionTrue, ReasonRecorded,
		fmt.Sprintf("helm history %s -n %s shows it", release.Name, release.Namespace))
	return &c
}

func (r *Reconciler) writeHistory(ctx context.Context, cr *unstructured.Unstructured, rendered *chart.Rendered,
	release chart.Release) error {
	now := r.options.Now()
	record := chart.Record{Release: release, Status: chart.StatusDeployed, FirstDeployed: now, LastDeployed: now,
		Description: cmp.Or(cr.GetAnnotations()[annotationDomain+"install-description"], "Install complete")}
	if release.Revision > 1 {
		record.Description = cmp.Or(cr.GetAnnotations()[annotationDomain+"upgrade-description"], "Upgrade complete")
		first, err := r.supersede(ctx, cr, release.Name, release.Revision-1)
		if err != nil {
			return err
		}
		if !first.IsZero() {
			record.FirstDeployed = first.Time
		}
	}
	stored, err := r.chart.EncodeRelease(rendered, record)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cr.GetNamespace(), Name: stored.Name, Labels: stored.Labels,
			Annotations:     map[string]string{recordedByAnnotation: recordedBy},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Name: cr.GetName(), UID: cr.GetUID()}}},
		Type: corev1.SecretType(stored.Type), Data: stored.Data,
	}
	if err := r.live.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		if err := r.replaceHistory(ctx, cr, secret); err != nil {
			return err
		}
	} else if err != nil {
		return fmt.Errorf("record revision %d: %w", release.Revision, err)
	}
	return r.forgetRevisions(ctx, cr, release.Revision-r.options.MaxHistory)
}

// errOther means that somebody has written the resource since it was read: another process, which goes on from there, may have applied and
// recorded what it rendered.
var errOther = errors.New("the resource has changed since it was read")

// replaceHistory writes a revision again, which a crash or a failed record left behind, unless somebody else has come in between.
func (r *Reconciler) replaceHistory(ctx context.Context, cr *unstructured.Unstructured, secret *corev1.Secret) error {
	existing := &corev1.Secret{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(secret), existing); err != nil {
		return fmt.Errorf("read the recorded revision: %w", err)
	}
	if !refersTo(existing, cr.GetUID()) {
		return errTaken
	}
	if version, err := r.versionOf(ctx, cr); err != nil {
		return err
	} else if version != cr.GetResourceVersion() {
		return errOther
	}
	existing.Labels, existing.Data = secret.Labels, secret.Data
	metav1.SetMetaDataAnnotation(&existing.ObjectMeta, recordedByAnnotation, recordedBy)
	if err := r.live.Update(ctx, existing); err != nil {
		return fmt.Errorf("record the revision again: %w", err)
	}
	return nil
}

// versionOf is the version of a resource that the API server has; empty: it is gone.
func (r *Reconciler) versionOf(ctx context.Context, cr *unstructured.Unstructured) (string, error) {
	is := shell.ListOf(cr.GroupVersionKind()) // the operator may list and watch its kinds, and not get them
	named := client.MatchingFields{metav1.ObjectNameField: cr.GetName()}
	if err := r.live.List(ctx, is, client.InNamespace(cr.GetNamespace()), named); err != nil {
		return "", fmt.Errorf("look whether the resource is as it was: %w", err)
	}
	if len(is.Items) != 1 || is.Items[0].GetUID() != cr.GetUID() {
		return "", nil
	}
	return is.Items[0].GetResourceVersion(), nil
}

// supersede marks a revision as replaced and returns when its release was first deployed; zero if it is not recorded.
func (r *Reconciler) supersede(ctx context.Context, cr *unstructured.Unstructured, release string, revision int) (metav1.Time, error) {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: chart.StoredName(release, revision)}, secret)
	if apierrors.IsNotFound(err) {
		return metav1.Time{}, nil
	}
	if err != nil {
		return metav1.Time{}, fmt.Errorf("read revision %d: %w", revision, err)
	}
	if !refersTo(secret, cr.GetUID()) {
		return metav1.Time{}, errTaken
	}
	data, first, err := chart.SetStatus(secret.Data["release"], chart.StatusSuperseded)
	if err != nil {
		return metav1.Time{}, err
	}
	if secret.Labels["status"] == string(chart.StatusSuperseded) {
		return metav1.NewTime(first), nil
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, "status", string(chart.StatusSuperseded)) // somebody may have taken all labels off
	secret.Data["release"] = data
	if err := r.live.Update(ctx, secret); err != nil {
		return metav1.Time{}, fmt.Errorf("mark revision %d as superseded: %w", revision, err)
	}
	return metav1.NewTime(first), nil
}

// recordedRevision returns what the history says a revision consists of; nil if it does not know or may not be read.
func (r *Reconciler) recordedRevision(ctx context.Context, cr *unstructured.Unstructured, revision int64) (*chart.Rendered, error) {
	if cr.GetNamespace() == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: chart.StoredName(cr.GetName(), int(revision))}, secret)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && !refersTo(secret, cr.GetUID()) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the recorded revision %d: %w", revision, err)
	}
	past, err := chart.DecodeRelease(secret.Data["release"])
	if err != nil {
		return nil, fmt.Errorf("read the recorded revision %d: %w", revision, err)
	}
	return past.Rendered, chart.Check(past.Rendered, r.allowed(cr))
}

// deleteHistory removes what is recorded, by whomever it was. Where Secrets may not be listed, the garbage collector does it: every
// record refers to its resource.
func (r *Reconciler) deleteHistory(ctx context.Context, cr *unstructured.Unstructured) error {
	if cr.GetNamespace() == "" {
		return nil
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.live.List(ctx, secrets, client.InNamespace(cr.GetNamespace()), client.MatchingLabels{"owner": "helm", "name": cr.GetName()})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the history: %w", err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if !refersTo(secret, cr.GetUID()) {
			continue
		}
		if err := r.live.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", secret.Name, err)
		}
	}
	return nil
}

// gap is how many revisions in a row may have no record before what is older is taken to have none either: a record that failed
// leaves one out.
const gap = 10

// forgetRevisions deletes the records of a revision and of older ones. There is more than one to delete only when the history was
// longer before, so a process looks for more once for each resource. The oldest goes first: a stop midway leaves no gap.
func (r *Reconciler) forgetRevisions(ctx context.Context, cr *unstructured.Unstructured, newest int) error {
	trimmed := r.memory.Get(cr.GetUID()).historyTrimmed
	var old []*corev1.Secret
	for revision, missing := newest, 0; revision > 0 && missing < gap; revision-- {
		secret := &corev1.Secret{}
		err := r.live.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: chart.StoredName(cr.GetName(), revision)}, secret)
		switch {
		case refersTo(secret, cr.GetUID()): // what was not read refers to nobody
			old, missing = append(old, secret), 0
		case client.IgnoreNotFound(err) == nil:
			missing++
		default:
			return fmt.Errorf("forget revision %d: %w", revision, err)
		}
		if trimmed {
			break
		}
	}
	for _, secret := range slices.Backward(old) {
		if err := r.live.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("forget %s: %w", secret.Name, err)
		}
	}
	r.memory.Update(cr.GetUID(), func(m *memory) { m.historyTrimmed = true })
	return nil
}

func refersTo(object metav1.Object, owner types.UID) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner {
			return true
		}
	}
	return false
}
