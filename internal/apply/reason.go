// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of an error of Apply, Prune or Gone, as a condition shows them.
const (
	ReasonNotOurs          = "ObjectNotOurs"
	ReasonImmutable        = "ImmutableField"
	ReasonRejected         = "RejectedByAPIServer"
	ReasonForbidden        = "Forbidden"
	ReasonUnknownKind      = "UnknownKind"
	ReasonQuotaExceeded    = "QuotaExceeded"
	ReasonNamespaceDeleted = "NamespaceTerminating"
	ReasonNoNamespace      = "NamespaceNotFound"
)

// Reason names what an error means. Final is true if only a person can mend it: a change of the resource or the chart is an
// event, but a right that is granted or a name that becomes free is not, so look again now and then (a minute is plenty). The
// reason is empty for what passes by itself and needs no name: conflicts, timeouts, an API server or a webhook that is away.
func Reason(err error) (reason string, final bool) {
	var foreign *NotOursError
	var immutable *ImmutableError
	var forbidden *ForbiddenError
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &foreign):
		return ReasonNotOurs, true
	case errors.As(err, &immutable):
		return ReasonImmutable, true
	case errors.As(err, &forbidden):
		return ReasonForbidden, true
	case isUnknownKind(err), isLeavingKind(err):
		return ReasonUnknownKind, false // its CRD may come
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespaceDeleted, false // and our owner with it, or the namespace comes back
	case isMissingNamespace(err):
		return ReasonNoNamespace, false
	case isQuota(err):
		return ReasonQuotaExceeded, false
	case isMalformed(err),
		apierrors.IsForbidden(err), // what is left is admission's no
		apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return ReasonRejected, true
	}
	return "", false
}

// isUnknownKind tells that a kind is not served: by discovery, or by the API server after the kind was deleted.
func isUnknownKind(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isLeavingKind recognises that nothing more is made of a kind whose CRD is being deleted; the API server has no code for it.
func isLeavingKind(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "while custom resource definition is terminating")
}

func isMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

// isMalformed recognises an object that server-side apply cannot read by the kind's schema: a wrong type, or two elements of a
// list with the same key. The API server answers with an internal error.
func isMalformed(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to create typed patch object")
}

// isQuota recognises a refusal of the ResourceQuota plug-in; it has no code of its own.
func isQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// describe adds to an error what was done to which object. What RBAC refused becomes a ForbiddenError.
func describe(err error, verb string, ref Ref) error {
	var foreign *NotOursError
	if errors.As(err, &foreign) {
		return err
	}
	if missing, isRBAC := missingVerb(err); isRBAC {
		return &ForbiddenError{Ref: ref, Verb: missing, Err: err}
	}
	return fmt.Errorf("%s %s: %w", verb, ref, err)
}

// missingVerb recognises RBAC's refusals, among all others that are Forbidden too, by the wording of k8s.io/apiserver's
// authorizer and of the two admissions that ask it: "cannot VERB resource", "attempting to grant RBAC permissions not currently
// held", "cannot set blockOwnerDeletion" and "cannot set an ownerRef on a resource you can't delete".
func missingVerb(err error) (verb string, isRBAC bool) {
	if !apierrors.IsForbidden(err) {
		return "", false
	}
	message := err.Error()
	if strings.Contains(message, "attempting to grant RBAC permissions") {
		return "escalate", true
	}
	if strings.Contains(message, "cannot set blockOwnerDeletion") {
		return "update the finalizers of the owner of", true
	}
	if strings.Contains(message, "cannot set an ownerRef on a resource you can't delete") {
		return "delete", true
	}
	if _, after, found := strings.Cut(message, `" cannot `); found {
		verb, _, isRBAC = strings.Cut(after, " resource ")
	}
	return verb, isRBAC
}
