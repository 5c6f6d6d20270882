// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

// LoadPath loads a chart from a directory or from a packed chart (.tgz, as helm package writes it).
func LoadPath(name string) (*Chart, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, &Error{Stage: StageLoad, Path: name, Err: err, Remedy: "check the path of the chart"}
	}
	if info.IsDir() {
		return LoadDir(name)
	}
	file, err := os.Open(name) //nolint:gosec // the path comes from the watches file, which is the operator's own
	if err != nil {
		return nil, &Error{Stage: StageLoad, Path: name, Err: err, Remedy: "check that the chart can be read"}
	}
	defer func() { _ = file.Close() }() // it was only read
	c, err := LoadArchive(file)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	return c, nil
}

// LoadDir loads the chart in a directory.
func LoadDir(dir string) (*Chart, error) {
	c, err := Load(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", dir, err)
	}
	return c, nil
}

// LoadArchive loads a packed chart. Helm's bounds hold: 5 MiB a file, 100 MiB in all.
func LoadArchive(packed io.Reader) (*Chart, error) {
	files, err := loader.LoadArchiveFiles(packed)
	if err != nil {
		return nil, &Error{Stage: StageLoad, Err: fmt.Errorf("unpack the chart: %w", err), Remedy: "pack it with `helm package`"}
	}
	return loadFiles(files)
}

// Load loads the chart whose Chart.yaml lies at the root of fsys. What .helmignore names is not part of it, nor are hidden
// templates, nor Go files beside Chart.yaml (a chart may lie in the Go package that embeds it).
func Load(fsys fs.FS) (*Chart, error) {
	files, err := readFiles(fsys)
	if err != nil {
		return nil, &Error{Stage: StageLoad, Err: err, Remedy: "check that the chart's directory exists and can be read"}
	}
	return loadFiles(files)
}

func loadFiles(files []*loader.BufferedFile) (*Chart, error) {
	slices.SortFunc(files, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	digest := digestOfFiles(files)
	loaded, err := loader.LoadFiles(files)
	if err == nil {
		err = loaded.Validate()
	}
	if err != nil {
		return nil, &Error{Stage: StageLoad, Path: "Chart.yaml", Err: err, Remedy: "run `helm lint` on the chart"}
	}
	if err := missingDependency(loaded); err != nil {
		return nil, err
	}
	known := &schemas{}
	if err := known.elsewhere(loaded, ""); err != nil {
		return nil, err
	}
	return newChart(loaded, digest, known), nil
}

func readFiles(fsys fs.FS) ([]*loader.BufferedFile, error) {
	ignored, err := ignoreRules(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
	}
	var files []*loader.BufferedFile
	var visit fs.WalkDirFunc
	visit = func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return err
		}
		switch {
		case ignored.Ignore(name, info):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.Type()&fs.ModeSymlink != 0 && info.IsDir():
			return fs.WalkDir(fsys, name, visit) // a dependency that is linked to
		case info.IsDir(), path.Dir(name) == "." && path.Ext(name) == ".go":
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files = append(files, &loader.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, []byte("\uFEFF"))})
		return nil
	}
	return files, fs.WalkDir(fsys, ".", visit)
}

func ignoreRules(fsys fs.FS) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file, err := fsys.Open(ignore.HelmIgnore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		defer func() { _ = file.Close() }() // it was only read
		if rules, err = ignore.Parse(file); err != nil {
			return nil, err
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// digestOfFiles expects the files sorted by name.
func digestOfFiles(files []*loader.BufferedFile) string {
	sum := sha256.New()
	for _, file := range files {
		content := sha256.Sum256(file.Data)
		fmt.Fprintf(sum, "%q %x\n", file.Name, content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
