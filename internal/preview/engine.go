// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chartkind"
	"middleware.hc.cn/operator/internal/release"
)

// rendering is what a chart says for one resource, and what the resource may not have of it.
type rendering struct {
	*chart.Rendered
	// refused is chart.Check's refusal; nil if everything may be made.
	refused error
}

// render renders a resource as the engine does. The error is of the kind's own rules (a field.ErrorList's), of the values or of the
// templates.
func (k kind) render(cr *unstructured.Unstructured, capabilities chart.Capabilities,
	namespaced func(schema.GroupVersionKind) (bool, error)) (rendering, error) {
	if wrong := validation.NameIsDNSSubdomain(cr.GetName(), false); len(wrong) > 0 {
		return rendering{}, &Finding{Path: "metadata.name", Message: fmt.Sprintf("%q: %s", cr.GetName(), wrong[0])}
	}
	if validate := chartkind.For(k.GroupVersionKind).Validate; validate != nil {
		if refused := validate(cr); len(refused) > 0 {
			return rendering{}, refusals(refused)
		}
	}
	values, err := release.Values(cr, k.Watch)
	if err != nil {
		return rendering{}, err
	}
	revision, err := k.revision(cr, values, capabilities)
	if err != nil {
		return rendering{}, err
	}
	rendered, err := k.chart.Render(values, release.RevisionOf(cr, revision), capabilities)
	if err != nil {
		return rendering{}, err
	}
	return rendering{rendered, chart.Check(rendered, release.AllowedFor(cr, k.Watch, k.chart, namespaced))}, nil
}

// revision is the one the resource would get, by the release its status records.
func (k kind) revision(cr *unstructured.Unstructured, values map[string]any, capabilities chart.Capabilities) (int64, error) {
	deployed, _, _ := unstructured.NestedMap(cr.Object, "status", "deployedRelease")
	installed, _ := deployed["revision"].(int64)
	digest, err := k.chart.DigestFor(values, release.RevisionOf(cr, 1), capabilities)
	if err != nil || installed > 0 && digest == deployed["digest"] {
		return installed, err
	}
	return installed + 1, nil
}

// refusals makes one error of what is wrong with a resource, one joined error a field.
func refusals(list field.ErrorList) error {
	var all []error
	for _, refused := range list {
		all = append(all, &Finding{Severity: SeverityError, Path: refused.Field, Message: refused.ErrorBody()})
	}
	return errors.Join(all...)
}
