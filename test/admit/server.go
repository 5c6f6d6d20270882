// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"middleware.hc.cn/operator/internal/webhook"
)

// Server admits objects.
type Server struct {
	Definitions map[schema.GroupVersionKind]*Definition
	hooks       hooks
}

// Refusal is one reason why an object is refused.
type Refusal struct{ Field, Message string }

func (r Refusal) String() string { return r.Field + ": " + r.Message }

// NewServer makes a server with the operator's webhooks, whose types a scheme knows.
func NewServer(scheme *runtime.Scheme, o webhook.Options) (*Server, error) {
	defined, err := Definitions()
	if err != nil {
		return nil, err
	}
	s := &Server{Definitions: defined, hooks: hooks{byPath: map[string]http.Handler{}}}
	return s, webhook.Add(manager{server: s.hooks, scheme: scheme}, o)
}

// hooks keeps the webhooks that are registered. Everything else of webhook.Server is nil and never called.
type hooks struct {
	ctrlwebhook.Server
	byPath map[string]http.Handler
}

// Register implements webhook.Server.
func (h hooks) Register(path string, hook http.Handler) { h.byPath[path] = hook }

// manager is as much of one as webhooks ask for. Everything else of ctrl.Manager is nil and never called.
type manager struct {
	ctrl.Manager
	server ctrlwebhook.Server
	scheme *runtime.Scheme
}

// GetWebhookServer implements ctrl.Manager.
func (m manager) GetWebhookServer() ctrlwebhook.Server { return m.server }

// GetScheme implements ctrl.Manager.
func (m manager) GetScheme() *runtime.Scheme { return m.scheme }

// Admit returns an object as it is stored, and warnings; or why it is refused. Before is what it replaces, nil at its making. An
// error is something that a user should never see.
func (s *Server) Admit(ctx context.Context, gvk schema.GroupVersionKind, before, object map[string]any) (stored map[string]any,
	warnings []string, refused []Refusal, err error) {
	defined := s.Definitions[gvk]
	stored = runtime.DeepCopyJSON(object)
	defined.Complete(stored)
	response, err := s.ask(ctx, "mutate", gvk, before, stored)
	if err != nil {
		return nil, nil, nil, err
	}
	if !response.Allowed {
		return nil, nil, refusalsOf(response), nil
	}
	if stored, err = patched(stored, response.Patch); err != nil {
		return nil, nil, nil, err
	}
	defined.Complete(stored)
	for _, e := range defined.Refuses(ctx, before, stored) {
		refused = append(refused, Refusal{e.Field, e.ErrorBody()})
	}
	if len(refused) > 0 {
		return nil, nil, refused, nil
	}
	if response, err = s.ask(ctx, "validate", gvk, before, stored); err != nil || !response.Allowed {
		return nil, nil, refusalsOf(response), err
	}
	return stored, response.Warnings, nil, nil
}

// ask sends a webhook its request.
func (s *Server) ask(ctx context.Context, verb string, gvk schema.GroupVersionKind, before, object map[string]any) (admission.Response,
	error) {
	path := fmt.Sprintf("/%s-%s-%s-%s", verb, strings.ReplaceAll(gvk.Group, ".", "-"), gvk.Version, strings.ToLower(gvk.Kind))
	hook, ok := s.hooks.byPath[path].(*admission.Webhook)
	if !ok {
		return admission.Response{}, fmt.Errorf("there is no webhook %s", path)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(gvk), Operation: admissionv1.Create}}
	var err error
	if request.Object.Raw, err = json.Marshal(object); err != nil {
		return admission.Response{}, err
	}
	if before != nil {
		request.Operation = admissionv1.Update
		if request.OldObject.Raw, err = json.Marshal(before); err != nil {
			return admission.Response{}, err
		}
	}
	return hook.Handle(ctx, request), nil
}

// refusalsOf are the causes that kubectl shows, or the message where there are none.
func refusalsOf(response admission.Response) []Refusal {
	if response.Allowed || response.Result == nil {
		return nil
	}
	if response.Result.Details == nil || len(response.Result.Details.Causes) == 0 {
		return []Refusal{{Message: response.Result.Message}}
	}
	var refused []Refusal
	for _, cause := range response.Result.Details.Causes {
		refused = append(refused, Refusal{cause.Field, cause.Message})
	}
	return refused
}

// patched applies a JSON patch.
func patched(object map[string]any, patch []byte) (map[string]any, error) {
	if len(patch) == 0 {
		return object, nil
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if text, err = decoded.Apply(text); err != nil {
		return nil, fmt.Errorf("apply the webhook's patch: %w", err)
	}
	result := map[string]any{}
	return result, utiljson.Unmarshal(text, &result)
}
