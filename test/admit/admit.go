// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admit does to objects of the operator's kinds what an API server does that has the operator's CRDs and webhooks. It runs
// the webhooks themselves, and no server.
package admit

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	crdbases "middleware.hc.cn/operator/config/crd"
)

// Definition is the CRD of a kind.
type Definition struct {
	apiextensionsv1.CustomResourceDefinition
	structural *structural.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// Definitions are the CRDs of the operator, each with its one version.
func Definitions() (map[schema.GroupVersionKind]*Definition, error) {
	defined, bases := map[schema.GroupVersionKind]*Definition{}, crdbases.Bases()
	files, err := fs.Glob(bases, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(bases, file)
		if err != nil {
			return nil, err
		}
		d, err := newDefinition(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		defined[schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.Kind}] = d
	}
	return defined, nil
}

func newDefinition(text []byte) (*Definition, error) {
	d := &Definition{}
	if err := yaml.UnmarshalStrict(text, &d.CustomResourceDefinition); err != nil {
		return nil, err
	}
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(d.Schema(), internal, nil)
	if err != nil {
		return nil, err
	}
	if d.structural, err = structural.NewStructural(internal); err != nil {
		return nil, err
	}
	d.rules = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	d.validator, _, err = validation.NewSchemaValidator(internal)
	return d, err
}

// Schema is that of a whole object.
func (d *Definition) Schema() *apiextensionsv1.JSONSchemaProps {
	return d.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// Complete drops what the schema does not know, and sets its defaults. It returns what was dropped.
func (d *Definition) Complete(object map[string]any) field.ErrorList {
	var dropped field.ErrorList
	tell := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, d.structural, true, tell) {
		dropped = append(dropped, field.Invalid(field.NewPath(path), nil, "unknown field"))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	defaulting.Default(object, d.structural)
	return dropped
}

// Refuses says what the schema and its rules have against an object that is complete. Before is the one that it replaces, nil at its
// making.
func (d *Definition) Refuses(ctx context.Context, before, object map[string]any) field.ErrorList {
	refused := validation.ValidateCustomResource(nil, object, d.validator)
	refused = append(refused, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if d.rules != nil && len(refused) == 0 { // rules are only asked about what the schema accepts
		var old any
		if before != nil {
			old = before
		}
		broken, _ := d.rules.Validate(ctx, nil, d.structural, object, old, celconfig.RuntimeCELCostBudget)
		refused = append(refused, broken...)
	}
	return refused
}
