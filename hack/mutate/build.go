// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// mutation is all mutants of some packages, in one build.
type mutation struct {
	root    string
	work    string // where what is built goes
	folders []string
	finders []*finder
	names   map[string]string // of packages by folder
	without map[int]bool      // mutants that do not compile
}

// find looks for the mutants of packages, and adds the seeded bugs.
func find(root string, folders []string, bugs []Bug) (*mutation, error) {
	packages, err := load(root, folders)
	if err != nil {
		return nil, err
	}
	m := &mutation{root: root, folders: folders, names: map[string]string{}, without: map[int]bool{}}
	next := 0
	for _, folder := range folders {
		for _, s := range packages[folder] {
			f := &finder{source: s, next: next, seen: map[string]int{}}
			f.file()
			next = f.next
			m.finders = append(m.finders, f)
			m.names[folder] = s.syntax.Name.Name
		}
	}
	for _, bug := range bugs {
		for _, f := range m.finders {
			if f.path != bug.File {
				continue
			}
			f.next = max(f.next, next)
			if err := f.seed(bug); err != nil {
				return nil, err
			}
			next = f.next
		}
	}
	return m, nil
}

// overlaid is the name of the file that stands in for another one.
func overlaid(path string) string { return strings.ReplaceAll(path, "/", "__") }

func (m *mutation) mutants() []Mutant {
	var all []Mutant
	for _, f := range m.finders {
		for _, mutant := range f.mutants {
			if !m.without[mutant.ID] {
				all = append(all, mutant)
			}
		}
	}
	return all
}

// overlay writes the mutated files and the list for `go build -overlay`; it returns the list's path.
func (m *mutation) overlay() (string, error) {
	replace := map[string]string{}
	write := func(path string, text []byte) error {
		instead := filepath.Join(m.work, "overlay", overlaid(path))
		replace[filepath.Join(m.root, path)] = instead
		return os.WriteFile(instead, text, 0o600)
	}
	if err := os.MkdirAll(filepath.Join(m.work, "overlay"), 0o750); err != nil {
		return "", err
	}
	for _, f := range m.finders {
		if err := write(f.path, edited(f.text, f.edits, m.without)); err != nil {
			return "", err
		}
	}
	for _, folder := range m.folders {
		if err := write(folder+"/zz_mutants.go", selector(m.names[folder])); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(m.work, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// allErrors has the compiler print more than ten.
const allErrors = "-gcflags=middleware.hc.cn/operator/internal/...=-e"

// compiling builds the packages, and leaves out the mutants that do not compile.
func (m *mutation) compiling() error {
	const most = 30
	for range most {
		list, err := m.overlay()
		if err != nil {
			return err
		}
		args := []string{"build", "-overlay", list, allErrors}
		for _, folder := range m.folders {
			args = append(args, "./"+folder)
		}
		cmd := exec.Command("go", args...) // #nosec G204 -- the folders are those of this module
		cmd.Dir = m.root
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		fmt.Fprintf(os.Stderr, "%s\n", bytes.TrimSpace(out))
		before := len(m.without)
		m.blame(out)
		if len(m.without) == before {
			return fmt.Errorf("the mutants do not compile: %s", bytes.TrimSpace(out))
		}
	}
	return fmt.Errorf("the mutants do not compile after %d builds", most)
}

var (
	complaint = regexp.MustCompile(`(?m)^([^\s:]+\.go):(\d+):(\d+): `)
	numbered  = regexp.MustCompile(`mutant__\((\d+)\)|mutated__\((\d+),`)
)

// blame leaves out the mutant that stands closest before each complaint of the compiler.
func (m *mutation) blame(out []byte) {
	for _, found := range complaint.FindAllSubmatch(out, -1) {
		name := filepath.Base(string(found[1]))
		line, _ := strconv.Atoi(string(found[2]))
		column, _ := strconv.Atoi(string(found[3]))
		for _, f := range m.finders {
			if name != overlaid(f.path) {
				continue
			}
			lines := bytes.SplitAfter(edited(f.text, f.edits, m.without), []byte("\n"))
			before := bytes.Join(lines[:line-1], nil)
			before = append(before, lines[line-1][:min(column+20, len(lines[line-1]))]...)
			if all := numbered.FindAllSubmatch(before, -1); len(all) > 0 {
				last := all[len(all)-1]
				number, _ := strconv.Atoi(string(last[1]) + string(last[2]))
				m.without[number] = true
			}
		}
	}
}
