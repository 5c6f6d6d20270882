// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chartkind is what the chart engine has to know about the kinds that ship
// with the operator, and cannot know from their charts: how to validate one, and
// how its own status fields follow from its children. All of it is pure.
package chartkind

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	"middleware.hc.cn/operator/internal/admission/app"
	"middleware.hc.cn/operator/internal/admission/crontab"
	"middleware.hc.cn/operator/internal/admission/foobar"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// Kind is what the engine is told about a kind. Its functions are nil where there is
// nothing to tell.
type Kind struct {
	// Validate says everything that is wrong with an object: the same as the webhook.
	Validate func(object *unstructured.Unstructured) field.ErrorList
	// StatusExtras computes the kind's own status fields and conditions from the
	// object and its children. A field that is nil is to be removed.
	StatusExtras func(object *unstructured.Unstructured, children []*unstructured.Unstructured, now time.Time) (map[string]any,
		[]metav1.Condition)
	// Awaits returns the APIs that an object asks for and that its chart does without
	// where the cluster lacks them.
	Awaits func(object *unstructured.Unstructured) []string
}

var kinds = map[schema.GroupVersionKind]Kind{
	crontabv1beta1.GroupVersion.WithKind("CronTab"): {Validate: validate(crontab.Validate), StatusExtras: CronTabStatus},
	foobarv1.GroupVersion.WithKind("FooBar"):        {Validate: validate(foobar.Validate), StatusExtras: FooBarStatus},
	appv1alpha1.GroupVersion.WithKind("App"):        {Validate: validate(app.Validate), StatusExtras: AppStatus, Awaits: AppAwaits},
}

// For returns what there is to know about a kind; the zero value for one that does
// not ship with the operator.
func For(gvk schema.GroupVersionKind) Kind { return kinds[gvk] }

// validate converts an object strictly and then asks the kind's own function.
func validate[T any](validate func(*T) field.ErrorList) func(*unstructured.Unstructured) field.ErrorList {
	return func(object *unstructured.Unstructured) field.ErrorList {
		typed, refused := rules.Strict[T](object)
		if len(refused) > 0 {
			return refused
		}
		return validate(typed)
	}
}

// newest returns the youngest child of a kind that is not being deleted, converted
// to its type; nil when there is none or it cannot be read.
func newest[T any](children []*unstructured.Unstructured, kind schema.GroupKind, named func(name string) bool) *T {
	var found *unstructured.Unstructured
	for _, child := range children {
		if child.GroupVersionKind().GroupKind() != kind || child.GetDeletionTimestamp() != nil || (named != nil && !named(child.GetName())) {
			continue
		}
		if found == nil || found.GetCreationTimestamp().Time.Before(child.GetCreationTimestamp().Time) {
			found = child
		}
	}
	if found == nil {
		return nil
	}
	return convert[T](found)
}
