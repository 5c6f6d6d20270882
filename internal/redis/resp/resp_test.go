// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"bufio"
	"slices"
	"strings"
	"testing"
)

func TestReadCommand(t *testing.T) {
	for text, want := range map[string][]string{
		"*1\r\n$4\r\nPING\r\n":                {"PING"},
		"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n": {"GET", "a\r\nb"},
		"*2\r\n$3\r\nGET\r\n$0\r\n\r\n":       {"GET", ""},
		"*1\n$4\nPING\r\n":                    {"PING"},
		"":                                    nil,
		"\n":                                  nil,
		"*0\r\n":                              nil,
		"*-1\r\n":                             nil,
		"*1048577\r\n" + strings.Repeat("$0\r\n\r\n", 1048577): nil,
		"*9223372036854775807\r\n":                             nil,
		"*1048576\r\n":                                         nil,
		"PING\r\n":                                             nil,
		"*1\r\nPING\r\n":                                       nil,
		"*1\r\n$-1\r\n":                                        nil,
		"*1\r\n$1048577\r\n" + strings.Repeat("a", 1048577) + "\r\n": nil,
		"*1\r\n$4\r\nPI":                         nil,
		"*2\r\n$4\r\nPING\r\n":                   nil,
		"*1\r\n$x\r\n" + strings.Repeat("a", 99): nil,
	} {
		got, err := ReadCommand(bufio.NewReader(strings.NewReader(text)))
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%.60q: %.60q, %v, want %q", text, got, err, want)
		}
	}
}
