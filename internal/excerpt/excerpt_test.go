// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package excerpt

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		most int
		want string
	}{
		"nothing":              {"", 10, ""},
		"fit":                  {"as it is", 8, "as it is"},
		"several lines":        {"one\r\n\ttwo\n", 20, "one two"},
		"control characters":   {"a\x00b\x1b[31mc", 20, "a?b?[31mc"},
		"turned around":        {"a\u202eb", 20, "a?b"},
		"no UTF-8":             {"a\xff\xfeb", 20, "a??b"},
		"too long":             {"0123456789", 8, "01234…"},
		"cut at a character":   {"0123ééé", 8, "0123…"},
		"cut at the blank":     {"01234 6789", 8, "01234…"},
		"other scripts":        {"数据 データ", 100, "数据 データ"},
		"blanks alone":         {" \n ", 10, ""},
		"blank before the end": {"01234567 ", 8, "01234567"},
	} {
		if got := Of(tt.text, tt.most); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("a\xffb\u202e\n c", 6)
	f.Add(strings.Repeat("é", 100), 20)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < len("…") || most > 1<<16 {
			return
		}
		got := Of(text, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Of(%q, %d) = %q", text, most, got)
		}
		if again := Of(got, most); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
	})
}
