// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Concurrency is how many objects of a kind are worked on at once. As a flag it reads "4", "rediscluster=8" or both, comma
// separated.
type Concurrency struct {
	// Default is for controllers that ByController does not name.
	Default int
	// ByController holds numbers by controller name.
	ByController map[string]int
}

// For returns the number for one controller.
func (c Concurrency) For(controller string) int {
	if n, ok := c.ByController[controller]; ok {
		return n
	}
	return c.Default
}

// String renders the value in the form that Set reads.
func (c *Concurrency) String() string {
	parts := []string{strconv.Itoa(c.Default)}
	for _, name := range slices.Sorted(maps.Keys(c.ByController)) {
		parts = append(parts, name+"="+strconv.Itoa(c.ByController[name]))
	}
	return strings.Join(parts, ",")
}

// Type is the placeholder in the help.
func (c *Concurrency) Type() string { return "N|NAME=N,..." }

// Set reads the flag's value; what it does not name keeps its former number.
func (c *Concurrency) Set(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		name, number, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, number = "", name
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%q is neither a number nor NAME=NUMBER", part)
		}
		if !named {
			c.Default = n
			continue
		}
		if c.ByController == nil {
			c.ByController = map[string]int{}
		}
		c.ByController[name] = n
	}
	return nil
}

func (c Concurrency) validate() []error {
	var errs []error
	check := func(what string, n int) {
		if n < 1 || n > 100 {
			errs = append(errs, fmt.Errorf("--max-concurrent-reconciles: %s%d is out of range; give 1 to 100", what, n))
		}
	}
	check("", c.Default)
	for _, name := range slices.Sorted(maps.Keys(c.ByController)) {
		check(name+"=", c.ByController[name])
	}
	return errs
}

// unknown returns an error for numbers given to controllers that do not exist.
func (c Concurrency) unknown(known []string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.ByController)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("--max-concurrent-reconciles: there is no controller %q; there are %s", name, strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}

// Select returns those of the known controllers that the patterns turn on, in the order of known. A pattern is a name, a name
// after a minus sign, or *. A name decides whatever the order of the patterns is, and its last mention wins; * is for all the
// controllers that no pattern names. A pattern that names none of the known is an error that lists them.
func Select(patterns, known []string) ([]string, error) {
	all := false
	named := map[string]bool{}
	for _, pattern := range patterns {
		pattern = strings.TrimSpace(pattern)
		if pattern == "*" {
			all = true
			continue
		}
		name, minus := strings.CutPrefix(pattern, "-")
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--controllers: there is no controller %q; there are %s", name, strings.Join(known, ", "))
		}
		named[name] = !minus
	}
	var selected []string
	for _, name := range known {
		if on, ok := named[name]; on || (!ok && all) {
			selected = append(selected, name)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("--controllers: %q turns every controller off; name at least one of %s, or give *",
			strings.Join(patterns, ","), strings.Join(known, ", "))
	}
	return selected, nil
}
