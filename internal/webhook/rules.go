// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission rules of internal/admission to the API server. It holds no rule of its own.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	difference "gomodules.xyz/jsonpatch/v2"
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

	admissionrules "middleware.hc.cn/operator/internal/admission/rules"
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
	defaulting := defaulting[T]{rules: r, decoder: admission.NewDecoder(scheme)}
	server.Register(r.path("mutate"), &admission.Webhook{Handler: alive{bounded[T]{r, defaulting}}})
	validating := admission.WithValidator[T](scheme, r)
	validating.Handler = alive{bounded[T]{r, readable[T]{rules: r, next: validating.Handler}}}
	server.Register(r.path("validate"), validating)
}

func (r rules[T]) path(verb string) string {
	group := strings.ReplaceAll(r.gvk.Group, ".", "-")
	return fmt.Sprintf("/%s-%s-%s-%s", verb, group, r.gvk.Version, strings.ToLower(r.gvk.Kind))
}

// setDefaults sets the defaults of an object.
func (r rules[T]) setDefaults(request admission.Request, object T) {
	if r.image != nil {
		r.image(r.before(request), object)
	}
	r.defaults(object)
}

// before is the object as it is stored; nil when it is being made, or cannot be read as its Go type.
func (r rules[T]) before(request admission.Request) (before T) {
	if len(request.OldObject.Raw) == 0 {
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
type bounded[T client.Object] struct {
	rules rules[T]
	next  admission.Handler
}

// Handle implements admission.Handler.
func (h bounded[T]) Handle(ctx context.Context, request admission.Request) admission.Response {
	var object, before map[string]any
	_ = json.Unmarshal(request.Object.Raw, &object) // what cannot be read is said by who decodes it
	_ = json.Unmarshal(request.OldObject.Raw, &before)
	if mistakes := admissionrules.Quantities[T](object); len(mistakes) > 0 {
		return refused(apierrors.NewInvalid(h.rules.gvk.GroupKind(), request.Name, mistakes))
	}
	if len(admissionrules.Quantities[T](before)) > 0 {
		return admission.Allowed("")
	}
	return h.next.Handle(ctx, request)
}

// defaulting sets defaults, and leaves the rest of an object as it was written: 1000m does not become 1, and nothing empty is added,
// or who applies the same manifest again would change the object. What cannot be read as its Go type is let through without defaults:
// the API server checks the schema later, and its refusal names the field; the decoder's would name Go types.
type defaulting[T client.Object] struct {
	rules   rules[T]
	decoder admission.Decoder
}

// Handle implements admission.Handler.
func (d defaulting[T]) Handle(_ context.Context, request admission.Request) admission.Response {
	object := d.rules.fresh()
	if err := d.decoder.Decode(request, object); err != nil {
		return admission.Allowed("")
	}
	before, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	d.rules.setDefaults(request, object)
	after, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	defaulted, err := changed(request.Object.Raw, before, after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("set the defaults: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, defaulted)
}

// changed is a text with the difference between two others. It may lack what those have: a Go type writes empty structs.
func changed(text, before, after []byte) ([]byte, error) {
	operations, err := difference.CreatePatch(before, after)
	if err != nil || len(operations) == 0 {
		return text, err
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	lenient := jsonpatch.NewApplyOptions()
	lenient.EnsurePathExistsOnAdd, lenient.AllowMissingPathOnRemove = true, true
	return patch.ApplyWithOptions(text, lenient)
}

// readable passes on the requests whose objects can be read as their Go type, without a field that it does not know: the reconciler
// reads them so. Of a value of the wrong type the decoder would name Go types; here the refusal names the field. Who repairs what is
// stored, and cannot be read, is judged by the new object alone.
type readable[T client.Object] struct {
	rules rules[T]
	next  admission.Handler
}

// Handle implements admission.Handler.
func (h readable[T]) Handle(ctx context.Context, request admission.Request) admission.Response {
	if mistakes := admissionrules.Read(request.Object.Raw, h.rules.fresh()); len(mistakes) > 0 {
		if sameSpec(request.OldObject.Raw, request.Object.Raw) {
			return admission.Allowed("")
		}
		return refused(apierrors.NewInvalid(h.rules.gvk.GroupKind(), request.Name, mistakes))
	}
	if len(request.OldObject.Raw) > 0 && json.Unmarshal(request.OldObject.Raw, h.rules.fresh()) != nil {
		request.Operation = admissionv1.Create
	}
	return h.next.Handle(ctx, request)
}

func refused(why *apierrors.StatusError) admission.Response {
	status := why.Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// sameSpec reports whether two objects have the same spec, whatever it is.
func sameSpec(a, b []byte) bool {
	var before, after struct{ Spec any }
	return json.Unmarshal(a, &before) == nil && json.Unmarshal(b, &after) == nil && equality.Semantic.DeepEqual(before, after)
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
