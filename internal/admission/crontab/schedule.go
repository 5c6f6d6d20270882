// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones must be known wherever the operator runs
	"unicode"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
)

// fieldNames are the fields of a cron line, in their order.
var fieldNames = []string{"minute", "hour", "day of month", "month", "day of week"}

// macros are the lines that have a name.
var macros = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// ParseSchedule reads a cron line as the CronJob controller does, with the library
// that it uses. An error tells the position (in characters, from 1) of what is
// wrong. The forms "@every" and "TZ=" are refused: the former has no fixed times,
// the latter has a field of its own.
func ParseSchedule(spec string) (cron.Schedule, error) {
	if i := strings.IndexAny(spec, "\r\n"); i >= 0 {
		return nil, fmt.Errorf("position %d: a line break; write one line", i+1)
	}
	if strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ=") {
		return nil, fmt.Errorf("position 1: a time zone; write it into spec.timeZone")
	}
	if strings.HasPrefix(spec, "@") {
		return parseMacro(strings.TrimRight(spec, " \t"))
	}
	if i := strings.IndexFunc(spec, foreign); i >= 0 {
		r, _ := utf8.DecodeRuneInString(spec[i:])
		return nil, fmt.Errorf("position %d: %q has no meaning here; write letters, digits, spaces and * / , - ? only", i+1, r)
	}
	words := wordsOf(spec)
	if len(words) > len(fieldNames) {
		extra := words[len(fieldNames)]
		return nil, fmt.Errorf(
			"position %d: %q is a field too many; write five (minute, hour, day of month, month, day of week), there are no seconds",
			extra.at, extra.text)
	}
	if len(words) < len(fieldNames) {
		return nil, fmt.Errorf("position %d: the field %q is missing; write five fields, such as \"*/5 * * * *\"", len(spec)+1,
			fieldNames[len(words)])
	}
	for i, word := range words {
		if err := checkField(i, word); err != nil {
			return nil, err
		}
	}
	schedule, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, err
	}
	if schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("position %d: day of month %q never comes in month %q", words[2].at, words[2].text, words[3].text)
	}
	return schedule, nil
}

// ParseZone reads the name of a time zone; an empty one is UTC.
func ParseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // which would be that of whichever process reads it
		return nil, errors.New("is not a time zone; write an IANA name, such as Asia/Shanghai or Etc/UTC")
	}
	return zone, nil
}

func parseMacro(spec string) (cron.Schedule, error) {
	if slices.Contains(macros, spec) {
		return cron.ParseStandard(spec)
	}
	if strings.HasPrefix(spec, "@every") {
		return nil, fmt.Errorf("position 1: @every has no fixed times; write five fields, such as \"*/5 * * * *\" for every five minutes")
	}
	return nil, fmt.Errorf("position 1: %q is not a known name; use one of %s, or five fields", spec, strings.Join(macros, ", "))
}

// foreign reports whether a character cannot be part of the five fields.
func foreign(r rune) bool {
	if r >= utf8.RuneSelf {
		return true
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("*/,-? \t", r)
}

// word is a piece of a line and its position, from 1.
type word struct {
	text string
	at   int
}

func wordsOf(spec string) []word {
	var words []word
	for at := 0; at < len(spec); {
		if spec[at] == ' ' || spec[at] == '\t' {
			at++
			continue
		}
		end := at + len(spec[at:])
		if i := strings.IndexAny(spec[at:], " \t"); i >= 0 {
			end = at + i
		}
		words = append(words, word{text: spec[at:end], at: at + 1})
		at = end
	}
	return words
}

// checkField parses each element of one field's list by itself, with a star in
// every other field, so that a mistake is known to be there.
func checkField(i int, list word) error {
	at := list.at
	for _, element := range strings.Split(list.text, ",") {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = element
		if element == "" {
			return fmt.Errorf("position %d: an element of the list of the %s is missing", at, fieldNames[i])
		}
		if _, err := cron.ParseStandard(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("position %d: %s %q: %s%s", at, fieldNames[i], element, strings.TrimSuffix(err.Error(), ": "+element),
				hint(i, element))
		}
		at += len(element) + 1
	}
	return nil
}

func hint(i int, element string) string {
	if i == 4 && strings.Contains(element, "7") {
		return "; Sunday is 0"
	}
	return ""
}
