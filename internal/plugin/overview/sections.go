// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// next is what the operator does, and what is under way.
func (c Cluster) next(page terminal.Page) string {
	var b strings.Builder
	if c.Plan != nil {
		line := c.Plan.Step
		if c.Plan.Reason != "" {
			line += ": " + c.Plan.Reason
		}
		b.WriteString(page.Paragraph("  next    ", terminal.Clean(line), terminal.Plain))
		if c.Plan.BlockedBy != "" {
			b.WriteString(page.Paragraph("  held by ", terminal.Clean(c.Plan.BlockedBy), terminal.Warn))
		}
		b.WriteString(listed(page, "  move    ", c.Plan.Moves))
		b.WriteString(listed(page, "  setting ", c.Plan.Settings))
	}
	for _, work := range c.Work {
		text := work.Message
		if work.Percent != nil {
			text = fmt.Sprintf("%d%%, %s", *work.Percent, text)
		}
		b.WriteString(page.Paragraph("  "+work.What+strings.Repeat(" ", max(8-len(work.What), 1)), terminal.Clean(text), terminal.Note))
	}
	if b.Len() == 0 {
		return ""
	}
	return page.Paint("Plan", terminal.Head) + "\n" + b.String()
}

// mostListed is how many lines one list has.
const mostListed = 10

// listed is a list, one line each, with what there is more of in the last.
func listed(page terminal.Page, head string, lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i == mostListed {
			b.WriteString(page.Paragraph(head, fmt.Sprintf("and %d more (-o json has all)", len(lines)-i), terminal.Faint))
			break
		}
		b.WriteString(page.Paragraph(head, terminal.Clean(line), terminal.Plain))
	}
	return b.String()
}

// problems are what is wrong, and what to type.
func problems(page terminal.Page, findings []Finding) string {
	if len(findings) == 0 {
		return page.Paint("Nothing is wrong", terminal.Good) + "\n"
	}
	styles := map[Severity]terminal.Style{Error: terminal.Bad, Warning: terminal.Warn, Info: terminal.Note}
	var b strings.Builder
	b.WriteString(page.Paint("What is wrong, and what to type", terminal.Head) + "\n")
	for i, f := range findings {
		if i == 2*mostListed {
			b.WriteString(page.Paragraph("  ", fmt.Sprintf("and %d more (-o json has all)", len(findings)-i), terminal.Faint))
			break
		}
		b.WriteString(page.Paragraph(fmt.Sprintf("  %-8s", f.Severity), terminal.Clean(f.Message), styles[f.Severity]))
		if f.Type != "" {
			b.WriteString("          $ " + terminal.Clean(f.Type) + "\n") // in one piece, to be copied
		}
	}
	return b.String()
}

func (c Cluster) history(page terminal.Page, now time.Time) string {
	if len(c.Events) == 0 {
		return ""
	}
	var rows [][]terminal.Cell
	for _, e := range c.Events {
		reason := terminal.Of(e.Reason)
		if e.Warning {
			reason.Style = terminal.Warn
		}
		message := e.Message
		if e.Count > 1 {
			message += fmt.Sprintf(" (%d times)", e.Count)
		}
		object := e.Object
		if own := c.Kind + " " + c.Name; object == own {
			object = c.Name
		}
		rows = append(rows, []terminal.Cell{terminal.Of(age(e.Last, now)), terminal.Of(object), reason, terminal.Of(message)})
	}
	return page.Paint("Events", terminal.Head) + "\n" + page.Table("  ", rows)
}

// unread is what could not be read, with the right that it takes.
func unread(page terminal.Page, list []Unread) string {
	var b strings.Builder
	for _, u := range list {
		b.WriteString(page.Paragraph("not shown: ", terminal.Clean(u.What+": "+u.Why), terminal.Faint))
	}
	return b.String()
}
