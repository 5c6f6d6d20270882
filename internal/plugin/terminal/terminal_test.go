// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableKeepsToTheWidth(t *testing.T) {
	rows := [][]Cell{
		{Of("NAME"), Of("WHY")},
		{Of("cache-0-0"), Of(strings.Repeat("words ", 20))},
		{Of("cache-0-1")},
	}
	got := Page{Width: 60}.Table("  ", rows)
	for _, line := range strings.Split(got, "\n") {
		if length(line) > 60 || strings.HasSuffix(line, " ") {
			t.Errorf("%q is %d wide", line, length(line))
		}
	}
	if lines := strings.Split(got, "\n"); lines[0] != "  NAME       WHY" || !strings.HasPrefix(lines[2], "             words") {
		t.Errorf("got\n%s", got)
	}
}

// What moves a cursor, sets a title or turns the direction of text is never printed.
func TestWhatOthersWroteIsPrintable(t *testing.T) {
	for _, text := range []string{"\x1b]0;owned\x07", "a\rb", "a\nb\x1b[2J", "\u202egnp.exe", "\u009b31m", string([]byte{0xff, 0xfe})} {
		got := Page{Width: 80}.Table("", [][]Cell{{Of(text), Of(text)}})
		if strings.ContainsAny(strings.TrimSuffix(got, "\n"), "\x1b\x07\r\n\u202e\u009b") {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := Of(strings.Repeat("x", 1<<20)).Text; len(got) > longest {
		t.Errorf("%d bytes are shown", len(got))
	}
}

func TestColours(t *testing.T) {
	row := [][]Cell{{Of("a").In(Bad), Of("b")}}
	if got := (Page{Width: 80}).Table("", row); got != "a  b\n" {
		t.Errorf("without colours: %q", got)
	}
	if got := (Page{Width: 80, Colour: true}).Table("", row); got != "\x1b[31ma\x1b[0m  b\n" {
		t.Errorf("with colours: %q", got)
	}
}

func TestWrap(t *testing.T) {
	if diff := cmp.Diff([]string{"one two", "averylongword", "three"}, Wrap("one  two averylongword three", 8)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{""}, Wrap("", 8)); diff != "" {
		t.Error(diff)
	}
}
