// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal lays out text for people: tables and paragraphs of a given width, with colours where they are wanted. What others
// wrote (names, messages, logs) becomes printable before it is laid out.
package terminal

import (
	"slices"
	"strings"
	"unicode/utf8"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Page is where text goes. Without Colour there is nothing in it but characters that print, and line feeds.
type Page struct {
	Width  int
	Colour bool
}

// Widths that a page has at least and at most.
const narrowest, widest = 60, 400

// Sized is the page with a width that text can be laid out in.
func (p Page) Sized() Page {
	p.Width = min(max(p.Width, narrowest), widest)
	return p
}

// Style is what a piece of text means.
type Style string

// The styles, as terminals know them (SGR).
const (
	Plain Style = ""
	Good  Style = "32"
	Note  Style = "36"
	Warn  Style = "33"
	Bad   Style = "31"
	Head  Style = "1"
	Faint Style = "2"
)

// Cell is a piece of text of one line.
type Cell struct {
	Text  string
	Style Style
}

// longest is how much of one text is shown.
const longest = 1000

// Clean is what others wrote, on one line and printable.
func Clean(text string) string { return excerpt.Of(text, longest) }

// Of is a cell of text that others may have written.
func Of(text string) Cell { return Cell{Text: Clean(text)} }

// In is the cell in a style.
func (c Cell) In(style Style) Cell {
	c.Style = style
	return c
}

// Paint is text in a style, where the page has colours. The text is what this program wrote, or Clean.
func (p Page) Paint(text string, style Style) string {
	if !p.Colour || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

const gap = 2

// Table lays rows out in columns behind a margin. The last column takes what is left of the width, and its text goes on below where
// it does not fit. Rows may be of different lengths. Trailing blanks are left out.
func (p Page) Table(margin string, rows [][]Cell) string {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	widths := make([]int, columns)
	for _, row := range rows {
		for i, cell := range row {
			if i < columns-1 {
				widths[i] = max(widths[i], length(cell.Text))
			}
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(p.row(margin, widths, row))
	}
	return b.String()
}

func (p Page) row(margin string, widths []int, row []Cell) string {
	line, used, painted := margin, length(margin), margin
	var below []string
	last := len(widths) - 1
	for i, cell := range row {
		text := cell.Text
		if i == last {
			lines := Wrap(text, max(p.Width-used, narrowest/3))
			text, below = lines[0], lines[1:]
		}
		painted += p.Paint(text, cell.Style)
		line += text
		if i < last {
			blanks := strings.Repeat(" ", widths[i]-length(text)+gap)
			painted, line = painted+blanks, line+blanks
			used = length(line)
		}
	}
	text := strings.TrimRight(painted, " ") + "\n"
	for _, more := range below {
		text += strings.Repeat(" ", used) + p.Paint(more, row[last].Style) + "\n"
	}
	return text
}

// Paragraph is text in lines of the width: the first behind head, the others behind as many blanks.
func (p Page) Paragraph(head, text string, style Style) string {
	indent := length(head)
	lines := Wrap(text, max(p.Width-indent, narrowest/3))
	var b strings.Builder
	for i, line := range lines {
		if i == 0 {
			b.WriteString(strings.TrimRight(head+p.Paint(line, style), " ") + "\n")
			continue
		}
		b.WriteString(strings.Repeat(" ", indent) + p.Paint(line, style) + "\n")
	}
	return b.String()
}

// Wrap cuts text at its blanks into lines of a width, one at least. A word that is longer has a line of its own: commands and
// addresses stay whole, to be copied.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case length(line)+1+length(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return slices.Concat(lines, []string{line})
}

func length(text string) int { return utf8.RuneCountInString(text) }
