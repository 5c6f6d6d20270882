// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeversion "k8s.io/component-base/version"
)

// Release is what a chart sees as .Release.
type Release struct {
	Name, Namespace      string
	Revision             int
	IsInstall, IsUpgrade bool
}

// DefaultKubeVersion is the Kubernetes that charts see when nothing else is said: the one of the libraries of this build.
const DefaultKubeVersion = "v" + kubeversion.DefaultKubeBinaryVersion + ".0"

// Capabilities is what a chart sees of the cluster.
type Capabilities struct {
	// KubeVersion is the version of the API server, such as "v1.37.2". Empty means DefaultKubeVersion.
	KubeVersion string
	// APIVersions are the group/versions and group/version/Kinds the API server serves. Empty means those Helm knows.
	APIVersions []string
	// Lookup answers the function of that name. Nil finds nothing.
	Lookup Lookup
}

// Rendered is what a chart says for one set of values.
type Rendered struct {
	// Objects are in Helm's order of installation.
	Objects []*unstructured.Unstructured
	// Hooks are in Helm's order of execution: by weight, then name.
	Hooks []Hook
	// CRDs are the contents of crds/ of the chart and its enabled dependencies, which no template touches.
	CRDs []*unstructured.Unstructured
	// Manifest is the text Helm would store and print, without hooks.
	Manifest string
	Notes    string
	// values are those that were given, for the release's record; the JSON of them, if it was read from one.
	values any
}

// Render is pure: the same chart, values, release and capabilities give the same objects, if the chart is Deterministic and
// does not look things up. Values override the chart's defaults and are validated with its values.schema.json.
//
// Strings of values are data. In a chart that calls tpl, values that hold template actions are refused; and a value that would
// change what the chart says beside itself is refused (package shape).
//
// Errors are *Error, but for those of Lookup, which are returned wrapped.
func (c *Chart) Render(values map[string]any, release Release, capabilities Capabilities) (*Rendered, error) {
	if c.facts.tpl {
		if where := templateText("spec", values); where != "" {
			return nil, &Error{
				Stage: StageValues, Path: where, Err: errors.New("the chart passes values through tpl, and this one holds a template action"),
				Remedy: "remove {{ from the value"}
		}
	}
	in := inputs{values: values, release: release, lookups: lookups{ask: capabilities.Lookup}}
	var err error
	if in.capabilities, err = helmCapabilities(capabilities); err != nil {
		return nil, &Error{Stage: StageTemplate, Path: ".Capabilities.KubeVersion", Err: err}
	}
	files, own, err := c.execute(in)
	if err != nil {
		return nil, err
	}
	rendered := &Rendered{Notes: takeNotes(files, own.Name()), values: copyValues(values)}
	if err := rendered.read(files); err != nil {
		return nil, err
	}
	if !c.structured {
		if err := c.checkShape(files, in); err != nil {
			return nil, err
		}
	}
	rendered.CRDs, err = crdsOf(own)
	return rendered, err
}

// inputs are what the templates see.
type inputs struct {
	values       map[string]any
	release      Release
	capabilities *chartutil.Capabilities
	lookups      lookups
	// standIns: the values are not real, so that their schema has nothing to say about them.
	standIns bool
}

// execute runs the templates. It returns what each file of templates/ became, and the copy of the chart with the dependencies
// that the values enable.
func (c *Chart) execute(in inputs) (map[string]string, *helmchart.Chart, error) {
	own := private(c.helm)
	if required := own.Metadata.KubeVersion; required != "" && !chartutil.IsCompatibleRange(required, in.capabilities.KubeVersion.Version) {
		return nil, nil, &Error{Stage: StageLoad, Path: "Chart.yaml",
			Err:    fmt.Errorf("the chart needs Kubernetes %s, this is %s", required, in.capabilities.KubeVersion.Version),
			Remedy: "use a version of the chart made for this Kubernetes"}
	}
	given := copyValues(in.values)
	if err := chartutil.ProcessDependenciesWithMerge(own, given); err != nil {
		return nil, nil, &Error{Stage: StageValues, Path: "Chart.yaml", Err: fmt.Errorf("resolve dependencies: %w", err)}
	}
	top, err := chartutil.ToRenderValuesWithSchemaValidation(own, given, chartutil.ReleaseOptions{Name: in.release.Name,
		Namespace: in.release.Namespace, Revision: in.release.Revision, IsInstall: in.release.IsInstall, IsUpgrade: in.release.IsUpgrade},
		in.capabilities, true)
	if err != nil {
		return nil, nil, &Error{Stage: StageValues, Path: "spec", Err: errors.New(oneLine(err.Error())), Remedy: "see the chart's values.yaml"}
	}
	if all, ok := top["Values"].(chartutil.Values); ok && !in.standIns {
		err = c.schemas.validate(own, all)
	}
	if err != nil {
		return nil, nil,
			&Error{Stage: StageValues, Path: "spec", Err: errors.New(oneLine(err.Error())), Remedy: "see the chart's values.schema.json"}
	}
	var files map[string]string
	if in.lookups.ask == nil {
		files, err = engine.Render(own, top)
	} else if files, err = engine.RenderWithClientProvider(own, top, &in.lookups); in.lookups.failed != nil {
		return nil, nil, in.lookups.failed
	}
	if err != nil {
		return nil, nil, &Error{Stage: StageTemplate, Err: errors.New(oneLine(err.Error()))}
	}
	return files, own, bounded(files)
}

// What one rendering may come to: more than the largest charts make, and little enough to read. A release of Helm's has 1 MiB,
// packed, and an object of Kubernetes 1.5 MiB.
const (
	mostText      = 16 << 20
	mostDocuments = 2000
)

// bounded refuses what the templates wrote before anybody reads it as YAML.
func bounded(files map[string]string) error {
	size, separators := 0, 0
	for _, text := range files {
		size += len(text)
		separators += strings.Count(text, "\n---")
	}
	if size <= mostText && separators <= mostDocuments {
		return nil
	}
	return &Error{
		Stage: StageTemplate, Err: fmt.Errorf("it makes %d bytes of text in about %d documents; at most %d in %d are read", size, separators+1,
			mostText, mostDocuments),
		Remedy: "ask for less, or have the chart's values.schema.json bound what it counts by"}
}

// takeNotes removes every NOTES.txt and returns the top chart's.
func takeNotes(files map[string]string, chartName string) string {
	notes := strings.TrimSpace(files[path.Join(chartName, "templates", "NOTES.txt")])
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Base(name) == "NOTES.txt" })
	return notes
}

// templateText returns the path of the first key or string, in sorted order, that could become a template action when it goes
// through tpl; a brace at the end counts, because another value may follow it.
func templateText(at string, value any) string {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "{{") || strings.HasSuffix(v, "{") {
			return at
		}
	case []any:
		for i := range v {
			if where := templateText(fmt.Sprintf("%s[%d]", at, i), v[i]); where != "" {
				return where
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if templateText(at, k) != "" {
				return at
			}
			if where := templateText(at+"."+k, v[k]); where != "" {
				return where
			}
		}
	}
	return ""
}

func helmCapabilities(c Capabilities) (*chartutil.Capabilities, error) {
	caps := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(cmp.Or(c.KubeVersion, DefaultKubeVersion))
	if err != nil {
		return nil, err
	}
	caps.KubeVersion = *version
	if len(c.APIVersions) > 0 {
		caps.APIVersions = slices.Clone(c.APIVersions)
	}
	return caps, nil
}

// oneLine joins the lines of Helm's messages, so that they can stand in a condition.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Override sets one value over others: the key is a path in the syntax of Helm's --set, the value is read as --set reads it
// (numbers, booleans and null are recognised). The values that were passed are changed.
func Override(values map[string]any, key, value string) error {
	if err := strvals.ParseInto(key+"="+value, values); err != nil {
		return &Error{Stage: StageValues, Path: "overrideValues." + key, Err: err, Remedy: "write it as Helm's --set takes it"}
	}
	return nil
}
