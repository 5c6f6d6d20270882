// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNoteIsWhatAnEventMayHold(t *testing.T) {
	if got := Note("Updated Deployment web"); got != "Updated Deployment web" {
		t.Errorf("a short note became %q", got)
	}
	for _, text := range []string{strings.Repeat("a", 5000), strings.Repeat("ä", 5000), "a" + strings.Repeat("€", 5000),
		strings.Repeat("line\n", 5000)} {
		if got := Note(text); len(got) > 1024 || len(got) < 1000 || !utf8.ValidString(got) || strings.Contains(got, "\n") {
			t.Errorf("%.20q became %d bytes, valid: %t", text, len(got), utf8.ValidString(got))
		}
	}
}
