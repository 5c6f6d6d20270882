// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is an answer of the API server.
func status(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: details}}
}

func because(cause metav1.CauseType) *metav1.StatusDetails {
	return &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}}
}

// What an error means, and whether only a person can mend it. That the API server answers so is tested in test/apiserver/apply.
func TestReason(t *testing.T) {
	forbidden := func(message string) error {
		return status(http.StatusForbidden, metav1.StatusReasonForbidden, message, nil)
	}
	absent := func(message string, details *metav1.StatusDetails) error {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound, message, details)
	}
	internal := func(message string) error {
		return status(http.StatusInternalServerError, metav1.StatusReasonInternalError, message, nil)
	}
	for name, tt := range map[string]struct {
		err    error
		reason string
		final  bool
	}{
		"no error":                {nil, "", false},
		"another's":               {&NotOursError{}, ReasonNotOurs, true},
		"immutable":               {&ImmutableError{Err: forbidden("x")}, ReasonImmutable, true},
		"no right":                {&ForbiddenError{Err: forbidden("x")}, ReasonForbidden, true},
		"a kind that is unknown":  {&meta.NoKindMatchError{}, ReasonUnknownKind, false},
		"a kind that was deleted": {absent("x", because(metav1.CauseTypeUnexpectedServerResponse)), ReasonUnknownKind, false},
		"gone":                    {absent("x", nil), "", false},
		"an unexpected answer":    {status(http.StatusBadGateway, "", "x", because(metav1.CauseTypeUnexpectedServerResponse)), "", false},
		"a kind that is leaving":  {forbidden("create not allowed while custom resource definition is terminating"), ReasonUnknownKind, false},
		"said otherwise":          {errors.New("while custom resource definition is terminating"), "", false},
		"a namespace that leaves": {status(http.StatusForbidden, metav1.StatusReasonForbidden, "x", because(corev1.NamespaceTerminatingCause)),
			ReasonNamespaceDeleted, false},
		"no namespace": {absent("x", &metav1.StatusDetails{Kind: "namespaces"}), ReasonNoNamespace, false},
		"no object":    {absent("x", &metav1.StatusDetails{Kind: "secrets"}), "", false},
		"a namespace, otherwise": {status(http.StatusConflict, metav1.StatusReasonConflict, "x", &metav1.StatusDetails{Kind: "namespaces"}),
			"", false},
		"a quota":                  {forbidden("exceeded quota: q"), ReasonQuotaExceeded, false},
		"a quota, said otherwise":  {errors.New("exceeded quota: q"), "", false},
		"a wrong type":             {internal("failed to create typed patch object (x): y"), ReasonRejected, true},
		"a wrong type, otherwise":  {errors.New("failed to create typed patch object (x): y"), "", false},
		"an internal error":        {internal("etcd"), "", false},
		"admission says no":        {forbidden("x"), ReasonRejected, true},
		"invalid":                  {invalid("x"), ReasonRejected, true},
		"bad request":              {apierrors.NewBadRequest("x"), ReasonRejected, true},
		"too large":                {apierrors.NewRequestEntityTooLargeError("x"), ReasonRejected, true},
		"not supported":            {apierrors.NewMethodNotSupported(corev1.Resource("x"), "patch"), ReasonRejected, true},
		"conflict":                 {conflict(), "", false},
		"an API server that is up": {apierrors.NewTooManyRequests("x", 1), "", false},
		"a timeout":                {errors.New("timeout"), "", false},
	} {
		wrapped := tt.err
		if wrapped != nil {
			wrapped = fmt.Errorf("apply: %w", tt.err)
		}
		if reason, final := Reason(wrapped); reason != tt.reason || final != tt.final {
			t.Errorf("%s: %q, final %t, want %q, %t", name, reason, final, tt.reason, tt.final)
		}
	}
}

// A right that is missing is named; everything else is said with what was done to which object, and whose it is as it is.
func TestDescribe(t *testing.T) {
	ref := refs("a")[0]
	for text, want := range map[string]string{
		`configmaps "a" is forbidden: User "op" cannot patch resource "configmaps"`:                    "patch",
		`roles "a" is forbidden: user "op" is attempting to grant RBAC permissions not currently held`: "escalate",
		`a is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource`:      "update the finalizers of the owner of",
		`a is forbidden: cannot set an ownerRef on a resource you can't delete: x`:                     "delete",
		`configmaps "a" is forbidden: denied by a webhook`:                                             "",
		`configmaps "a" is forbidden: a webhook says: User "op" cannot do that`:                        "",
	} {
		refusal := status(http.StatusForbidden, metav1.StatusReasonForbidden, text, nil)
		err := describe(refusal, "apply", ref)
		var missing *ForbiddenError
		says := "the operator may not " + want + " ConfigMap n/a: "
		if errors.As(err, &missing) != (want != "") || missing != nil && !strings.HasPrefix(err.Error(), says) || !errors.Is(err, refusal) {
			t.Errorf("%s: %v", text, err)
		}
		if plain := describe(errors.New(text), "apply", ref); plain.Error() != "apply ConfigMap n/a: "+text {
			t.Errorf("not the API server's word: %v", plain)
		}
	}
	foreign := &NotOursError{Ref: ref}
	if err := describe(foreign, "apply", ref); !errors.Is(err, foreign) || err.Error() != foreign.Error() {
		t.Errorf("another's: %v", err)
	}
	immutable := &ImmutableError{Ref: ref, Err: foreign}
	if !errors.Is(immutable, foreign) {
		t.Error("why it cannot be changed is lost")
	}
}
