// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RecreateAnnotation with the value "true", set in a chart's manifest, allows to delete and make anew an object whose
// immutable fields have to change.
const RecreateAnnotation = "middleware.hc.cn/recreate-on-immutable"

// NotOursError says that an object of the wanted name exists and belongs to someone else. Trying again does not help.
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

// ImmutableError says that a change needs fields that the API server does not let change. Trying again does not help.
type ImmutableError struct {
	Ref Ref
	Err error
}

func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s cannot be changed in place: %v; undo the change, or delete the object so that it is made anew", e.Ref, e.Err)
}

func (e *ImmutableError) Unwrap() error { return e.Err }

// recreatable are the kinds that lose nothing but a run when they are deleted and made anew.
var recreatable = map[schema.GroupKind]bool{{Group: "batch", Kind: "Job"}: true}

func mayRecreate(object *unstructured.Unstructured) bool {
	return recreatable[object.GroupVersionKind().GroupKind()] || object.GetAnnotations()[RecreateAnnotation] == "true"
}

// isImmutable recognises the API server's refusals to change a field of an existing object. There is no code for them; these
// are the wordings of k8s.io/kubernetes' validation.
func isImmutable(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	for _, wording := range []string{
		"field is immutable",               // Job template, selectors, Secret and ConfigMap data, roleRef
		"updates to statefulset spec",      // StatefulSet: "… for fields other than … are forbidden"
		"may not change once set",          // Service clusterIP
		"spec is immutable after creation", // PersistentVolumeClaim
		"cannot change roleRef",            // RoleBinding
	} {
		if strings.Contains(status.Status().Message, wording) {
			return true
		}
	}
	return false
}
