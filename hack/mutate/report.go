// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// row is the line of one file in the table.
type row struct{ mutants, unit, simulation, model, equivalent, survived int }

func (r *row) add(f fate) {
	r.mutants++
	switch {
	case f.Equivalent != "":
		r.equivalent++
	case f.Killed == unit:
		r.unit++
	case f.Killed == simulation:
		r.simulation++
	case f.Killed == model:
		r.model++
	default:
		r.survived++
	}
}

// share is how many of those that change something are killed, in percent.
func (r *row) share() string {
	changing := r.mutants - r.equivalent
	if changing == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(changing-r.survived)/float64(changing))
}

// table writes the fates file by file, and then what survived.
func table(w io.Writer, fates []fate) {
	rows, total, bugs := map[string]*row{}, &row{}, &row{}
	for _, f := range fates {
		if f.Kind == seededKind {
			bugs.add(f)
			continue
		}
		if rows[f.File] == nil {
			rows[f.File] = &row{}
		}
		rows[f.File].add(f)
		total.add(f)
	}
	_, _ = fmt.Fprintln(w, "| file | mutants | unit | simulation | model | change nothing | survived | killed |\n|---|---|---|---|---|---|---|---|")
	line := func(name string, r *row) {
		_, _ = fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %s |\n", name, r.mutants, r.unit, r.simulation, r.model, r.equivalent,
			r.survived, r.share())
	}
	for _, file := range slices.Sorted(maps.Keys(rows)) {
		line("`"+file+"`", rows[file])
	}
	line("all", total)
	line("seeded bugs", bugs)
	_, _ = fmt.Fprintln(w)
	for _, f := range fates {
		if f.Killed == "" && f.Equivalent == "" {
			note := ""
			if !f.Reached {
				note = " (no test reaches it)"
			} else if f.Unfinished {
				note = " (not all tests that reach it were run)"
			}
			_, _ = fmt.Fprintf(w, "- %s%s\n", f.Mutant, note)
		}
	}
}

// equivalents reads the list of mutants that change nothing: a line each, `key | reason`.
func equivalents(path string) (map[string]string, error) {
	text, err := os.ReadFile(path) // #nosec G304 -- a file of this module
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " | ")
		if strings.Count(line, " | ") < 4 {
			return nil, fmt.Errorf("%s: want file | function | kind | text | reason: %s", path, line)
		}
		found[line[:at]] = line[at+3:]
	}
	return found, nil
}

// unmatched are entries that name no mutant of the packages that were looked at.
func unmatched(list map[string]string, mutants []Mutant, folders []string) error {
	known := map[string]bool{}
	for _, m := range mutants {
		known[m.key()] = true
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(list)) {
		file, _, _ := strings.Cut(key, " | ")
		if !known[key] && slices.Contains(folders, filepath.Dir(file)) {
			errs = append(errs, fmt.Errorf("said to change nothing, and is no mutant any more: %s", key))
		}
	}
	return errors.Join(errs...)
}

// readFates reads what an earlier run found out; nothing when there was none.
func readFates(path string) ([]fate, error) {
	text, err := os.ReadFile(path) // #nosec G304 -- the caller's
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var fates []fate
	return fates, json.Unmarshal(text, &fates)
}

func writeFates(path string, fates []fate) error {
	text, err := json.MarshalIndent(fates, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
