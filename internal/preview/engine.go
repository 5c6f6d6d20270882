// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/chartkind"
	"middleware.hc.cn/operator/internal/release"
)

// foresee asks the engine what it would do for a resource. The error is of the kind's own rules (a field.ErrorList's), of the values
// or of the templates; what may not be made is Foresight.Failure.
func (k kind) foresee(ctx context.Context, cr *unstructured.Unstructured, in release.Cluster) (*release.Foresight, error) {
	if wrong := validation.NameIsDNSSubdomain(cr.GetName(), false); len(wrong) > 0 {
		return nil, &Finding{Path: "metadata.name", Message: fmt.Sprintf("%q: %s", cr.GetName(), wrong[0])}
	}
	own := chartkind.For(k.GroupVersionKind)
	f, err := release.Foresee(ctx, cr, k.Watch, k.chart, release.Options{Validate: own.Validate, Awaits: own.Awaits}, in)
	switch {
	case err != nil:
		return nil, err
	case len(f.Invalid) > 0:
		return nil, refusals(f.Invalid)
	case f.Rendered == nil:
		return nil, f.Failure
	}
	return f, nil
}

// refusals makes one error of what is wrong with a resource, one joined error a field.
func refusals(list field.ErrorList) error {
	var all []error
	for _, refused := range list {
		all = append(all, &Finding{Severity: SeverityError, Path: refused.Field, Message: refused.ErrorBody()})
	}
	return errors.Join(all...)
}
