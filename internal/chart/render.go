// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Release is what a chart sees as .Release.
type Release struct {
	Name, Namespace      string
	Revision             int
	IsInstall, IsUpgrade bool
}

// Capabilities is what a chart sees as .Capabilities.
type Capabilities struct {
	// KubeVersion is the version of the API server, such as "v1.37.2". Empty means Helm's built-in default.
	KubeVersion string
	// APIVersions are the group/versions and group/version/Kinds the API server serves. Empty means those Helm knows.
	APIVersions []string
}

// Hook is an object that runs at a point of the release's life instead of belonging to it.
type Hook struct {
	Object *unstructured.Unstructured
	// Events are Helm's names: pre-install, post-upgrade, test, …
	Events []string
	Weight int
	// DeletePolicies are Helm's names: before-hook-creation, hook-succeeded, hook-failed.
	DeletePolicies []string
}

// Rendered is what a chart says for one set of values.
type Rendered struct {
	// Objects are in Helm's order of installation.
	Objects []*unstructured.Unstructured
	Hooks   []Hook
	// CRDs are the contents of crds/, which no template touches.
	CRDs []*unstructured.Unstructured
	// Manifest is the text Helm would store and print, without hooks.
	Manifest string
	Notes    string
	// values are those that were given, for the release's record.
	values map[string]any
}

// Render is pure: the same chart, values, release and capabilities give the same objects, as long as the templates use neither
// random values nor the time. Values override the chart's defaults and are validated with its values.schema.json.
//
// Strings of values are data: in a chart that calls tpl, values that hold template actions are refused. Every error is an
// *Error.
func (c *Chart) Render(values map[string]any, release Release, capabilities Capabilities) (*Rendered, error) {
	if c.usesTpl {
		if where := templateText("spec", values); where != "" {
			return nil, &Error{Stage: StageValues, Path: where, Err: errors.New("the chart passes values through tpl, and this one holds a template action"),
				Remedy: "remove {{ from the value"}
		}
	}
	caps, err := helmCapabilities(capabilities)
	if err != nil {
		return nil, &Error{Stage: StageTemplate, Path: ".Capabilities.KubeVersion", Err: err}
	}
	own := private(c.helm)
	if required := own.Metadata.KubeVersion; required != "" && !chartutil.IsCompatibleRange(required, caps.KubeVersion.Version) {
		return nil, &Error{Stage: StageLoad, Path: "Chart.yaml", Err: fmt.Errorf("the chart needs Kubernetes %s, this is %s", required, caps.KubeVersion.Version),
			Remedy: "use a version of the chart made for this Kubernetes"}
	}
	given := copyValues(values)
	if err := chartutil.ProcessDependenciesWithMerge(own, given); err != nil {
		return nil, &Error{Stage: StageValues, Path: "Chart.yaml", Err: fmt.Errorf("resolve dependencies: %w", err)}
	}
	top, err := chartutil.ToRenderValues(own, given, chartutil.ReleaseOptions{Name: release.Name, Namespace: release.Namespace,
		Revision: release.Revision, IsInstall: release.IsInstall, IsUpgrade: release.IsUpgrade}, caps)
	if err != nil {
		return nil, &Error{Stage: StageValues, Path: "spec", Err: errors.New(oneLine(err.Error())), Remedy: "see the chart's values.schema.json"}
	}
	files, err := new(engine.Engine).Render(own, top)
	if err != nil {
		return nil, &Error{Stage: StageTemplate, Err: errors.New(oneLine(err.Error()))}
	}
	rendered := &Rendered{Notes: takeNotes(files, own.Name()), values: copyValues(values)}
	if err := rendered.read(files); err != nil {
		return nil, err
	}
	for _, crd := range own.CRDObjects() {
		objects, err := decode(crd.Filename, string(crd.File.Data))
		if err != nil {
			return nil, err
		}
		rendered.CRDs = append(rendered.CRDs, objects...)
	}
	return rendered, nil
}

// read sorts what the templates wrote into objects and hooks.
func (r *Rendered) read(files map[string]string) error {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return &Error{Stage: StageManifest, Err: err, Remedy: "render the chart with `helm template` and look at the YAML"}
	}
	var text strings.Builder
	for _, manifest := range manifests {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", manifest.Name, manifest.Content)
		objects, err := decode(manifest.Name, manifest.Content)
		if err != nil {
			return err
		}
		r.Objects = append(r.Objects, objects...)
	}
	r.Manifest = text.String()
	for _, h := range hooks {
		objects, err := decode(h.Path, h.Manifest)
		if err != nil {
			return err
		}
		for _, object := range objects {
			hook := Hook{Object: object, Weight: h.Weight}
			for _, event := range h.Events {
				hook.Events = append(hook.Events, event.String())
			}
			for _, policy := range h.DeletePolicies {
				hook.DeletePolicies = append(hook.DeletePolicies, policy.String())
			}
			r.Hooks = append(r.Hooks, hook)
		}
	}
	return nil
}

// decode reads one YAML document; a List becomes its items, an empty document nothing.
func decode(from, content string) ([]*unstructured.Unstructured, error) {
	refuse := func(err error) error {
		return &Error{Stage: StageManifest, Path: from, Err: err, Remedy: "render the chart with `helm template` and look at the YAML"}
	}
	encoded, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		return nil, refuse(err)
	}
	if text := string(encoded); text == "null" || text == "{}" {
		return nil, nil // only comments
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		return nil, refuse(err)
	}
	if !object.IsList() {
		return checkNamed(object, refuse)
	}
	var items []*unstructured.Unstructured
	err = object.EachListItem(func(item runtime.Object) error {
		named, err := checkNamed(item.(*unstructured.Unstructured), refuse)
		items = append(items, named...)
		return err
	})
	return items, err
}

func checkNamed(object *unstructured.Unstructured, refuse func(error) error) ([]*unstructured.Unstructured, error) {
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, refuse(errors.New("an object without apiVersion or kind"))
	}
	if object.GetName() == "" {
		return nil, refuse(fmt.Errorf("a %s without metadata.name", object.GetKind()))
	}
	return []*unstructured.Unstructured{object}, nil
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
	if c.KubeVersion != "" {
		version, err := chartutil.ParseKubeVersion(c.KubeVersion)
		if err != nil {
			return nil, err
		}
		caps.KubeVersion = *version
	}
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
