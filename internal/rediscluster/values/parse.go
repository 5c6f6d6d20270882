// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

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

// mostSettings is more than any engine has.
const mostSettings = 500

// ParseConfig reads a user's redis.conf. The result is what Settings takes: a value is
// the line's arguments, quoted where they need it. The error names every line that
// cannot be used, with what to do about it.
func ParseConfig(text string) (map[string]string, error) {
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
	}
	if len(settings) > mostSettings {
		problems = append(problems, fmt.Errorf("more than %d settings", mostSettings))
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
		return fmt.Errorf("%q has no value: write the setting's name, a space and its value", line)
	}
	name, value := Canonical(args[0]), joinArguments(args[1:])
	if err := CheckSetting(name, value); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	// An empty value clears what former lines added (save "").
	if former := settings[name]; cumulative[name] && former != "" && former != `""` && value != `""` {
		value = former + " " + value
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
