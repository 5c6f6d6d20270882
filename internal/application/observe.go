// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	admission "middleware.hc.cn/operator/internal/admission/application"
	"middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/pause"
)

// observe does all the reading of a reconciliation. What it cannot read is an error, never
// an absence.
func (r *reconciler) observe(ctx context.Context, object *unstructured.Unstructured) (*Snapshot, error) {
	s := &Snapshot{Generation: object.GetGeneration(), Deleting: object.GetDeletionTimestamp() != nil,
		Paused: pause.Asked(object), PauseMessage: pause.Message(object)}
	if status, ok := object.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &s.Status); err != nil {
			return nil, fmt.Errorf("read the status: %w", err)
		}
	}
	if s.Deleting {
		return s, nil
	}
	app, refused := rules.Strict[applicationv1.Application](object)
	if app != nil {
		refused = admission.Validate(app)
	}
	if len(refused) > 0 {
		s.Refused = refused
		return s, nil
	}
	s.Desired = desired(object)
	var err error
	if s.Deployment, err = r.deployment(ctx, object, s.Desired); err != nil {
		return nil, err
	}
	if s.Paused {
		return s, nil // whether it differs makes no difference
	}
	if s.Differs, err = r.differs(ctx, object, s); err != nil || s.Deployment != nil || !s.Differs {
		return s, err
	}
	s.Foreign, err = r.foreign(ctx, object, app.Spec.Selector, s.Desired.GetName())
	return s, err
}

// deployment reads our Deployment from the cache of children.
func (r *reconciler) deployment(ctx context.Context, owner, desired *unstructured.Unstructured) (*appsv1.Deployment, error) {
	cached := &unstructured.Unstructured{}
	cached.SetGroupVersionKind(deploymentKind)
	err := r.children.Get(ctx, client.ObjectKeyFromObject(desired), cached)
	if apierrors.IsNotFound(err) || (err == nil && !metav1.IsControlledBy(cached, owner)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Deployment %s from the cache: %w", desired.GetName(), err)
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(cached.Object, deployment); err != nil {
		return nil, fmt.Errorf("read Deployment %s: %w", desired.GetName(), err)
	}
	return deployment, nil
}

// differs asks, without a request, whether the Deployment has to be applied.
func (r *reconciler) differs(ctx context.Context, owner *unstructured.Unstructured, s *Snapshot) (bool, error) {
	pending, err := r.applier.Pending(ctx, owner, []*unstructured.Unstructured{s.Desired})
	var foreign *apply.NotOursError
	if errors.As(err, &foreign) {
		s.Foreign = foreign.Error()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	drift, err := r.applier.Drifted(ctx, owner)
	s.Lagging = drift.Lagging
	return len(pending) > 0, err
}

// foreign looks for Deployments of others that match the selector: the source
// document makes a Deployment only when none matches. It asks the API server,
// because the cache knows only what this operator made; that happens only when a
// Deployment is about to be made. One of the Deployment's own name is the applier's to judge, which knows one that it
// made by more than its owner reference.
func (r *reconciler) foreign(ctx context.Context, owner *unstructured.Unstructured, s *metav1.LabelSelector, own string) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "", err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(deploymentKind.GroupVersion().WithKind("DeploymentList"))
	if err := r.live.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return "", fmt.Errorf("look for Deployments that match the selector: %w", err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Name != own && !metav1.IsControlledBy(&list.Items[i], owner) {
			names = append(names, list.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("Deployment %s matches spec.selector and does not belong to this Application: delete it, or choose another selector",
		strings.Join(names, ", ")), nil
}
