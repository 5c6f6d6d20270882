// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutate asks whether the tests would notice if the code were wrong. It makes one small change at a time (a mutant), or
// plants one of a list of bugs, runs the tests that reach it, and tells which changes no test noticed.
//
// All mutants are compiled into one test binary a package, by `go build -overlay`; no source file is changed. The environment
// variable MUTANT chooses the one that runs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const usage = `mutate: which changes of the code would no test notice?

  go run ./hack/mutate [flags] [PACKAGE ...]

PACKAGE is a folder below the root; without one, all that are known: %s.

What is changed: conditions are negated or never true, operands of && and || dropped, borders of comparisons and integer constants
in them moved by one, == and != swapped; calls and assignments dropped, calls that follow each other swapped; verdicts and bools
that are returned turned round, and nil returned instead of a step, an object or an error. Then the bugs of seeded.go.

What is not: text for people (arguments of fmt, fails, errors.New, loggers; what is assigned to a reason or a message; functions
that make a sentence), and what does not compile.

Tests that reach a mutant are run, first those of its package and of its users, then the simulation and the model. A mutant whose
tests do not end is killed. A table and the survivors go to standard output, also to build/mutation.

`

func main() {
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), usage, strings.Join(slices.Sorted(maps.Keys(suites)), ", "))
		flag.PrintDefaults()
	}
	o := options{}
	flag.StringVar(&o.files, "files", "", "only mutants of files that match this regular expression")
	flag.StringVar(&o.kinds, "kinds", "", "only mutants of kinds that match this regular expression, such as 'seeded bug'")
	flag.BoolVar(&o.survivors, "survivors", false, "only mutants that did not die in the last run")
	flag.DurationVar(&o.budget, "budget", 30*time.Second, "for each mutant and package of tests, those that take this long without one")
	flag.DurationVar(&o.within, "within", 24*time.Hour, "begin no mutant after this long: those that are left keep what an earlier run found")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "how many mutants are run at a time")
	flag.BoolVar(&o.list, "list", false, "print the mutants as equivalent.txt names them, and run nothing")
	flag.StringVar(&o.work, "work", filepath.Join("build", "mutation"), "where what is built and found goes")
	flag.BoolVar(&o.unitOnly, "unit", false, "neither simulation nor model")
	flag.BoolVar(&o.ownOnly, "own", false, "only the tests of the mutant's own package")
	flag.Parse()
	o.folders = flag.Args()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	folders            []string
	files, kinds, work string
	survivors, list    bool
	unitOnly, ownOnly  bool
	budget, within     time.Duration
	jobs               int
}

const equivalentList = "hack/mutate/equivalent.txt"

func (o options) run() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if o.folders, err = known(o.folders); err != nil {
		return err
	}
	m, err := find(root, o.folders, bugs)
	if err != nil {
		return err
	}
	same, err := equivalents(equivalentList)
	if err != nil {
		return err
	}
	if err := unmatched(same, m.mutants(), o.folders); err != nil {
		return err
	}
	m.work = filepath.Join(root, o.work)
	if err := os.MkdirAll(m.work, 0o750); err != nil {
		return err
	}
	results := filepath.Join(m.work, "results.json")
	before, err := readFates(results)
	if err != nil {
		return err
	}
	chosen, err := o.choose(m.mutants(), before, same)
	if err != nil {
		return err
	}
	if o.list {
		for _, mutant := range chosen {
			fmt.Println(mutant.key())
		}
		return nil
	}
	fates, err := o.judgeAll(m, chosen)
	if err != nil {
		return err
	}
	fates = merged(o.folders, m.mutants(), before, fates, same)
	if err := writeFates(results, fates); err != nil {
		return err
	}
	table(os.Stdout, fates)
	f, err := os.Create(filepath.Join(m.work, "report.md")) // #nosec G304 -- in the build folder
	if err != nil {
		return err
	}
	table(f, fates)
	return f.Close()
}

// known are folders whose tests are known, sorted; all of them if none is named.
func known(folders []string) ([]string, error) {
	for _, folder := range folders {
		if suites[folder] == nil {
			return nil, fmt.Errorf("there is no list of tests for %q", folder)
		}
	}
	if len(folders) == 0 {
		folders = slices.Collect(maps.Keys(suites))
	}
	return slices.Sorted(slices.Values(folders)), nil
}

// choose are the mutants that are to be run.
func (o options) choose(mutants []Mutant, before []fate, same map[string]string) ([]Mutant, error) {
	files, err := regexp.Compile(o.files)
	if err != nil {
		return nil, err
	}
	kinds, err := regexp.Compile(o.kinds)
	if err != nil {
		return nil, err
	}
	dead := map[string]bool{}
	for _, f := range before {
		dead[f.key()] = o.survivors && f.Killed != ""
	}
	return slices.DeleteFunc(mutants, func(m Mutant) bool {
		return !files.MatchString(m.File) || !kinds.MatchString(m.Kind) || dead[m.key()] || same[m.key()] != ""
	}), nil
}

// merged are the fates of now, and of mutants that were not run the ones of before.
func merged(folders []string, mutants []Mutant, before, now []fate, same map[string]string) []fate {
	known := map[string]fate{}
	for _, f := range before {
		known[f.key()] = f
	}
	fates := map[int]fate{}
	for _, f := range now {
		fates[f.ID] = f
	}
	var all []fate
	for _, f := range before { // of packages that were not looked at now
		if !slices.Contains(folders, filepath.Dir(f.File)) {
			all = append(all, f)
		}
	}
	for _, m := range mutants {
		f, ran := fates[m.ID]
		if old, found := known[m.key()]; !ran && found {
			f, ran = old, true
		}
		f.Mutant, f.Equivalent = m, same[m.key()]
		if ran || f.Equivalent != "" {
			all = append(all, f)
		}
	}
	return all
}

// judgeAll builds the tests with all mutants and runs them for each.
func (o options) judgeAll(m *mutation, chosen []Mutant) ([]fate, error) {
	if err := m.compiling(); err != nil {
		return nil, err
	}
	for _, mutant := range chosen {
		if mutant.Kind == seededKind && m.without[mutant.ID] {
			return nil, fmt.Errorf("this seeded bug does not compile: %s", mutant.Text)
		}
	}
	chosen = slices.DeleteFunc(chosen, func(mutant Mutant) bool { return m.without[mutant.ID] })
	fmt.Fprintf(os.Stderr, "mutate: %d mutants, %d more do not compile\n", len(chosen), len(m.without))
	overlay, err := m.overlay()
	if err != nil {
		return nil, err
	}
	built := map[string]*suite{}
	orders := map[string][]*suite{}
	for _, folder := range o.folders {
		for _, tests := range suites[folder] {
			if o.unitOnly && layerOf(tests) != unit || o.ownOnly && tests != folder {
				continue
			}
			if built[tests] == nil {
				s, err := m.build(tests, overlay)
				if err != nil {
					return nil, err
				}
				if err := s.trace(m.work, o.jobs); err != nil {
					return nil, err
				}
				fmt.Fprintf(os.Stderr, "mutate: %s has %d tests\n", tests, len(s.tests))
				built[tests] = s
			}
			orders[folder] = append(orders[folder], built[tests])
		}
	}
	fates := make([]fate, len(chosen))
	var done, dead atomic.Int32
	begin := time.Now()
	sideBySide(o.jobs, len(chosen), func(i int) {
		if time.Since(begin) > o.within {
			return
		}
		fates[i] = judge(chosen[i], orders[filepath.Dir(chosen[i].File)], o.budget)
		if fates[i].Killed != "" {
			dead.Add(1)
		}
		if n := done.Add(1); n%100 == 0 || int(n) == len(chosen) {
			fmt.Fprintf(os.Stderr, "mutate: %d of %d, %d killed, %s\n", n, len(chosen), dead.Load(), time.Since(begin).Round(time.Second))
		}
	})
	fates = slices.DeleteFunc(fates, func(f fate) bool { return f.ID == 0 })
	if len(fates) == 0 {
		return nil, errors.New("nothing was run")
	}
	return fates, nil
}
