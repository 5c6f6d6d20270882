// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package excerpt makes text that others wrote fit to be repeated in a status, an event, a condition or a log.
package excerpt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of is text on one line, of printable characters and of no more than most bytes: white space becomes a blank, other
// characters that are not printed become a question mark, and the end is cut off and marked with an ellipsis. Text that is
// fit already is returned as it is.
func Of(text string, most int) string {
	if len(text) <= most && !strings.ContainsFunc(text, unfit) {
		return strings.Clone(text)
	}
	const ellipsis = "…"
	var b strings.Builder
	b.Grow(min(len(text), most))
	blank, end := false, 0 // end is where the ellipsis still fits
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			blank = b.Len() > 0
			continue
		case unfit(r):
			r = '?'
		}
		size := utf8.RuneLen(r)
		if blank {
			size++
		}
		if b.Len()+size > most {
			return b.String()[:end] + ellipsis
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
		if b.Len()+len(ellipsis) <= most {
			end = b.Len()
		}
	}
	return b.String()
}

// unfit reports whether a character does not print as itself on one line. Marks that turn the direction of text are not
// printable, and neither is what is no UTF-8.
func unfit(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
