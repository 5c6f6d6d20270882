// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDistribute(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	tests := map[string]struct {
		seconds []float64
		never   int
		want    distribution
	}{
		"nothing was done":       {never: 2, want: distribution{Never: 2}},
		"one":                    {seconds: []float64{3}, want: distribution{Count: 1, P50: 3, P99: 3, Max: 3}},
		"nearest rank, unsorted": {seconds: hundred, want: distribution{Count: 100, P50: 50, P99: 99, Max: 100}},
		"the slowest of few":     {seconds: []float64{1, 9, 2}, never: 1, want: distribution{Count: 3, P50: 2, P99: 9, Max: 9, Never: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, distribute(test.seconds, test.never)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{2: {9, 1, 2}, 1.5: {2, 1}, 4: {4}} {
		if got := median(values); got != want {
			t.Errorf("median of %v is %v, want %v", values, got, want)
		}
	}
}

func TestParseCPU(t *testing.T) {
	const stat = "4711 (a b) c) S 1 4711 4711 0 -1 4194560 1 2 3 4 1234 66 7 8 20 0 9 0 100 200 300"
	got, err := parseCPU(stat)
	if err != nil || got != 13 {
		t.Errorf("got %v s, %v; want 13 s", got, err)
	}
	if command, parent := parseParent(stat); command != "a b) c" || parent != 1 {
		t.Errorf("got command %q of parent %d", command, parent)
	}
	if _, err := parseCPU("4711"); err == nil {
		t.Error("half a line is read without an error")
	}
}

func TestParseMemory(t *testing.T) {
	got, err := parseMemory(
		"Name:\tmanager\nVmPeak:\t  999999 kB\nVmHWM:\t    3000 kB\nVmRSS:\t 2500 kB\nRssAnon:\t 2000 kB\nRssFile:\t 500 kB\nThreads:\t9\n")
	if want := (memory{Peak: 3.072, Own: 2.048, File: 0.512}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := parseMemory("Name:\tkthreadd\n"); err == nil {
		t.Error("a status without memory is read without an error")
	}
}

func TestParseAllocations(t *testing.T) {
	const text = "# TYPE go_memstats_alloc_bytes_total counter\ngo_memstats_alloc_bytes_total 1.5e+06\ngo_memstats_alloc_bytes 3\ngo_memstats_mallocs_total 42\n"
	got, err := parseAllocations(strings.NewReader(text))
	if err != nil || got != (allocations{Bytes: 1.5e6, Objects: 42}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseAllocations(strings.NewReader("up 1\n")); err == nil {
		t.Error("metrics without the counters are read without an error")
	}
}

// The lines are like those of an API server's audit log.
const auditLines = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"a"},"objectRef":{"resource":"webs","apiGroup":"g","subresource":"status"},"requestReceivedTimestamp":"2026-11-21T10:00:01.000000Z"}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"a"},"objectRef":{"resource":"webs","apiGroup":"g","subresource":"status"},"requestReceivedTimestamp":"2026-11-21T10:00:02.000000Z"}
{"stage":"ResponseStarted","verb":"watch","user":{"username":"a"},"objectRef":{"resource":"secrets"},"requestReceivedTimestamp":"2026-11-21T10:00:01.500000Z"}
{"stage":"ResponseComplete","verb":"watch","user":{"username":"a"},"objectRef":{"resource":"secrets"},"requestReceivedTimestamp":"2026-11-21T10:00:01.500000Z"}
{"stage":"ResponseComplete","verb":"update","user":{"username":"a"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"},"requestReceivedTimestamp":"2026-11-21T10:00:01.500000Z"}
{"stage":"ResponseComplete","verb":"get","user":{"username":"a"},"requestURI":"/apis","requestReceivedTimestamp":"2026-11-21T10:00:01.500000Z"}
{"stage":"ResponseComplete","verb":"get","user":{"username":"b"},"objectRef":{"resource":"secrets"},"requestReceivedTimestamp":"2026-11-21T10:00:01.500000Z"}
{"stage":"ResponseComplete","verb":"get","user":{"username":"a"},"objectRef":{"resource":"secrets"},"requestReceivedTimestamp":"2026-11-21T10:00:03.000000Z"}
{"stage":"Response`

func TestRequestsAreCountedFromTheAuditLog(t *testing.T) {
	log := &auditLog{path: filepath.Join(t.TempDir(), "audit.log")}
	if err := os.WriteFile(log.path, []byte(auditLines), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := log.read()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC)
	got := count(events, "a", from, from.Add(2*time.Second))
	want := requests{Total: 3, Watches: 1, Leases: 1, By: map[string]int{"patch webs.g/status": 2, "get (discovery)": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := want.most(1); got != "patch webs.g/status 2" {
		t.Errorf("the most frequent is %q", got)
	}

	// The rest of a line that was half written is read with the next ones, and nothing twice.
	log.forget()
	file, err := os.OpenFile(log.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("Complete\",\"verb\":\"list\",\"user\":{\"username\":\"a\"}}\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if events, err = log.read(); err != nil || len(events) != 1 || events[0].Verb != "list" {
		t.Errorf("got %v, %v", events, err)
	}
}

func TestSettled(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"image": image, "env": []any{map[string]any{"name": "TEXT", "value": firstText}}}},
	}}}}}
	if got := textOf(deployment); got != firstText {
		t.Errorf("the text is %q", got)
	}
	if got := textOf(&unstructured.Unstructured{Object: map[string]any{}}); got != "" {
		t.Errorf("the text of an empty Deployment is %q", got)
	}
	web := newWeb("ns", "web", firstText)
	if deployed(web) {
		t.Error("a resource without conditions is deployed")
	}
	web.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Deployed", "status": "True"}}}
	if !deployed(web) {
		t.Error("a resource with Deployed=True is not deployed")
	}
}

func TestRatios(t *testing.T) {
	runs := func(contender string, seconds ...float64) []run {
		var list []run
		for _, s := range seconds {
			list = append(list, run{Contender: contender, CRs: 200, Settle: &work{Seconds: s}})
		}
		return list
	}
	r := &report{Runs: append(runs(ours, 2, 4), runs(theirs, 30, 30)...)}
	if got := r.ratio(figures[0], 200); got != "10.0 ×" {
		t.Errorf("the ratio is %s", got)
	}
	if got := r.ratio(figures[0], 1000); got != "–" {
		t.Errorf("the ratio of nothing is %s", got)
	}
	if text := r.markdown(); !strings.Contains(text, "| created to settled | 10.0 × | 3.00 s | 30.00 s |") {
		t.Errorf("the table is\n%s", text)
	}
}

func TestProjectIsWritten(t *testing.T) {
	directory := t.TempDir()
	watches, err := writeProject(directory, "false")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(watches)
	if err != nil || !strings.Contains(string(text), "watchDependentResources: false") {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(directory, "helm-charts", "web", "Chart.yaml")); err != nil {
		t.Error(err)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	for name, err := range map[string]error{
		"an unknown contender": second(choose("somebody")),
		"no number":            second(parseSizes("200,many")),
		"nothing to settle":    second(parseSizes("0")),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
