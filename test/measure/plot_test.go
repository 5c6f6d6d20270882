// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPlot(t *testing.T) {
	plot := Plot{Axis: "minutes", Unit: 60,
		Panels: []Panel{
			{Title: "shards", Curves: []Curve{{Name: "a < b", Points: []Point{{0, 3}, {60, 6}}}, {Name: "c", Points: []Point{{0, 0}, {120, 1}}}}},
			{Title: "nothing"},
			{Title: "cut off", Most: 2, Curves: []Curve{{Points: []Point{{0, 1}, {120, 7}}}}},
		},
		Marks: []Mark{{X: 60, Text: "spike"}},
	}
	drawn := plot.SVG()
	for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"a &lt; b", ">minutes<", ">spike<", `d="M44.0 96.0L400.0 36.0"`, `d="M44.0 156.0L756.0 136.0"`,
		`d="M44.0 408.0L756.0 348.0"`} {
		if !strings.Contains(drawn, part) {
			t.Errorf("no %s in:\n%s", part, drawn)
		}
	}
}

// Along the bottom are round numbers, however many there are.
func TestPlotOfManyUnits(t *testing.T) {
	for most, last := range map[float64]string{9: ">9<", 40: ">40<", 1000: ">1000<"} {
		drawn := Plot{Axis: "RedisClusters", Unit: 1, Panels: []Panel{{Curves: []Curve{{Points: []Point{{1, 1}, {most, 2}}}}}}}.SVG()
		if n := strings.Count(drawn, `text-anchor="middle"`); n < 6 || n > 14 || !strings.Contains(drawn, last) {
			t.Errorf("%g: %d labels:\n%s", most, n, drawn)
		}
	}
}

func TestScaleOfAPanel(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1: 1, 3: 4, 7: 8, 9: 10, 96: 100, 0.15: 0.2, 1300: 2000} {
		if got := (Panel{Curves: []Curve{{Points: []Point{{0, most}, {1, 0}}}}}).scale(); got < want*0.999 || got > want*1.001 {
			t.Errorf("%g: %g, want %g", most, got, want)
		}
	}
}
