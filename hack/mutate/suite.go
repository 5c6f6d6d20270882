// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The layers, quickest first.
const (
	unit       = "unit"
	simulation = "simulation"
	model      = "model"
)

// suites are the tests that are run for the mutants of a package: its own, those of packages that use it, and the two
// layers above.
var suites = map[string][]string{
	"internal/rediscluster/plan": {"internal/rediscluster/plan", "internal/rediscluster/status", "internal/rediscluster",
		"test/simulation", "test/model"},
	"internal/rediscluster/act": {"internal/rediscluster/act", "internal/rediscluster", "test/simulation", "test/model"},
	"internal/redis/reshard":    {"internal/redis/reshard", "internal/rediscluster/act", "test/simulation", "test/model"},
	"internal/apply":            {"internal/apply", "internal/release", "internal/application", "internal/rediscluster", "internal/shell"},
	"internal/release":          {"internal/release", "internal/chartkind", "internal/preview", "internal/manager"},
}

func layerOf(folder string) string {
	switch folder {
	case "test/simulation":
		return simulation
	case "test/model":
		return model
	}
	return unit
}

// suite is the tests of one package, built with all mutants.
type suite struct {
	folder, layer, binary, dir string
	flags                      []string
	tests                      []test
}

// test is one test function, how long it takes, and the mutants that it reaches.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// build compiles the tests of a package; nil when it has none.
func (m *mutation) build(folder, overlay string) (*suite, error) {
	s := &suite{folder: folder, layer: layerOf(folder), dir: filepath.Join(m.root, folder),
		binary: filepath.Join(m.work, strings.ReplaceAll(folder, "/", "__")+".test")}
	// #nosec G204 -- the folders are those of this module
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, allErrors, "-o", s.binary, "./"+folder)
	cmd.Dir = m.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %s", folder, bytes.TrimSpace(out))
	}
	if help, _ := exec.Command(s.binary, "-h").CombinedOutput(); bytes.Contains(help, []byte("-rapid.seed")) { // #nosec G204 -- built above
		s.flags = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}
	}
	return s, nil
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)`)

// trace runs every test alone, without a mutant, to learn how long it takes and what it reaches.
func (s *suite) trace(work string, jobs int) error {
	list := exec.Command(s.binary, "-test.list", ".*") // #nosec G204 -- what was built
	list.Dir = s.dir
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", s.folder, err)
	}
	var names []string
	for name := range strings.Lines(string(out)) {
		if testName.MatchString(name) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	s.tests = make([]test, len(names))
	errs := make([]error, len(names))
	sideBySide(jobs, len(names), func(i int) {
		trace := filepath.Join(work, fmt.Sprintf("trace-%s-%d", filepath.Base(s.binary), i))
		defer func() { _ = os.Remove(trace) }()
		begin := time.Now()
		out, err := s.run([]string{names[i]}, 10*time.Minute, "MUTANT_TRACE="+trace)
		if err != nil {
			errs[i] = fmt.Errorf("%s of %s fails without a mutant: %w\n%s", names[i], s.folder, err, out)
		}
		s.tests[i] = test{name: names[i], took: time.Since(begin), reaches: numbers(trace)}
	})
	slices.SortStableFunc(s.tests, func(a, b test) int { return int(a.took - b.took) })
	return errors.Join(errs...)
}

// numbers reads a trace; a file that is not there has none.
func numbers(path string) map[int]bool {
	found := map[int]bool{}
	f, err := os.Open(path) // #nosec G304 -- what a test wrote
	if err != nil {
		return found
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			found[n] = true
		}
	}
	return found
}

// errLate is returned for tests that did not end.
var errLate = errors.New("the tests did not end in time")

// memory is what the tests of a mutant may take, in KiB: one in a loop must not take the machine's.
const memory = 3 << 20

// run runs tests until the first one fails.
func (s *suite) run(names []string, within time.Duration, environment ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	// #nosec G204 -- what was built
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, memory), "sh", s.binary,
		"-test.failfast", "-test.timeout", (within + time.Second).String(), "-test.run", "^(" + strings.Join(names, "|") + ")$"}, s.flags...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), environment...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return out, errLate
	}
	return out, err
}

// sideBySide calls a function with 0 to n-1, several at a time.
func sideBySide(jobs, n int, do func(int)) {
	var group sync.WaitGroup
	work := make(chan int)
	for range jobs {
		group.Go(func() {
			for i := range work {
				do(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	group.Wait()
}

// fate is what became of a mutant.
type fate struct {
	Mutant
	// Killed is the layer that killed it, By the tests' package; empty when it survived.
	Killed string `json:"killed,omitempty"`
	By     string `json:"by,omitempty"`
	Late   bool   `json:"late,omitempty"`
	// Reached reports whether any test reaches it. Unfinished is set when tests that reach it were not run, because they take
	// longer than the budget.
	Reached    bool `json:"reached,omitempty"`
	Unfinished bool `json:"unfinished,omitempty"`
	// Equivalent is why it changes nothing.
	Equivalent string `json:"equivalent,omitempty"`
}

// judge runs the tests that reach a mutant, layer by layer, until one fails. Of each suite it runs no more than take the
// budget without a mutant, the quickest first.
func judge(mutant Mutant, order []*suite, budget time.Duration) fate {
	result := fate{Mutant: mutant}
	for _, s := range order {
		var names []string
		var sum time.Duration
		for _, t := range s.tests {
			if !t.reaches[mutant.ID] {
				continue
			}
			result.Reached = true
			if len(names) > 0 && sum+t.took > budget {
				result.Unfinished = true
				break
			}
			names = append(names, t.name)
			sum += t.took
		}
		if len(names) == 0 {
			continue
		}
		const atLeast, times = 5 * time.Second, 8
		if _, err := s.run(names, atLeast+times*sum, fmt.Sprintf("MUTANT=%d", mutant.ID)); err != nil {
			result.Killed, result.By, result.Late, result.Unfinished = s.layer, s.folder, errors.Is(err, errLate), false
			return result
		}
	}
	return result
}
