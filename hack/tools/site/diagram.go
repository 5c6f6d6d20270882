// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// fences renders fenced blocks: flowcharts in Mermaid's notation, as far as the pages use it, become pictures; what is not understood
// is shown as it is written.
func fences(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	block := node.(*ast.FencedCodeBlock)
	if !entering {
		return ast.WalkContinue, nil
	}
	language, code := string(block.Language(source)), string(block.Lines().Value(source))
	if language == "mermaid" {
		if c := flowchart(code); c != nil {
			_, err := w.WriteString(c.svg())
			return ast.WalkContinue, err
		}
	}
	_, err := fmt.Fprintf(w, "<pre tabindex=\"0\"><code class=\"language-%s\">%s</code></pre>\n", html.EscapeString(language),
		html.EscapeString(code))
	return ast.WalkContinue, err
}

// chart is a flowchart: from the left to the right in rows of four, or from the top to the bottom by rank.
type chart struct {
	down  bool
	nodes []*box
	boxes []*box // the subgraphs
	edges []edge
}

type box struct {
	id         string
	lines      []string
	of         *box // the subgraph that it is in
	rank       int
	x, y, w, h float64
}

type edge struct {
	from, to *box
	label    string
	dotted   bool
}

var (
	arrow    = regexp.MustCompile(`\s*(-->|-\. "([^"]*)" \.->|-\.->)\s*`)
	boxText  = regexp.MustCompile(`^(\w+)(?:\(?\[{1,2}"([^"]*)"\]{1,2}\)?)?$`)
	subgraph = regexp.MustCompile(`(?m)^\s*subgraph (\w+)\["([^"]*)"\]$`)
)

// flowchart is nil if there is something in the text that is not understood.
func flowchart(text string) *chart {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] != "flowchart LR" && lines[0] != "flowchart TB" {
		return nil
	}
	c := &chart{down: lines[0] == "flowchart TB"}
	for _, m := range subgraph.FindAllStringSubmatch(text, -1) { // arrows may lead to one before it comes
		c.boxes = append(c.boxes, &box{id: m[1], lines: strings.SplitN(m[2], ": ", 2)})
	}
	var inside *box
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if m := subgraph.FindStringSubmatch(line); m != nil {
			inside = c.box(m[1], "", nil)
		} else if line == "end" {
			inside = nil
		} else if !c.statement(line, inside) {
			return nil
		}
	}
	return c
}

// statement is boxes with arrows between them.
func (c *chart) statement(line string, inside *box) bool {
	var before []*box
	arrows := arrow.FindAllStringSubmatch(line, -1)
	for i, side := range arrow.Split(line, -1) {
		var these []*box
		for name := range strings.SplitSeq(side, " & ") {
			m := boxText.FindStringSubmatch(strings.TrimSpace(name))
			if m == nil {
				return false
			}
			these = append(these, c.box(m[1], m[2], inside))
		}
		for _, from := range before {
			for n, to := range these {
				e := edge{from: from, to: to, dotted: strings.HasPrefix(arrows[i-1][1], "-.")}
				if n == 0 {
					e.label = arrows[i-1][2]
				}
				c.edges = append(c.edges, e)
			}
		}
		before = these
	}
	return true
}

func (c *chart) box(id, text string, inside *box) *box {
	for _, b := range append(slices.Clone(c.nodes), c.boxes...) {
		if b.id == id {
			return b
		}
	}
	if text == "" {
		text = id
	}
	b := &box{id: id, lines: strings.Split(text, "<br/>"), of: inside}
	c.nodes = append(c.nodes, b)
	return b
}

const (
	boxWide, boxHigh = 166.0, 62.0
	gapWide, gapHigh = 34.0, 62.0
	titleHigh        = 44.0 // of a subgraph
	perRow           = 4
)

func (c *chart) place() (wide, high float64) {
	if !c.down {
		for i, b := range c.nodes {
			b.x, b.y = float64(i%perRow)*(boxWide+gapWide), float64(i/perRow)*(boxHigh+gapHigh)
			b.w, b.h = boxWide, boxHigh
			wide, high = max(wide, b.x+b.w), max(high, b.y+b.h)
		}
		return wide, high
	}
	ranks := c.ranks()
	for _, row := range ranks {
		wide = max(wide, float64(max(len(row), len(c.boxes)))*(boxWide+gapWide))
	}
	for _, row := range ranks {
		if row[0].of != nil && row[0].of.w == 0 {
			high += titleHigh
		}
		bottom := high
		for i, b := range row {
			column, columns := i, len(row)
			if b.of != nil {
				column, columns = slices.Index(c.boxes, b.of), len(c.boxes)
			}
			b.w, b.h = boxWide, boxHigh-14
			b.x, b.y = (float64(column)+0.5)*wide/float64(columns)-b.w/2, high
			bottom = max(bottom, b.y+b.h)
			if o := b.of; o != nil {
				if o.w == 0 {
					o.x, o.y, o.w = b.x-12, b.y-titleHigh, b.w+24
				}
				o.h = b.y + b.h + 12 - o.y
				bottom = max(bottom, o.y+o.h)
			}
		}
		high = bottom + gapHigh - 22
	}
	return wide, high - gapHigh + 22
}

// ranks are the boxes row by row: below all that leads to them, and what nothing leads to as low as it may be.
func (c *chart) ranks() [][]*box {
	first := func(b *box) *box {
		for _, n := range c.nodes {
			if n.of == b {
				return n
			}
		}
		return b
	}
	led := map[*box]bool{}
	for range c.nodes {
		for _, e := range c.edges {
			to := first(e.to)
			led[to] = true
			to.rank = max(to.rank, min(first(e.from).rank+1, len(c.nodes)))
		}
	}
	for _, n := range c.nodes {
		lowest := len(c.nodes)
		for _, e := range c.edges {
			if e.from == n {
				lowest = min(lowest, first(e.to).rank-1)
			}
		}
		if !led[n] && lowest < len(c.nodes) {
			n.rank = max(n.rank, lowest)
		}
	}
	var rows [][]*box
	for _, n := range c.nodes {
		for len(rows) <= n.rank {
			rows = append(rows, nil)
		}
		rows[n.rank] = append(rows[n.rank], n)
	}
	return rows
}

func (c *chart) svg() string {
	wide, high := c.place()
	var b strings.Builder
	fmt.Fprintf(&b, `<div class="diagram" tabindex="0"><svg role="img" aria-label="%s" viewBox="-2 -2 %.0f %.0f" width="%.0f">`+"\n",
		html.EscapeString(c.words()), wide+4, high+4, wide+4)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">` +
		`<path d="M0 0L8 4L0 8z"/></marker></defs>` + "\n")
	for _, o := range c.boxes {
		fmt.Fprintf(&b, `<rect class="group" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="6"/>`+"\n", o.x, o.y, o.w, o.h)
		for i, line := range o.lines {
			fmt.Fprintf(&b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", o.x+o.w/2, o.y+17+15*float64(i), html.EscapeString(line))
		}
	}
	for _, e := range c.edges {
		fmt.Fprintf(&b, `<path class="edge" %sd="%s" marker-end="url(#tip)"/>`+"\n",
			map[bool]string{true: `stroke-dasharray="4 3" `}[e.dotted], c.way(e))
	}
	for _, n := range c.nodes {
		fmt.Fprintf(&b, `<rect class="box" x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="6"/>`+"\n", n.x, n.y, n.w, n.h)
		for i, line := range n.lines {
			y := n.y + n.h/2 + 4.5 + 15*(float64(i)-float64(len(n.lines)-1)/2)
			fmt.Fprintf(&b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", n.x+n.w/2, y, html.EscapeString(line))
		}
	}
	for _, e := range c.edges {
		if e.label != "" {
			top, bottom := e.from, e.to
			if top.y > bottom.y {
				top, bottom = bottom, top
			}
			x := max((top.x+top.w/2+bottom.x+bottom.w/2)/2, 3.2*float64(len(e.label)))
			fmt.Fprintf(&b, `<text class="label" x="%.0f" y="%.0f">%s</text>`+"\n", x, (top.y+top.h+bottom.y)/2+4, html.EscapeString(e.label))
		}
	}
	b.WriteString("</svg></div>\n")
	return b.String()
}

// way is the line of an arrow, from border to border.
func (c *chart) way(e edge) string {
	f, t := e.from, e.to
	fx, tx := f.x+f.w/2, t.x+t.w/2
	switch {
	case c.down && f.y < t.y:
		return fmt.Sprintf("M%.0f %.0fL%.0f %.0f", fx, f.y+f.h, tx, t.y)
	case f.y == t.y && f.x < t.x:
		return fmt.Sprintf("M%.0f %.0fH%.0f", f.x+f.w, f.y+f.h/2, t.x)
	case f.y < t.y:
		return fmt.Sprintf("M%.0f %.0fV%.0fH%.0fV%.0f", fx, f.y+f.h, t.y-gapHigh/2, tx, t.y)
	case f.y > t.y:
		return fmt.Sprintf("M%.0f %.0fV%.0fH%.0fV%.0f", fx, f.y, f.y-gapHigh/2, tx, t.y+t.h)
	default:
		return fmt.Sprintf("M%.0f %.0fV%.0fH%.0fV%.0f", fx, f.y+f.h, f.y+f.h+gapHigh/2, tx, t.y+t.h)
	}
}

// words are the chart for who cannot see it.
func (c *chart) words() string {
	var said []string
	for _, e := range c.edges {
		said = append(said, strings.Join(e.from.lines, " ")+" to "+strings.Join(e.to.lines, " "))
	}
	return strings.Join(said, "; ")
}
