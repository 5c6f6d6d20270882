// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/plugin/terminal"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Text is the cluster on a page.
func (c Cluster) Text(page terminal.Page, now time.Time) string {
	page = page.Sized()
	sections := []string{c.heading(page, now), c.tree(page), c.next(page), problems(page, c.Findings), c.history(page, now),
		unread(page, c.Unread)}
	var b strings.Builder
	for _, section := range sections {
		if section == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(section)
	}
	return b.String()
}

func phaseStyle(phase string) terminal.Style {
	switch phase {
	case "Running":
		return terminal.Good
	case "Failed":
		return terminal.Bad
	case "Paused", "None":
		return terminal.Note
	}
	return terminal.Warn
}

func (c Cluster) heading(page terminal.Page, now time.Time) string {
	facts := []string{c.Ready + " ready", fmt.Sprintf("%d/%d slots", c.Slots, slots.Count)}
	if c.Ready == "" {
		facts = facts[1:]
	}
	owning := 0
	for _, shard := range c.Shards {
		if shard.Slots != "" {
			owning++
		}
	}
	facts = append([]string{count(owning, "shard")}, facts...)
	if c.Engine != "" {
		engine := c.Engine + " " + c.Version
		if c.Target != "" {
			engine += " → " + c.Target
		}
		facts = append(facts, engine)
	}
	facts = append(facts, age(c.Created, now)+" old")
	text := page.Paint(c.Kind+" "+terminal.Clean(c.Namespace+"/"+c.Name), terminal.Head) + "  " +
		page.Paint(terminal.Clean(c.Phase), phaseStyle(c.Phase)) + "\n" +
		page.Paragraph("  ", terminal.Clean(strings.Join(facts, ", ")), terminal.Plain)
	if c.Reason != "" {
		text += page.Paragraph("  ", terminal.Clean(c.Reason), terminal.Plain)
	}
	if len(c.Outside) > 0 {
		text += page.Paragraph("  ", "clients outside: "+terminal.Clean(strings.Join(c.Outside, ", ")), terminal.Plain)
	}
	if band := c.band(page); band != "" {
		text += "\n" + band
	}
	return text
}

// symbols stand for the shards in the band; those from 36 on begin again.
const symbols = "0123456789abcdefghijklmnopqrstuvwxyz"

var bandStyles = []terminal.Style{terminal.Good, terminal.Note, terminal.Warn, "35", "34"}

// band is the slots from the first to the last on one line, each part of them as the number of the shard that owns it: ! where some
// have no owner, + where several shards have some.
func (c Cluster) band(page terminal.Page) string {
	if len(c.Shards) == 0 {
		return ""
	}
	first, last := "0 ", fmt.Sprintf(" %d", slots.Count-1)
	const label = "  slots  "
	cells := page.Width - len(label) - len(first) - len(last)
	var b strings.Builder
	for i := range cells {
		part := slots.Range(uint16(i*slots.Count/cells), uint16((i+1)*slots.Count/cells-1)) //nolint:gosec // below Count
		symbol, style, rest := "!", terminal.Bad, part
		owners := 0
		for _, shard := range c.Shards {
			if here := part.Intersect(shard.owns); !here.IsEmpty() {
				owners++
				rest = rest.Subtract(here)
				symbol, style = string(symbols[int(shard.Number)%len(symbols)]), bandStyles[int(shard.Number)%len(bandStyles)]
			}
		}
		switch {
		case !rest.IsEmpty():
			symbol, style = "!", terminal.Bad
		case owners > 1:
			symbol, style = "+", terminal.Plain
		}
		b.WriteString(page.Paint(symbol, style))
	}
	return label + first + b.String() + last + "\n"
}

// tree is the shards with their instances.
func (c Cluster) tree(page terminal.Page) string {
	if len(c.Shards) == 0 {
		return ""
	}
	wide := page.Width >= 120
	head := []string{"INSTANCE", "ROLE", "STATE", "LAG", "MEMORY", "VOLUME", "NODE"}
	if wide {
		head = append(head, "ZONE", "RESTARTS", "ADDRESS")
	}
	rows := [][]terminal.Cell{heads(head)}
	for _, shard := range c.Shards {
		text := fmt.Sprintf("shard %d", shard.Number)
		rows = append(rows, []terminal.Cell{terminal.Of(text).In(terminal.Head)})
		for i, in := range shard.Instances {
			branch := "├─ "
			if i == len(shard.Instances)-1 {
				branch = "└─ "
			}
			rows = append(rows, in.row(branch, wide))
		}
	}
	table := strings.Split(page.Table("  ", rows), "\n")
	// What a shard owns may be long, and belongs to no column.
	for i, shard := range c.Shards {
		at := 1 + i
		for _, before := range c.Shards[:i] {
			at += len(before.Instances)
		}
		owns := "no slots"
		if shard.Count > 0 {
			owns = count(shard.Count, "slot") + ": " + shard.Slots
		} else if shard.Slots != "" {
			owns = "slots " + shard.Slots
		}
		head := fmt.Sprintf("shard %d", shard.Number)
		table[at] = "  " + page.Paint(head, terminal.Head) + "  " + cut(terminal.Clean(owns), page.Width-len(head)-4)
	}
	return strings.Join(table, "\n")
}

// cut is the beginning of a text that is too long.
func cut(text string, width int) string {
	if letters := []rune(text); len(letters) > width {
		return string(letters[:max(width-1, 0)]) + "…"
	}
	return text
}

func heads(names []string) []terminal.Cell {
	var row []terminal.Cell
	for _, name := range names {
		row = append(row, terminal.Of(name).In(terminal.Faint))
	}
	return row
}

func (in Instance) row(branch string, wide bool) []terminal.Cell {
	state := terminal.Of(in.State).In(terminal.Warn)
	switch in.State {
	case "Serving":
		state.Style = terminal.Good
	case "NotRunning", "ClusterDown":
		state.Style = terminal.Bad
	}
	lag := terminal.Of(cmp.Or(in.Lag, "-"))
	if in.Lag == "behind" {
		lag.Style = terminal.Bad
	}
	memory := cmp.Or(in.Memory, "-")
	if in.Limit != "" {
		memory += "/" + in.Limit
	}
	row := []terminal.Cell{{Text: branch + terminal.Clean(in.Name)}, terminal.Of(cmp.Or(in.Role, "-")), state, lag, terminal.Of(memory),
		terminal.Of(cmp.Or(in.Claim, "-")), terminal.Of(cmp.Or(in.Node, "-"))}
	if wide {
		row = append(row, terminal.Of(cmp.Or(in.Zone, "-")), terminal.Of(fmt.Sprint(in.Restarts)), terminal.Of(cmp.Or(in.Address, "-")))
	}
	return row
}
