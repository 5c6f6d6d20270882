// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"regexp"
	"strings"
)

// Fatal is why a server did not start: a line of its configuration.
type Fatal struct {
	// Name is the setting and Arguments the rest of the line, as the server quotes it.
	Name, Arguments string
	// Reason is what the server says is wrong with it.
	Reason string
}

// offending is the line that a server quotes before it says what is wrong with it. Some write
// it to their log, with its prefix, as Redis 8 does of a name that a module may have.
var offending = regexp.MustCompile(`(?m)^(?:\d+:\w .* # )?>>> '([a-z][a-z0-9-]*) ?(.*)'$`)

// logPrefix is what stands before each message in the log: process, role, time and level.
var logPrefix = regexp.MustCompile(`^\d+:\w .* [.*#-] `)

// ReadFatal finds in the termination message of a server which setting kept it from starting.
func ReadFatal(log string) (Fatal, bool) {
	at := offending.FindStringSubmatchIndex(log)
	if at == nil {
		return Fatal{}, false
	}
	reason, _, _ := strings.Cut(strings.TrimLeft(log[at[1]:], "\r\n"), "\n")
	reason = logPrefix.ReplaceAllString(strings.TrimSpace(reason), "")
	return Fatal{Name: log[at[2]:at[3]], Arguments: log[at[4]:at[5]], Reason: reason}, true
}
