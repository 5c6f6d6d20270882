// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/test/measure"
)

// report is everything that was measured.
type report struct {
	At      time.Time `json:"at"`
	Machine string    `json:"machine"`
	Workers int       `json:"workers"`
	Seed    int64     `json:"seed"`
	Runs    []run     `json:"runs"`
	Crashes []crashed `json:"crashes"`

	convergence time.Duration
}

func newReport(o options) *report {
	return &report{At: time.Now().UTC(), Machine: machine(), Workers: o.workers, Seed: o.seed, convergence: o.convergence}
}

// machine says what this ran on, and how busy that was: figures of a busy machine are worth less.
func machine() string {
	text := fmt.Sprintf("%d processors", runtime.NumCPU())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load average before: " + strings.Join(strings.Fields(string(load))[:3], " ")
	}
	return text
}

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// figure is a line of the table of ratios.
type figure struct {
	name   string
	format string
	of     func(run) (float64, bool)
}

// of makes a figure of a part of a run, if the part was measured.
func ofWork(part func(run) *work, value func(work, run) float64) func(run) (float64, bool) {
	return func(r run) (float64, bool) {
		w := part(r)
		if w == nil {
			return 0, false
		}
		return value(*w, r), true
	}
}

func ofDrift(part func(drifts) measure.Distribution, value func(measure.Distribution) float64) func(run) (float64, bool) {
	return func(r run) (float64, bool) {
		if r.Drift == nil {
			return 0, false
		}
		return value(part(*r.Drift)), true
	}
}

func settled(r run) *work { return r.Settle }
func updated(r run) *work { return r.Update }
func idled(r run) *work   { return r.Idle }

func seconds(w work, _ run) float64        { return w.Seconds }
func operatorCPU(w work, _ run) float64    { return w.OperatorCPU }
func apiServerCPU(w work, _ run) float64   { return w.APIServerCPU }
func allocatedMB(w work, _ run) float64    { return w.Allocated.Bytes / 1e6 }
func requestsEach(w work, r run) float64   { return float64(w.Requests.Total) / float64(r.CRs) }
func perMinute(w work, of float64) float64 { return of / w.Seconds * 60 }

func p50(d measure.Distribution) float64 { return d.P50 }
func p99(d measure.Distribution) float64 { return d.P99 }

func deletesOf(d drifts) measure.Distribution { return d.Deletes }
func editsOf(d drifts) measure.Distribution   { return d.Edits }

var figures = []figure{
	{"created to settled", "%.2f s", ofWork(settled, seconds)},
	{"… requests a custom resource", "%.1f", ofWork(settled, requestsEach)},
	{"… operator CPU", "%.2f s", ofWork(settled, operatorCPU)},
	{"… API server CPU", "%.2f s", ofWork(settled, apiServerCPU)},
	{"… allocated", "%.0f MB", ofWork(settled, allocatedMB)},
	{"… peak memory", "%.0f MB", func(r run) (float64, bool) { return r.AtSettled.Peak, r.Settle != nil }},
	{"… memory of its own then (not the program's)", "%.0f MB", func(r run) (float64, bool) { return r.AtSettled.Own, r.Settle != nil }},
	{"idle, requests a minute", "%.0f", ofWork(idled, func(w work, _ run) float64 { return perMinute(w, float64(w.Requests.Total)) })},
	{"idle, operator CPU a minute", "%.2f s", ofWork(idled, func(w work, _ run) float64 { return perMinute(w, w.OperatorCPU) })},
	{"idle, API server CPU a minute", "%.2f s", ofWork(idled, func(w work, _ run) float64 { return perMinute(w, w.APIServerCPU) })},
	{"one value changed in all", "%.2f s", ofWork(updated, seconds)},
	{"… requests a custom resource", "%.1f", ofWork(updated, requestsEach)},
	{"… operator CPU", "%.2f s", ofWork(updated, operatorCPU)},
	{"child deleted to back, p50", "%.3f s", ofDrift(deletesOf, p50)},
	{"child deleted to back, p99", "%.3f s", ofDrift(deletesOf, p99)},
	{"child edited to back, p50", "%.3f s", ofDrift(editsOf, p50)},
	{"child edited to back, p99", "%.3f s", ofDrift(editsOf, p99)},
	{"drifts never put back", "%.0f", func(r run) (float64, bool) {
		if r.Drift == nil {
			return 0, false
		}
		return float64(r.Drift.Deletes.Never + r.Drift.Edits.Never), true
	}},
	{"peak memory of all this", "%.0f MB", func(r run) (float64, bool) { return r.AtEnd.Peak, r.AtEnd.Peak > 0 }},
}

// value is a figure's median over the rounds of a contender.
func (r *report) value(f figure, contender string, crs int) (float64, bool) {
	var values []float64
	for _, one := range r.Runs {
		if one.Contender != contender || one.CRs != crs {
			continue
		}
		if value, measured := f.of(one); measured {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	return median(values), true
}

// median is the middle value, of an even number of values the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// markdown is the report as tables.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s. %d workers each, helm-operator's period is one minute. Medians of the rounds.\n", r.At.Format(time.DateTime),
		r.Machine, r.Workers)
	var sizes []int
	for _, one := range r.Runs {
		if !slices.Contains(sizes, one.CRs) {
			sizes = append(sizes, one.CRs)
		}
	}
	for _, size := range sizes {
		b.WriteString("\n" + r.table(size))
	}
	if len(r.Crashes) > 0 {
		b.WriteString("\n" + r.crashTable())
	}
	b.WriteString("\n" + r.requestTable())
	return b.String()
}

// table compares all contenders with one number of custom resources.
func (r *report) table(size int) string {
	var columns []string
	for _, one := range r.Runs {
		if one.CRs == size && !slices.Contains(columns, one.Contender) {
			columns = append(columns, one.Contender)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %d custom resources | ratio | %s |\n|---|---|%s\n", size, strings.Join(columns, " | "),
		strings.Repeat("---|", len(columns)))
	for _, f := range figures {
		var cells []string
		some := false
		for _, column := range columns {
			value, measured := r.value(f, column, size)
			some = some || measured
			cells = append(cells, cell(f.format, value, measured))
		}
		if some {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, r.ratio(f, size), strings.Join(cells, " | "))
		}
	}
	return b.String()
}

func cell(format string, value float64, measured bool) string {
	if !measured {
		return "–"
	}
	return fmt.Sprintf(format, value)
}

// ratio is helm-operator's figure divided by ours.
func (r *report) ratio(f figure, size int) string {
	mine, measured := r.value(f, ours, size)
	other, otherMeasured := r.value(f, theirs, size)
	switch {
	case !measured || !otherMeasured:
		return "–"
	case mine == 0 && other == 0:
		return "1 ×"
	case mine == 0:
		return "∞"
	}
	return fmt.Sprintf("%.1f ×", other/mine)
}

func (r *report) crashTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Killed (SIGKILL) while installing, seed %d; %v to converge after the restart.\n\n", r.Seed, r.convergence)
	b.WriteString("| killed when | operator | converged | after | stuck |\n|---|---|---|---|---|\n")
	for _, c := range r.Crashes {
		fmt.Fprintf(&b, "| %d of %d settled | %s | %d of %d | %.1f s | %s |\n", c.Settled, c.CRs, c.Contender, c.Converged, c.CRs, c.Seconds,
			stuck(c.Stuck))
	}
	return b.String()
}

// stuck lists states of releases: "pending-install 4".
func stuck(states map[string]int) string {
	var list []string
	for state, n := range states {
		list = append(list, fmt.Sprintf("%s %d", state, n))
	}
	slices.Sort(list)
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// requestTable tells what the requests of each run were.
func (r *report) requestTable() string {
	var b strings.Builder
	b.WriteString("| requests | custom resources | round | all | watches | leases | most |\n|---|---|---|---|---|---|---|\n")
	for _, one := range r.Runs {
		for _, part := range []struct {
			name string
			*work
		}{{"to settle", one.Settle}, {"idle", one.Idle}, {"to update", one.Update}} {
			if part.work != nil {
				fmt.Fprintf(&b, "| %s, %s | %d | %d | %d | %d | %d | %s |\n", one.Contender, part.name, one.CRs, one.Round,
					part.Requests.Total, part.Requests.Watches, part.Requests.Leases, part.Requests.Most(8))
			}
		}
	}
	return b.String()
}
