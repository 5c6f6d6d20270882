// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission rules of internal/admission to the API server. It holds no rule of its own.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shared "middleware.hc.cn/operator/internal/admission/rules"
)

// rules are the admission functions of one kind. They are pure.
type rules[T client.Object] struct {
	gvk schema.GroupVersionKind
	// fresh returns an empty object, spec the part of one that the rules are about.
	fresh func() T
	spec  func(T) any

	// image writes the default image into an object that names none; nil for kinds without one. before is nil at the
	// object's making.
	image          func(before, object T)
	defaults       func(T)
	validate       func(T) field.ErrorList
	validateUpdate func(before, after T) field.ErrorList
	warnings       func(T) []string
}

// register serves the rules under the paths that controller-runtime's own builder would choose. Neither is asked about objects that are
// being deleted: config/webhook says so in matchConditions, which OLM's webhook definitions do not have.
func (r rules[T]) register(server ctrlwebhook.Server, scheme *runtime.Scheme) {
	defaulting := admission.WithDefaulter[T](scheme, r)
	defaulting.Handler = alive{r.bounded(
		readable{next: defaulting.Handler, decoder: admission.NewDecoder(scheme), fresh: func() runtime.Object { return r.fresh() }})}
	server.Register(r.path("mutate"), defaulting)
	validating := admission.WithValidator[T](scheme, r)
	validating.Handler = alive{r.bounded(validating.Handler)}
	server.Register(r.path("validate"), validating)
}

func (r rules[T]) path(verb string) string {
	group := strings.ReplaceAll(r.gvk.Group, ".", "-")
	return fmt.Sprintf("/%s-%s-%s-%s", verb, group, r.gvk.Version, strings.ToLower(r.gvk.Kind))
}

// Default implements admission.Defaulter.
func (r rules[T]) Default(ctx context.Context, object T) error {
	if r.image != nil {
		r.image(r.before(ctx), object)
	}
	r.defaults(object)
	return nil
}

// before is the object as it is stored; nil when it is being made, or cannot be read as its Go type.
func (r rules[T]) before(ctx context.Context) (before T) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil || len(request.OldObject.Raw) == 0 {
		return before
	}
	stored := r.fresh()
	if err := json.Unmarshal(request.OldObject.Raw, stored); err != nil {
		return before
	}
	return stored
}

// ValidateCreate implements admission.Validator.
func (r rules[T]) ValidateCreate(_ context.Context, object T) (admission.Warnings, error) {
	return r.warnings(object), r.refusal(object, r.validate(object))
}

// ValidateUpdate implements admission.Validator. An update that leaves the spec as it was is never refused: labels, annotations and
// finalizers of an object that was accepted under older rules must stay changeable.
func (r rules[T]) ValidateUpdate(_ context.Context, before, after T) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(r.spec(before), r.spec(after)) {
		return nil, nil
	}
	mistakes := r.validate(after)
	if len(mistakes) == 0 {
		mistakes = r.validateUpdate(before, after)
	}
	return r.warnings(after), r.refusal(after, mistakes)
}

// ValidateDelete implements admission.Validator; deletions are not asked about.
func (r rules[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// refusal is the error that kubectl shows as a list of field paths and sentences.
func (r rules[T]) refusal(object T, mistakes field.ErrorList) error {
	if len(mistakes) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.gvk.GroupKind(), object.GetName(), mistakes)
}

// bounded refuses objects with quantities that take for ever to decode; the schema would, but defaulting comes first. If the stored
// object has one, it came past the webhook: the change is let through unread, and the reconciler says what is wrong with it.
func (r rules[T]) bounded(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		var object, before map[string]any
		_ = json.Unmarshal(request.Object.Raw, &object) // what cannot be read is said by who decodes it
		_ = json.Unmarshal(request.OldObject.Raw, &before)
		if refused := shared.Quantities[T](object); len(refused) > 0 {
			status := apierrors.NewInvalid(r.gvk.GroupKind(), request.Name, refused).Status()
			return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
		}
		if len(shared.Quantities[T](before)) > 0 {
			return admission.Allowed("")
		}
		return next.Handle(ctx, request)
	})
}

// readable passes on the requests whose object can be read as its Go type and lets the others through without defaults. Defaulting comes
// before the API server checks the schema, whose refusal names the field; the decoder's would name Go types.
type readable struct {
	next    admission.Handler
	decoder admission.Decoder
	fresh   func() runtime.Object
}

// Handle implements admission.Handler.
func (h readable) Handle(ctx context.Context, request admission.Request) admission.Response {
	if err := h.decoder.Decode(request, h.fresh()); err != nil {
		return admission.Allowed("")
	}
	return h.next.Handle(ctx, request)
}

// alive passes on the requests about objects that are not being deleted and lets the others through as they are, readable or not: an
// object that was accepted under older rules must be able to lose its finalizers.
type alive struct{ next admission.Handler }

// Handle implements admission.Handler.
func (h alive) Handle(ctx context.Context, request admission.Request) admission.Response {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &object); err == nil && object.DeletionTimestamp != nil {
		return admission.Allowed("")
	}
	return h.next.Handle(ctx, request)
}
