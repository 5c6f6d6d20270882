// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart turns a Helm chart and values into Kubernetes objects, and releases into the records Helm's own commands read.
//
// Everything here is pure: no clock, no Kubernetes client, no network. It is the only package that imports Helm.
package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

// Chart is a loaded chart. It never changes and may be rendered by any number of goroutines at once.
type Chart struct {
	helm             *helmchart.Chart
	digest           string
	kinds            []string
	usesTpl          bool
	usesCapabilities bool
}

// LoadDir loads the chart in a directory.
func LoadDir(dir string) (*Chart, error) {
	c, err := Load(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", dir, err)
	}
	return c, nil
}

// Load loads the chart whose Chart.yaml lies at the root of fsys. Hidden files, and Go files (a chart may lie beside the Go
// package that embeds it), are not part of it.
func Load(fsys fs.FS) (*Chart, error) {
	files, err := readFiles(fsys)
	if err != nil {
		return nil, &Error{Stage: StageLoad, Err: err, Remedy: "check that the chart's directory exists and can be read"}
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, &Error{Stage: StageLoad, Path: "Chart.yaml", Err: err, Remedy: "run `helm lint` on the chart"}
	}
	if err := loaded.Validate(); err != nil {
		return nil, &Error{Stage: StageLoad, Path: "Chart.yaml", Err: err, Remedy: "run `helm lint` on the chart"}
	}
	c := &Chart{helm: loaded, digest: digestOfFiles(files)}
	c.scan(loaded)
	slices.Sort(c.kinds)
	c.kinds = slices.Compact(c.kinds)
	return c, nil
}

func readFiles(fsys fs.FS) ([]*loader.BufferedFile, error) {
	ignored, err := ignoreRules(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
	}
	var files []*loader.BufferedFile
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		hidden := name != "." && strings.HasPrefix(path.Base(name), ".")
		if hidden || name != "." && ignored.Ignore(name, info) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() || path.Dir(name) == "." && path.Ext(name) == ".go" {
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files = append(files, &loader.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, []byte("\uFEFF"))})
		return nil
	})
	return files, err
}

func ignoreRules(fsys fs.FS) (*ignore.Rules, error) {
	file, err := fsys.Open(ignore.HelmIgnore)
	if errors.Is(err, fs.ErrNotExist) {
		return ignore.Empty(), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return ignore.Parse(file)
}

// Name is the chart's name, as in Chart.yaml.
func (c *Chart) Name() string { return c.helm.Name() }

// Version is the chart's version, as in Chart.yaml.
func (c *Chart) Version() string { return c.helm.Metadata.Version }

// Digest identifies the chart's content: SHA-256, hexadecimal.
func (c *Chart) Digest() string { return c.digest }

// Kinds are the kinds of object the chart's templates (those of its dependencies too) write literally: the words of every
// top-level `kind:` line, and the quoted words when that line holds an action (`kind: {{ ternary "A" "B" … }}`). They are
// what the chart may create; a kind that comes from a value is not among them.
func (c *Chart) Kinds() []string { return slices.Clone(c.kinds) }

// UsesCapabilities tells whether a template looks at the cluster's version or APIs.
func (c *Chart) UsesCapabilities() bool { return c.usesCapabilities }

// HasCRDs tells whether the chart has a crds/ directory with content.
func (c *Chart) HasCRDs() bool { return len(c.helm.CRDObjects()) > 0 }

var (
	kindLine   = regexp.MustCompile(`(?m)^["']?kind["']?:[ \t]*(.*)$`)
	plainKind  = regexp.MustCompile(`^["']?([A-Z][A-Za-z0-9]*)["']?\s*(?:#.*)?$`)
	quotedKind = regexp.MustCompile(`["` + "`" + `]([A-Z][A-Za-z0-9]*)["` + "`" + `]`)
	tplCall    = regexp.MustCompile(`\btpl\b`)
)

// scan reads what can be said about the templates without rendering them. It errs on the safe side: the word tpl in a
// comment counts as a use.
func (c *Chart) scan(part *helmchart.Chart) {
	if part.Metadata.KubeVersion != "" {
		c.usesCapabilities = true
	}
	for _, template := range part.Templates {
		c.usesTpl = c.usesTpl || tplCall.Match(template.Data)
		c.usesCapabilities = c.usesCapabilities || bytes.Contains(template.Data, []byte("Capabilities"))
		for _, line := range kindLine.FindAllSubmatch(template.Data, -1) {
			if kind := plainKind.FindSubmatch(bytes.TrimSpace(line[1])); kind != nil {
				c.kinds = append(c.kinds, string(kind[1]))
				continue
			}
			for _, kind := range quotedKind.FindAllSubmatch(line[1], -1) {
				c.kinds = append(c.kinds, string(kind[1]))
			}
		}
	}
	for _, dependency := range part.Dependencies() {
		c.scan(dependency)
	}
}

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

func digestOfFiles(files []*loader.BufferedFile) string {
	sum := sha256.New()
	for _, file := range files { // WalkDir goes in lexical order
		content := sha256.Sum256(file.Data)
		fmt.Fprintf(sum, "%q %x\n", file.Name, content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
