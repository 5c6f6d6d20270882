// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart turns a Helm chart and values into Kubernetes objects, and releases into the records Helm's own commands read.
//
// Everything here is pure but for the Lookup that a caller may hand in: no clock, no Kubernetes client, no network. It is the
// only package that imports Helm.
//
// # What stands between the author of a resource and the cluster
//
// Values are data, and a chart's author may have forgotten to quote them. Three rules hold whatever the chart looks like:
//
//   - No string of a value is executed: where a chart calls tpl, values that hold template actions are refused (Render).
//   - No string of a value shapes the objects: where a value holds characters that mean something in YAML, the chart is
//     rendered again with stand-ins for it, and everything that is not the value itself must come out the same (package shape).
//   - Only kinds that the chart writes, only in the namespaces allowed (Check, Kinds).
package chart

import (
	"slices"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Chart is a loaded chart. It never changes and may be rendered by any number of goroutines at once.
type Chart struct {
	helm   *helmchart.Chart
	digest string
	facts  facts
	// packed is the chart as stored releases hold it, made on first use.
	packed  func() ([]byte, error)
	schemas *schemas
	// structured: strings of values may shape the objects.
	structured bool
}

// AllowStructuredValues returns the chart without the refusal of strings that change what it says beside themselves (package shape).
// It is for charts that read structure from text on purpose: fromYaml, splitList, lists that a string is looked up in. Whoever
// writes the values then decides what the objects consist of; of which kinds and in which places they are is checked all the
// same.
func (c *Chart) AllowStructuredValues() *Chart {
	copied := *c
	copied.structured = true
	return &copied
}

func newChart(loaded *helmchart.Chart, digest string, known *schemas) *Chart {
	c := &Chart{helm: loaded, digest: digest, facts: factsOf(loaded), schemas: known}
	c.packed = sync.OnceValues(func() ([]byte, error) { return packChart(loaded) })
	c.facts.kinds = append(c.facts.kinds, c.defaultKinds()...)
	slices.Sort(c.facts.kinds)
	c.facts.kinds = slices.Compact(c.facts.kinds)
	return c
}

// Name is the chart's name, as in Chart.yaml.
func (c *Chart) Name() string { return c.helm.Name() }

// Version is the chart's version, as in Chart.yaml.
func (c *Chart) Version() string { return c.helm.Metadata.Version }

// Digest identifies the chart's content: SHA-256, hexadecimal.
func (c *Chart) Digest() string { return c.digest }

// Kinds are the kinds of object the chart makes of its own accord, dependencies included: those its templates write
// literally (kinds.go says how they are found), and those it makes with its own default values. They are what the chart may
// create; a kind that only a resource's values name is not among them. Helm's test hooks, which nothing runs here, do not count.
func (c *Chart) Kinds() []string { return slices.Clone(c.facts.kinds) }

// UsesCapabilities reports whether a template looks at the cluster's version or APIs, or Chart.yaml asks for a version.
func (c *Chart) UsesCapabilities() bool { return c.facts.capabilities || len(c.facts.asked) > 0 }

// AsksOnlyFor returns the APIs that templates ask for by name. Only is false if they look at more of the cluster's capabilities.
func (c *Chart) AsksOnlyFor() (apis []string, only bool) {
	return slices.Clone(c.facts.asked), !c.facts.capabilities
}

// UsesLookup reports whether a template calls lookup, so that what it says depends on the cluster.
func (c *Chart) UsesLookup() bool { return c.facts.lookup }

// Deterministic reports whether the templates say the same each time: none calls a function of chance or time, such as
// randAlphaNum, genCA or now, or reads a dictionary's keys without sorting them.
func (c *Chart) Deterministic() bool { return !c.facts.random }

// HasHooks reports whether a template, or a default value, mentions helm.sh/hook. A resource's own values can annotate an object
// as a hook in any chart that lets them write annotations.
func (c *Chart) HasHooks() bool { return c.facts.hooks }

// HasCRDs reports whether the chart, or one of its dependencies, has a crds/ directory with content.
func (c *Chart) HasCRDs() bool { return len(c.helm.CRDObjects()) > 0 }

// CRDs are the contents of crds/ of the chart and of all its dependencies, enabled or not. No template touches them. Errors
// are *Error.
func (c *Chart) CRDs() ([]*unstructured.Unstructured, error) { return crdsOf(c.helm) }

func crdsOf(part *helmchart.Chart) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, file := range part.CRDObjects() {
		for _, text := range documents(string(file.File.Data)) {
			_, objects, err := decode(file.Filename, text)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// defaultKinds are the kinds the chart makes when nobody gives it any value. A chart that needs some makes nothing.
func (c *Chart) defaultKinds() []string {
	rendered, err := c.Render(nil, Release{Name: "release-name", Namespace: "default", Revision: 1, IsInstall: true}, Capabilities{})
	if err != nil {
		return nil
	}
	var kinds []string
	for _, object := range rendered.Made() {
		kinds = append(kinds, object.GetKind())
	}
	return kinds
}
