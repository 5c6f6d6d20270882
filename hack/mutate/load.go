// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// source is a file of a package that is mutated.
type source struct {
	// path is relative to the root of the module.
	path   string
	text   []byte
	syntax *ast.File
	fset   *token.FileSet
	info   *types.Info
}

// offset is where a position is in the text.
func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// of is the text of a node.
func (s *source) of(n ast.Node) string { return string(s.text[s.offset(n.Pos()):s.offset(n.End())]) }

// listed is what `go list` tells of a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
}

// load reads and type-checks packages, given as folders below the root, without their tests. What they import is taken
// from its compiled form.
func load(root string, folders []string) (map[string][]*source, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles"}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	cmd := exec.Command("go", args...) // #nosec G204 -- the folders are those of this module
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	packages := map[string]listed{}
	byFolder := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
		if folder, err := filepath.Rel(root, p.Dir); err == nil {
			byFolder[folder] = p
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	loaded := map[string][]*source{}
	for _, folder := range folders {
		if loaded[folder], err = check(root, fset, imports, byFolder[folder]); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// check type-checks one package.
func check(root string, fset *token.FileSet, imports types.Importer, p listed) ([]*source, error) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	var sources []*source
	var files []*ast.File
	for _, name := range p.GoFiles {
		full := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(full) // #nosec G304 -- a file of this module
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(fset, full, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(root, full)
		if err != nil {
			return nil, err
		}
		files = append(files, syntax)
		sources = append(sources, &source{path: path, text: text, syntax: syntax, fset: fset, info: info})
	}
	_, err := (&types.Config{Importer: imports}).Check(p.ImportPath, fset, files, info)
	return sources, err
}
