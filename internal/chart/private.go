// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// private returns a copy for one rendering. Helm resolves dependencies by changing the chart (enabled flags, aliases, imported
// values), so a shared one would carry one CR's conditions into the next. Templates and files are only read and are shared.
func private(c *helmchart.Chart) *helmchart.Chart {
	copied := *c
	if c.Metadata != nil {
		metadata := *c.Metadata
		metadata.Dependencies = make([]*helmchart.Dependency, len(c.Metadata.Dependencies))
		for i, dependency := range c.Metadata.Dependencies {
			d := *dependency
			d.ImportValues = slices.Clone(d.ImportValues)
			metadata.Dependencies[i] = &d
		}
		copied.Metadata = &metadata
	}
	copied.Values = copyValues(c.Values)
	dependencies := make([]*helmchart.Chart, 0, len(c.Dependencies()))
	for _, dependency := range c.Dependencies() {
		dependencies = append(dependencies, private(dependency))
	}
	copied.SetDependencies(dependencies...)
	return &copied
}

func copyValues(values map[string]any) map[string]any {
	copied := make(map[string]any, len(values))
	for k, v := range values {
		copied[k] = copyValue(v)
	}
	return copied
}

func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyValues(v)
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = copyValue(v[i])
		}
		return copied
	default:
		return v
	}
}
