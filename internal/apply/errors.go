// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RecreateAnnotation with the value "true", set in a chart's manifest, allows to delete and make anew an object whose
// immutable fields have to change.
const RecreateAnnotation = "middleware.hc.cn/recreate-on-immutable"

// forceAnnotation is how the author of a resource asks for Recreate; it is helm-operator's.
const forceAnnotation = "helm.sdk.operatorframework.io/upgrade-force"

// NotOursError reports that an object of the wanted name exists and belongs to someone else. Trying again does not help.
type NotOursError struct {
	Ref Ref
	// Owner names whose it is ("Deployment web"); empty when it belongs to nobody we know.
	Owner string
}

func (e *NotOursError) Error() string {
	whose := "was not made by this operator"
	if e.Owner != "" {
		whose = "belongs to " + e.Owner
	}
	return fmt.Sprintf("%s exists and %s: it is left as it is; choose another name, or delete it first", e.Ref, whose)
}

// ImmutableError reports that a change needs fields that the API server does not let change. Trying again does not help.
type ImmutableError struct {
	Ref Ref
	Err error
}

func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s cannot be changed in place: %v; undo the change, or have it deleted and made anew: by the annotation %s: \"true\" "+
		"in the chart's manifest, or once by %s: \"true\" on the resource", e.Ref, e.Err, RecreateAnnotation, forceAnnotation)
}

func (e *ImmutableError) Unwrap() error { return e.Err }

// ForbiddenError reports that the operator lacks a right. Trying again does not help until someone grants it.
type ForbiddenError struct {
	Ref Ref
	// Verb is the one that RBAC missed: "create", "patch", "delete", "get"; "escalate" when the object would grant rights
	// that the operator does not have itself.
	Verb string
	Err  error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("the operator may not %s %s: %v; grant its service account that right", e.Verb, e.Ref, e.Err)
}

func (e *ForbiddenError) Unwrap() error { return e.Err }

// isImmutable recognises the API server's refusals to change a field of an existing object. There is no code for them; these
// are the wordings of k8s.io/kubernetes' validation.
func isImmutable(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	for _, wording := range []string{
		"is immutable",                 // Job template, selectors, Secret, ConfigMap, claims; what rules of CRDs usually say
		"updates to statefulset spec",  // StatefulSet: "… for fields other than … are forbidden"
		"pod updates may not change",   // Pod: "… fields other than …"
		"may not change once set",      // Service clusterIP
		"may not be changed",           // PriorityClass
		"cannot change roleRef",        // RoleBinding
		"failed rule: self == oldSelf", // rules of CRDs without a message
	} {
		if strings.Contains(status.Status().Message, wording) {
			return true
		}
	}
	return false
}
