// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"strings"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// mostListed is how many lines one list has.
const mostListed = 20

// Text is the forecast on a page.
func (f Forecast) Text(page terminal.Page) string {
	page = page.Sized()
	var b strings.Builder
	verdict, style := "changes", terminal.Note
	switch {
	case len(f.Refusals) > 0:
		verdict, style = "is refused", terminal.Bad
	case f.New:
		verdict, style = "is made", terminal.Good
	case f.nothing():
		verdict, style = "stays as it is", terminal.Good
	}
	b.WriteString(page.Paint(f.Kind+" "+terminal.Clean(f.Namespace+"/"+f.Name), terminal.Head) + "  " + page.Paint(verdict, style) + "\n")
	section := func(title string, style terminal.Style, lines []string) {
		if len(lines) > 0 {
			b.WriteString("\n" + page.Paint(title, terminal.Head) + "\n" + listed(page, lines, style))
		}
	}
	section("Refused", terminal.Bad, f.Refusals)
	section("Warnings", terminal.Warn, f.Warnings)
	if !f.New {
		section("Fields", terminal.Plain, lines(f.Fields))
	}
	section("Instances that come", terminal.Good, joined(f.Added))
	section("Instances that go, when they hold nothing any more", terminal.Warn, joined(f.Removed))
	restarts := "Instances that restart, one at a time, replicas first"
	if f.OnDelete {
		restarts = "Instances that you restart (updateStrategy OnDelete), replicas first"
	}
	section(restarts, terminal.Warn, joined(f.Restarts))
	section(f.movesTitle(), terminal.Plain, f.moveLines())
	section("Settings that change on running instances", terminal.Plain, lines(f.Live))
	section("Other objects", terminal.Plain, f.Objects)
	section("Notes", terminal.Note, f.Notes)
	b.WriteString("\n" + page.Paint("Nothing was written.", terminal.Faint) + "\n")
	return b.String()
}

func (f Forecast) nothing() bool {
	return len(f.Fields)+len(f.Moves)+len(f.Added)+len(f.Removed)+len(f.Restarts)+len(f.Live)+len(f.Objects) == 0
}

func (f Forecast) movesTitle() string {
	n := 0
	for _, move := range f.Moves {
		n += move.Count
	}
	return fmt.Sprintf("Slots that move: %d", n)
}

func (f Forecast) moveLines() []string {
	var all []string
	for _, move := range f.Moves {
		all = append(all, fmt.Sprintf("%d from %s to %s: %s", move.Count, move.From, move.To, move.Slots))
	}
	return all
}

func lines(fields []Field) []string {
	var all []string
	for _, field := range fields {
		was, is := field.Before, field.After
		if was == "" {
			was = "(not set)"
		}
		if is == "" {
			is = "(not set)"
		}
		all = append(all, field.Path+": "+was+" → "+is)
	}
	return all
}

// joined is a list of names on one line.
func joined(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))}
}

func listed(page terminal.Page, lines []string, style terminal.Style) string {
	var b strings.Builder
	for i, line := range lines {
		if i == mostListed {
			b.WriteString(page.Paragraph("  ", fmt.Sprintf("and %d more (-o json has all)", len(lines)-i), terminal.Faint))
			break
		}
		b.WriteString(page.Paragraph("  ", terminal.Clean(line), style))
	}
	return b.String()
}
