// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"middleware.hc.cn/operator/internal/release"
)

// definition is one version of a CustomResourceDefinition.
type definition struct {
	from       document
	plural     string
	namespaced bool
	served     bool
	hasStatus  bool
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	// rules compiles the CEL rules when they are first needed: that takes longer than all the rest.
	rules func() *cel.Validator
}

// definitions are the versions that were read. A later one of the same version replaces an earlier one.
type definitions map[schema.GroupVersionKind]*definition

// crdKind is what makes a document a definition.
var crdKind = schema.GroupKind{Group: apiextensions.GroupName, Kind: "CustomResourceDefinition"}

// add reads the CustomResourceDefinitions among documents. With check they are validated as an API server would.
func (d definitions) add(documents []document, check bool) []Finding {
	var findings []Finding
	for _, from := range documents {
		if from.object.GroupVersionKind().GroupKind() != crdKind {
			continue
		}
		crd, err := decodeCRD(from)
		if err != nil {
			findings = append(findings, *err)
			continue
		}
		if check {
			for _, refused := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd) {
				findings = append(findings, *from.refuse(refused.Field, refused.ErrorBody(), "correct the CRD"))
			}
		}
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			read, err := newDefinition(from, crd, version)
			if err != nil {
				findings = append(findings, *from.refuse("spec.versions["+version.Name+"].schema", err.Error(), "correct the CRD"))
				continue
			}
			d[gvk] = read
		}
	}
	return findings
}

func decodeCRD(from document) (*apiextensions.CustomResourceDefinition, *Finding) {
	if version := from.object.GroupVersionKind().Version; version != "v1" {
		return nil, from.refuse("apiVersion", "a CustomResourceDefinition of "+version, "write it as apiextensions.k8s.io/v1")
	}
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.object.Object, typed, true); err != nil {
		return nil, from.refuse("", oneLine(err.Error()), "correct the CRD")
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(typed)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&typed.Spec)
	crd := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(typed, crd, nil); err != nil {
		return nil, from.refuse("", oneLine(err.Error()), "correct the CRD")
	}
	// What an API server sets when it is created.
	crd.Status = apiextensions.CustomResourceDefinitionStatus{AcceptedNames: crd.Spec.Names}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
	return crd, nil
}

func newDefinition(from document, crd *apiextensions.CustomResourceDefinition,
	version apiextensions.CustomResourceDefinitionVersion) (*definition, error) {
	d := &definition{from: from, plural: crd.Spec.Names.Plural, namespaced: crd.Spec.Scope == apiextensions.NamespaceScoped,
		served: version.Served}
	subresources, err := apiextensions.GetSubresourcesForVersion(crd, version.Name)
	if err != nil {
		return nil, err
	}
	d.hasStatus = subresources != nil && subresources.Status != nil
	given, err := apiextensions.GetSchemaForVersion(crd, version.Name)
	if err != nil {
		return nil, err
	}
	if given == nil || given.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("there is no openAPIV3Schema")
	}
	if d.structural, err = structuralschema.NewStructural(given.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if d.validator, _, err = validation.NewSchemaValidator(given.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	d.rules = sync.OnceValue(func() *cel.Validator { return cel.NewValidator(d.structural, true, celconfig.PerCallLimit) })
	return d, nil
}

// admit does to a resource what the API server does with it: fields the schema does not know are dropped, defaults are set, then it
// is validated. It returns the paths of what was dropped and everything that is wrong; nothing where there is no definition.
func (d *definition) admit(cr *unstructured.Unstructured) (unknown []string, refused field.ErrorList) {
	if d == nil {
		return nil, nil
	}
	unknown = pruning.PruneWithOptions(cr.Object, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	d.setDefaults(cr)
	refused = validation.ValidateCustomResource(nil, cr.UnstructuredContent(), d.validator)
	refused = append(refused, listtype.ValidateListSetsAndMaps(nil, d.structural, cr.Object)...)
	if rules := d.rules(); rules != nil && len(refused) == 0 { // rules are only asked about what the schema accepts
		broken, _ := rules.Validate(context.Background(), nil, d.structural, cr.Object, nil, celconfig.RuntimeCELCostBudget)
		refused = append(refused, broken...)
	}
	return unknown, refused
}

// place puts a resource that names no namespace into one, unless it is known to live in none.
func (d *definition) place(cr *unstructured.Unstructured, namespace string) {
	if d == nil || d.namespaced {
		cr.SetNamespace(cmp.Or(cr.GetNamespace(), namespace))
	}
}

// setDefaults sets the schema's defaults.
func (d *definition) setDefaults(cr *unstructured.Unstructured) {
	defaulting.PruneNonNullableNullsWithoutDefaults(cr.Object, d.structural)
	defaulting.Default(cr.Object, d.structural)
}

// versions are the versions of a kind that are defined, joined by a comma; empty if there are none.
func (d definitions) versions(kind schema.GroupKind) string {
	var list []string
	for gvk := range d {
		if gvk.GroupKind() == kind {
			list = append(list, gvk.Version)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// droppedStatus returns the paths of what the API server would drop of a status the engine writes.
func (d *definition) droppedStatus() ([]string, error) {
	status, err := release.WholeStatus()
	return pruning.PruneWithOptions(map[string]any{"status": status}, d.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}), err
}
