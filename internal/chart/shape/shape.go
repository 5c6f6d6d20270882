// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape holds the strings of values to their place in what a chart says. It is pure and knows YAML, not Helm.
//
// A value that a template writes without quotes is read as YAML: its line breaks, quotes and brackets can add fields, objects
// and namespaces, or hide those of the chart. Quoting is the chart's business, and charts forget it. So what the chart says is
// compared with what it says to harmless values:
//
// If some string of the values (a key or a value) holds a character that could reach beyond its own place in YAML, the chart is
// rendered two more times, with two different stand-ins for each of these strings: the same letters and digits, every other
// character replaced, by _ in one and by x in the other. All three renderings must consist of the same documents, with the
// same maps and lists; and a key or scalar in which the two stand-in renderings agree does not come from these strings, so the
// real rendering must have it too. Where the stand-in renderings differ, the strings are written there, plain, hashed or
// encoded, and the real rendering may hold any scalar.
//
// A chart that quotes passes whatever the values hold. One that decides by such a character (splitList "\n", fromYaml) what
// objects there are and what they consist of does not, because then a string does shape the objects.
package shape

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Documents are the YAML documents that each template wrote, by its path.
type Documents map[string][]string

// fillers are the characters that stand in for others. Both mean nothing to YAML, anywhere.
var fillers = [2]rune{'_', 'x'}

// Suspects returns the paths of the strings that could reach beyond their own place, in sorted order.
func Suspects(at string, value any, inFlow bool) []string {
	var found []string
	switch v := value.(type) {
	case string:
		if isSuspect(v, inFlow) {
			return []string{at}
		}
	case []any:
		for i := range v {
			found = append(found, Suspects(fmt.Sprintf("%s[%d]", at, i), v[i], inFlow)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if isSuspect(key, inFlow) {
				found = append(found, at)
			}
			found = append(found, Suspects(at+"."+key, v[key], inFlow)...)
		}
	}
	return found
}

// isSuspect reports whether YAML may read more than one scalar in a string: it holds a line break (YAML 1.1 knows five), a quote,
// a bracket or a backslash; ends a key; or begins as a document or a key does. In a flow collection a comma ends an item and #
// hides the rest of it.
func isSuspect(text string, inFlow bool) bool {
	if strings.ContainsAny(text, "\n\r\u0085\u2028\u2029\"'\\{}[]") || inFlow && strings.ContainsAny(text, ",#") {
		return true
	}
	return strings.HasSuffix(text, ":") || strings.Contains(text, ": ") || strings.Contains(text, ":\t") || strings.Contains(text, ":,") ||
		strings.HasPrefix(strings.TrimSpace(text), "---") || strings.HasPrefix(strings.TrimSpace(text), "? ")
}

// StandIns returns the values with each suspect replaced, in two ways.
func StandIns(values map[string]any, inFlow bool) (both [2]map[string]any) {
	for i, filler := range fillers {
		both[i] = disarm(values, inFlow, filler).(map[string]any)
	}
	return both
}

// disarm returns a copy of values in which every suspect is replaced by a stand-in.
func disarm(value any, inFlow bool, filler rune) any {
	standIn := func(text string) string {
		if !isSuspect(text, inFlow) {
			return text
		}
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return filler
		}, text)
	}
	switch v := value.(type) {
	case string:
		return standIn(v)
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = disarm(v[i], inFlow, filler)
		}
		return copied
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key := range v {
			copied[standIn(key)] = disarm(v[key], inFlow, filler)
		}
		return copied
	default:
		return v
	}
}

// Difference returns where the real rendering says something else than those of both stand-ins; empty if it does not. The real one
// is valid YAML.
func Difference(real, first, second Documents) string {
	for _, name := range slices.Sorted(maps.Keys(real)) {
		var parsed [3][]any
		for i, rendering := range []Documents{real, first, second} {
			for _, text := range rendering[name] {
				var content any
				if err := yaml.Unmarshal([]byte(text), &content); err != nil {
					return name
				}
				parsed[i] = append(parsed[i], content)
			}
		}
		if where, same := compare(name, parsed[0], parsed[1], parsed[2]); !same {
			return where
		}
	}
	return ""
}

// compare returns where one value of the real rendering and of the two others differ.
func compare(at string, real, first, second any) (string, bool) {
	switch r := real.(type) {
	case map[string]any:
		f, isMap := first.(map[string]any)
		s, alsoMap := second.(map[string]any)
		if !isMap || !alsoMap {
			return at, false
		}
		return compareMaps(at, r, f, s)
	case []any:
		f, isList := first.([]any)
		s, alsoList := second.([]any)
		if !isList || !alsoList || len(r) != len(f) || len(r) != len(s) {
			return at, false
		}
		for i := range r {
			if where, same := compare(fmt.Sprintf("%s[%d]", at, i), r[i], f[i], s[i]); !same {
				return where, false
			}
		}
		return "", true
	default:
		if isCollection(first) || isCollection(second) {
			return at, false
		}
		return at, !reflect.DeepEqual(first, second) || reflect.DeepEqual(real, first)
	}
}

func compareMaps(at string, real, first, second map[string]any) (string, bool) {
	if len(real) != len(first) || len(real) != len(second) {
		return at, false
	}
	for _, key := range slices.Sorted(maps.Keys(first)) {
		if _, constant := second[key]; !constant {
			continue // a suspect is part of the key
		}
		if _, kept := real[key]; !kept {
			return at + ": " + key, false
		}
		if where, same := compare(at+": "+key, real[key], first[key], second[key]); !same {
			return where, false
		}
	}
	// Which key of one is which of another cannot be told where there are several.
	r, f, s := except(real, first, second), except(first, second, nil), except(second, first, nil)
	if len(r) != len(f) || len(f) != len(s) {
		return at, false
	}
	if len(f) == 1 {
		return compare(at+": "+r[0], real[r[0]], first[f[0]], second[s[0]])
	}
	return "", true
}

// except returns the keys that are not keys of both others; nil stands for all keys.
func except(keys, one, other map[string]any) []string {
	var left []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		_, inOne := one[key]
		_, inOther := other[key]
		if !inOne || other != nil && !inOther {
			left = append(left, key)
		}
	}
	return left
}

func isCollection(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
