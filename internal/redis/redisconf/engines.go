// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redisconf is redis.conf: how it is written, which settings the engines have, what each is
// when nobody sets it, which can be changed while a server runs, which are the operator's own, and
// what a RedisCluster asks for. It is pure.
package redisconf

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table is known.tsv: a row a setting and a column an engine. A cell is - where the engine
// does not have the setting, else the default in quotes, with ! before it when a running
// server refuses to change the setting. The engines' own answers are its source:
// test/engine compares it with them, and writes it with -update.
//
//go:embed known.tsv
var Table string

// cell is what one engine says of a setting.
type cell struct {
	byDefault string
	immutable bool
}

// known is the table: setting, then engine, such as redis-7.0.
var known, tested = parse(Table)

func parse(table string) (map[string]map[string]cell, []string) {
	settings := map[string]map[string]cell{}
	var engines []string
	for line := range strings.Lines(table) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if engines == nil {
			engines = columns[1:]
			continue
		}
		row := map[string]cell{}
		for i, text := range columns[1:] {
			if text == "-" {
				continue
			}
			quoted, immutable := strings.CutPrefix(text, "!")
			value, err := strconv.Unquote(quoted)
			if err != nil {
				panic(fmt.Sprintf("settings: known.tsv, %s: %v", columns[0], err))
			}
			row[engines[i]] = cell{byDefault: value, immutable: immutable}
		}
		settings[columns[0]] = row
	}
	return settings, engines
}

// Engines are those that the table was made from, such as redis-7.0.
func Engines() []string { return slices.Clone(tested) }

// Known reports whether an engine of the table has the setting.
func Known(name string) bool { return known[name] != nil }

// Defaults are the settings of an engine of the table and what each is when nobody sets it.
func Defaults(engine string) map[string]string {
	defaults := map[string]string{}
	for name, row := range known {
		if c, has := row[engine]; has {
			defaults[name] = c.byDefault
		}
	}
	return defaults
}

// Immutable reports whether a running server of that engine of the table refuses to change the
// setting.
func Immutable(name, engine string) bool { return known[name][engine].immutable }

// NeedsRestart reports whether instances take a new value of the setting only when they start: some
// engine cannot change it while it runs, or nobody knows.
func NeedsRestart(name string) bool {
	for _, c := range known[name] {
		if c.immutable {
			return true
		}
	}
	return !Known(name)
}

// Default is what a setting is when nobody sets it, on an engine (redis or valkey) of that
// version. Of a version that is not in the table it is what all versions of the engine agree
// on. ok is false when that is not known.
func Default(name, engine, version string) (value string, ok bool) {
	row := known[name]
	if c, exact := row[column(engine, version)]; exact {
		return c.byDefault, true
	}
	return agreed(row, func(column string) bool { return strings.HasPrefix(column, engine+"-") })
}

// IsDefault reports whether a value is what every engine of the table has anyway.
func IsDefault(name, value string) bool {
	byDefault, ok := agreed(known[name], func(string) bool { return true })
	return ok && Equal(name, value, byDefault)
}

// agreed is the default that the chosen columns of a row have in common.
func agreed(row map[string]cell, chosen func(column string) bool) (value string, ok bool) {
	for column, c := range row {
		switch {
		case !chosen(column):
		case !ok:
			value, ok = c.byDefault, true
		case c.byDefault != value:
			return "", false
		}
	}
	return value, ok
}

// column names an engine and version in the table: redis and 7.0.15 are redis-7.0.
func column(engine, version string) string {
	if major := strings.IndexByte(version, '.'); major >= 0 {
		if minor := strings.IndexByte(version[major+1:], '.'); minor >= 0 {
			version = version[:major+1+minor]
		}
	}
	return engine + "-" + version
}
