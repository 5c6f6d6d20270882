// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const written = "../../config/grafana/"

// TestDashboardsAreWritten: what is in config is what the code makes.
func TestDashboardsAreWritten(t *testing.T) {
	for _, d := range all() {
		want, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(written + d.UID + ".json")
		if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
			t.Errorf("%s: make dashboards (%v, -want +got):\n%s", d.UID, err, diff)
		}
	}
}

// TestPanelsFit: nothing is drawn over something else, and no two dashboards or panels of a row have one name.
func TestPanelsFit(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range all() {
		if uids[d.UID] {
			t.Errorf("%s is there twice", d.UID)
		}
		uids[d.UID] = true
		cells := map[[2]int]any{}
		for _, panel := range d.panels() {
			at := panel["gridPos"].(object)
			for x := range at["w"].(int) {
				for y := range at["h"].(int) {
					cell := [2]int{at["x"].(int) + x, at["y"].(int) + y}
					if cells[cell] != nil || cell[0] >= columns {
						t.Fatalf("%s: %s is drawn at %v, where %v is", d.UID, panel["title"], cell, cells[cell])
					}
					cells[cell] = panel["title"]
				}
			}
		}
		for _, row := range d.Rows {
			titles := map[string]bool{}
			for _, panel := range row.Panels {
				if titles[panel.Title] || len(panel.Queries) == 0 {
					t.Errorf("%s: %s is there twice, or asks nothing", d.UID, panel.Title)
				}
				titles[panel.Title] = true
			}
		}
	}
}

var series = regexp.MustCompile(`(?:middleware_operator_|namespace_name)[a-z_:0-9]+`)

// TestPanelsAskForWhatThereIs: metrics of the reference, which is made from the code, and recorded sums.
func TestPanelsAskForWhatThereIs(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	reference, rules := read("../../docs/reference/metrics.md"), read("../../config/prometheus/rules.yaml")
	counted := regexp.MustCompile(`_(?:sum|count|bucket)$`)
	for _, d := range all() {
		var asked []string
		for _, row := range d.Rows {
			for _, panel := range row.Panels {
				for _, query := range panel.Queries {
					asked = append(asked, series.FindAllString(query.Expr, -1)...)
				}
			}
		}
		for _, v := range d.Variables {
			asked = append(asked, series.FindAllString(v.Series, -1)...)
		}
		for _, a := range d.Annotations {
			asked = append(asked, series.FindAllString(a.Query, -1)...)
		}
		slices.Sort(asked)
		for _, name := range slices.Compact(asked) {
			if !strings.Contains(reference, "| `"+name) && !strings.Contains(reference, "| `"+counted.ReplaceAllString(name, "")+"`") &&
				!strings.Contains(rules, "record: "+name+"\n") {
				t.Errorf("%s asks for %s", d.UID, name)
			}
		}
	}
}
