// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	crdbases "middleware.hc.cn/operator/config/crd"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
)

// Project is what is to be looked at.
type Project struct {
	// WatchesFile is the path of watches.yaml; charts are found relative to it.
	WatchesFile string
	// CRDs are files and directories with CustomResourceDefinitions, besides those of the operator's own kinds.
	CRDs []string
	// KubeVersion is what charts see as .Capabilities.KubeVersion, such as "v1.36.0"; empty means chart.DefaultKubeVersion.
	KubeVersion string
	// APIVersions are seen as .Capabilities.APIVersions besides those of Kubernetes: group/version or group/version/Kind.
	APIVersions []string
	// Env looks up an environment variable, as os.LookupEnv does.
	Env func(string) (string, bool)
	// Stdin is what the path "-" reads.
	Stdin io.Reader
}

// kind is one entry of the watches file with its chart.
type kind struct {
	watches.Watch
	chart *chart.Chart
	// path is the chart's, for people.
	path string
}

// definitions reads the CRDs: the operator's own first, which those of the project replace.
func (p Project) definitions() (definitions, []Finding) {
	defined := definitions{}
	var findings []Finding
	own, err := embedded()
	findings = append(findings, findingsOf(SeverityError, "", err)...)
	findings = append(findings, defined.add(own, false)...)
	given, unreadable := readAll(p.CRDs, p.Stdin)
	findings = append(findings, unreadable...)
	return defined, append(findings, defined.add(given, true)...)
}

// embedded are the CRDs this program was built with.
func embedded() ([]document, error) {
	bases := crdbases.Bases()
	return readFS(bases, "*.yaml")
}

// watches reads the watches file. Unset are the environment variables it asks for that are not set: they count as empty.
func (p Project) watches() (list []watches.Watch, unset []string, err error) {
	missing := map[string]bool{}
	list, err = watches.Load(p.WatchesFile, func(name string) (string, bool) {
		value, ok := p.Env(name)
		if !ok {
			missing[name] = true
		}
		return value, ok
	})
	return list, slices.Sorted(maps.Keys(missing)), err
}

// load loads the chart of a watch.
func load(w watches.Watch) (kind, error) {
	loaded, err := release.Load(w)
	return kind{Watch: w, chart: loaded, path: shown(w.Chart)}, err
}

// shown is a path as people know it: from the working directory, if it lies there.
func shown(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(relative) {
		return path
	}
	return relative
}
