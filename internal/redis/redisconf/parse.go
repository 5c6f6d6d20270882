// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// cumulative are the settings that redis.conf may hold several times, each line adding
// to the former ones. The last line of any other setting wins, as in Redis.
var cumulative = map[string]bool{
	"save":                       true,
	"client-output-buffer-limit": true,
}

const (
	// mostSettings is more than any engine has.
	mostSettings = 500
	// longestConfig is twice the file that comes with an engine, comments and all.
	longestConfig = 256 << 10
	// longestSettings is what all values together may have, written out in redis.conf four bytes for one: a ConfigMap holds 1 MiB.
	longestSettings = 128 << 10
	// mostProblems ends a list that nobody reads to its end.
	mostProblems = 20
)

// ParseConfig reads a user's redis.conf. The result is what Settings takes: a value is
// the line's arguments, quoted where they need it. The error names every line that
// cannot be used, with what to do about it.
func ParseConfig(text string) (map[string]string, error) {
	if len(text) > longestConfig {
		return nil, fmt.Errorf("has %d bytes: %d at most; leave out comments, and settings that are the engine's defaults", len(text),
			longestConfig)
	}
	settings := map[string]string{}
	var problems []error
	for i, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := parseLine(line, settings); err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", i+1, err))
		}
		if len(problems) == mostProblems {
			return nil, errors.Join(append(problems, errors.New("the lines after it were not looked at"))...)
		}
	}
	total := 0
	for _, value := range settings {
		total += len(value)
	}
	if len(settings) > mostSettings || total > longestSettings {
		problems = append(problems, fmt.Errorf("%d settings with values of %d bytes: at most %d, with %d bytes", len(settings), total,
			mostSettings, longestSettings))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return settings, nil
}

func parseLine(line string, settings map[string]string) error {
	args, err := SplitArguments(line)
	if err != nil {
		return err
	}
	if len(args) < 2 {
		return fmt.Errorf("%.64q has no value: write the setting's name, a space and its value", line)
	}
	name, value := Canonical(args[0]), joinArguments(args[1:])
	if err := CheckSetting(name, value); err != nil {
		return fmt.Errorf("%.64q: %w", name, err)
	}
	// An empty value clears what former lines added (save "").
	if former := settings[name]; cumulative[name] && former != "" && former != `""` && value != `""` {
		value = former + " " + value
		if len(value) > longestValue {
			return fmt.Errorf("%q: its lines together cannot be longer than %d bytes", name, longestValue)
		}
	}
	settings[name] = value
	return nil
}

// plainArgument needs no quotes.
var plainArgument = regexp.MustCompile(`^[A-Za-z0-9._:/@%+,=-]+$`)

// joinArguments is the inverse of SplitArguments.
func joinArguments(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if !plainArgument.MatchString(arg) {
			quoted[i] = Quote(arg)
		}
	}
	return strings.Join(quoted, " ")
}
