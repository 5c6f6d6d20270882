// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"middleware.hc.cn/operator/test/measure"
)

// markdown is a table with a column for each number of RedisClusters.
func markdown(results []result) string {
	rows := []struct {
		title string
		value func(result) string
	}{
		{"RedisClusters, of six instances each", func(r result) string { return fmt.Sprint(r.Clusters) }},
		{"Apps besides (until they were Ready)", besides},
		{"until those that are new were Ready", func(r result) string { return fmt.Sprintf("%.0f s", r.Formed) }},
		{"at rest: processor, s a minute", func(r result) string { return fmt.Sprintf("%.2f", r.CPU) }},
		{"… allocated, MB a minute", func(r result) string { return fmt.Sprintf("%.0f", r.Allocated) }},
		{"… API requests a minute", func(r result) string { return fmt.Sprintf("%.0f", r.PerMinute) }},
		{"… the most of them", func(r result) string { return r.Requests.Most(2) }},
		{"… commands to Redis a minute", func(r result) string { return fmt.Sprintf("%.0f", r.Commands) }},
		{"… memory, MB now (most)", memories},
		{"a scrape: series (of instances)", ofScrapes(func(s *scraped) string { return fmt.Sprintf("%d (%d)", s.Series, s.OfInstances) })},
		{"… kB (compressed)",
			ofScrapes(func(s *scraped) string {
				return fmt.Sprintf("%.0f (%.0f)", float64(s.Bytes)/1e3, float64(s.Compressed)/1e3)
			})},
		{"… processor, ms (compressed)",
			ofScrapes(func(s *scraped) string { return fmt.Sprintf("%.0f (%.0f)", 1e3*s.CPU, 1e3*s.CPUCompressed) })},
		{"… compressed takes, p50 / p99", ofScrapes(func(s *scraped) string { return spread(s.Seconds) })},
		{"at rest and scraped: processor, s a minute (times that of not scraped)", ofScrapes(intervals)},
		{"restart until all instances were asked (processor)",
			func(r result) string { return fmt.Sprintf("%.1f s (%.1f s)", r.Restarted, r.RestartedCPU) }},
		{"a lost master is in the status after, p50 / p99", func(r result) string { return spread(r.Noticed) }},
		{"… while a namespace makes ten changes a second", func(r result) string { return spread(r.NoticedFlooded) }},
		{"a change of an App is carried out after, p50 / p99", func(r result) string { return spread(r.AppsChanged) }},
		{"… while a namespace makes ten changes a second", func(r result) string { return spread(r.AppsChangedFlooded) }},
	}
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + row.title)
		for _, r := range results {
			b.WriteString(" | " + row.value(r))
		}
		b.WriteString(" |\n")
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|---", len(results)) + "|\n")
		}
	}
	return b.String()
}

// memories are those of the replicas.
func memories(r result) string {
	each := make([]string, len(r.Memory))
	for i, m := range r.Memory {
		each[i] = fmt.Sprintf("%.0f (%.0f)", m.Own+m.File, m.Peak)
	}
	return strings.Join(each, ", ")
}

func besides(r result) string {
	if r.Apps == 0 {
		return "—"
	}
	return fmt.Sprintf("%d (%.0f s)", r.Apps, r.Settled)
}

// ofScrapes reads what scrapes cost.
func ofScrapes(value func(*scraped) string) func(result) string {
	return func(r result) string {
		if r.Scraped == nil {
			return "—"
		}
		return value(r.Scraped)
	}
}

func intervals(s *scraped) string {
	all := make([]string, len(s.Every))
	for i, every := range s.Every {
		all[i] = fmt.Sprintf("every %.0f s: %.2f (%.2f ×)", every.Seconds, every.CPU, every.Ratio)
	}
	return strings.Join(all, ", ")
}

// plotOf draws what grows with the number of RedisClusters.
func plotOf(results []result) measure.Plot {
	curve := func(name string, value func(result) float64) measure.Curve {
		c := measure.Curve{Name: name}
		for _, r := range results {
			if y := value(r); y > 0 { // else it was not measured
				c.Points = append(c.Points, measure.Point{X: float64(r.Clusters), Value: y})
			}
		}
		return c
	}
	panel := func(title string, curves ...measure.Curve) measure.Panel {
		return measure.Panel{Title: title, Curves: curves}
	}
	p99 := func(of func(result) []float64) func(result) float64 {
		return func(r result) float64 { return measure.Distribute(of(r), 0).P99 }
	}
	panels := []measure.Panel{
		panel("at rest: processor, seconds a minute", curve("", func(r result) float64 { return r.CPU })),
		panel("memory, MB", curve("", func(r result) (sum float64) {
			for _, m := range r.Memory {
				sum += m.Own + m.File
			}
			return sum
		})),
		panel("restart until all instances were asked, seconds", curve("", func(r result) float64 { return r.Restarted })),
	}
	noticed := curve("all else at rest", p99(func(r result) []float64 { return r.Noticed }))
	flooded := curve("a namespace makes ten changes a second", p99(func(r result) []float64 { return r.NoticedFlooded }))
	panels = append(panels, panel("a lost master is in the status after, seconds, p99", noticed, flooded))
	return measure.Plot{Axis: "RedisClusters", Dots: true, Panels: panels}
}

// spread is the middle and the 99th percentile of seconds.
func spread(seconds []float64) string {
	if len(seconds) == 0 {
		return "—"
	}
	d := measure.Distribute(seconds, 0)
	return fmt.Sprintf("%.2f / %.2f s", d.P50, d.P99)
}

func write(path string, results []result) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}
