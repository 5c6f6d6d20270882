// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"path"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// Problems are mistakes in the chart that would show only once a resource is rendered: a values.schema.json, of the chart or of
// a dependency, that is no JSON schema; a template that does not parse. Each is an *Error of StageLoad whose Path is the file.
func (c *Chart) Problems() []error { return c.problems(c.helm, "") }

func (c *Chart) problems(part *helmchart.Chart, dir string) []error {
	var found []error
	report := func(file string, err error, remedy string) {
		found = append(found, &Error{Stage: StageLoad, Path: path.Join(dir, file), Err: errors.New(oneLine(err.Error())), Remedy: remedy})
	}
	if part.Schema != nil {
		if _, err := c.schemas.compile(part.Schema); err != nil {
			report("values.schema.json", err, "correct the schema, which is JSON Schema as in https://helm.sh/docs/topics/charts/#schema-files")
		}
	}
	for _, file := range part.Templates {
		if _, err := parseTemplate(file.Name, string(file.Data)); err != nil {
			report(file.Name, err, "correct the template")
		}
	}
	for _, dependency := range part.Dependencies() {
		found = append(found, c.problems(dependency, path.Join(dir, "charts", dependency.Name()))...)
	}
	return found
}

// missingDependency refuses a chart without a dependency it lists, as Helm's install does. Those of dependencies it leaves be.
func missingDependency(c *helmchart.Chart) error {
	for _, required := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(d *helmchart.Chart) bool { return d.Name() == required.Name }) {
			return &Error{Stage: StageLoad, Path: "Chart.yaml", Err: fmt.Errorf("the dependency %s is not in charts/", required.Name),
				Remedy: "run `helm dependency build` on the chart"}
		}
	}
	return nil
}
