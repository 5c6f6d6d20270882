// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Plot is what was measured at the same places of one axis, such as times, in panels one above the other, and what happened where.
type Plot struct {
	// Axis says what is along the bottom, and Unit how much X one of that is, by default 1: 60 for minutes, when X are seconds.
	Axis string
	Unit float64
	// Dots shows where each point is.
	Dots   bool
	Panels []Panel
	Marks  []Mark
}

// Panel is some curves with one scale, which begins at 0.
type Panel struct {
	Title  string
	Curves []Curve
	// Most is the value at the top, at which what is larger is drawn; 0: above the largest.
	Most float64
}

// Curve is what was measured, X rising; with a name when there are several.
type Curve struct {
	Name   string
	Points []Point
}

// Point is what was measured at X.
type Point struct{ X, Value float64 }

// Mark is what happened at X.
type Mark struct {
	X    float64
	Text string
}

const (
	plotWidth, panelHeight, plotMargin = 800.0, 120.0, 44.0
	panelGap                           = 36.0
)

// curveColours can be told apart by those who see no colours well, on white.
var curveColours = []string{"#0072b2", "#d55e00", "#009e73", "#000000"}

// SVG draws the plot.
func (p Plot) SVG() string {
	var end float64
	for _, panel := range p.Panels {
		for _, curve := range panel.Curves {
			for _, point := range curve.Points {
				end = max(end, point.X)
			}
		}
	}
	unit := cmp.Or(p.Unit, 1)
	units := max(1, math.Ceil(end/unit))
	x := func(at float64) float64 { return plotMargin + at/unit/units*(plotWidth-2*plotMargin) }
	height := float64(len(p.Panels))*(panelHeight+panelGap) + plotMargin
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text := func(x, y float64, anchor, colour, text string) {
		line(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, colour, html.EscapeString(text))
	}
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">`, plotWidth, height)
	line(`<rect width="100%%" height="100%%" fill="white"/>`)
	for _, mark := range p.Marks {
		line(`<path d="M%.1f %.1fV%.1f" stroke="#bbb" stroke-dasharray="3 3"/>`, x(mark.X), panelGap-18, height-plotMargin)
		text(x(mark.X)+3, panelGap-20, "start", "#555", mark.Text)
	}
	for i, panel := range p.Panels {
		top := panelGap + float64(i)*(panelHeight+panelGap)
		bottom := top + panelHeight
		most := panel.scale()
		y := func(at Point) float64 { return bottom - min(1, at.Value/most)*panelHeight }
		text(plotMargin, top-5, "start", "#000", panel.Title)
		for _, part := range []float64{0, 0.5, 1} {
			level := bottom - part*panelHeight
			line(`<path d="M%.1f %.1fH%.1f" stroke="#ddd"/>`, plotMargin, level, plotWidth-plotMargin)
			text(plotMargin-5, level+4, "end", "#555", fmt.Sprintf("%g", part*most))
		}
		for j, curve := range panel.Curves {
			colour := curveColours[j%len(curveColours)]
			var path strings.Builder
			for k, point := range curve.Points {
				fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(point.X), y(point))
			}
			line(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, path.String(), colour)
			for _, point := range curve.Points {
				if p.Dots {
					line(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x(point.X), y(point), colour)
				}
			}
			text(plotWidth-plotMargin, top-5-12*float64(len(panel.Curves)-1-j), "end", colour, curve.Name)
		}
	}
	step := max(1, upTo(units/12, 1, 2, 5))
	for n := 0.0; n <= units; n += step {
		text(x(unit*n), height-plotMargin+14, "middle", "#555", fmt.Sprintf("%g", n))
	}
	text(plotWidth/2, height-plotMargin+30, "middle", "#555", p.Axis)
	line(`</svg>`)
	return b.String()
}

// scale is the value at the top of the panel: the next of 1, 2, 4, 6, 8 and 10 times a power of ten that no value is above.
func (p Panel) scale() float64 {
	if p.Most > 0 {
		return p.Most
	}
	var most float64
	for _, curve := range p.Curves {
		if len(curve.Points) > 0 {
			most = max(most, slices.MaxFunc(curve.Points, func(a, b Point) int { return cmp.Compare(a.Value, b.Value) }).Value)
		}
	}
	if most <= 0 {
		return 1
	}
	return upTo(most, 1, 2, 4, 6, 8)
}

// upTo is the next of some numbers times a power of ten, or of ten times that, that a value above 0 is not above.
func upTo(value float64, times ...float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, n := range times {
		if value <= n*power {
			return n * power
		}
	}
	return 10 * power
}
