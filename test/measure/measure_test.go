// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
	if want := (Memory{Peak: 3.072, Own: 2.048, File: 0.512}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := parseMemory("Name:\tkthreadd\n"); err == nil {
		t.Error("a status without memory is read without an error")
	}
}

func TestParseAllocations(t *testing.T) {
	const text = "# TYPE go_memstats_alloc_bytes_total counter\ngo_memstats_alloc_bytes_total 1.5e+06\ngo_memstats_alloc_bytes 3\ngo_memstats_mallocs_total 42\n"
	got, err := parseAllocations(strings.NewReader(text))
	if err != nil || got != (Allocations{Bytes: 1.5e6, Objects: 42}) {
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
	log := &AuditLog{Path: filepath.Join(t.TempDir(), "audit.log")}
	if err := os.WriteFile(log.Path, []byte(auditLines), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := log.Read()
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC)
	got := Count(events, "a", from, from.Add(2*time.Second))
	want := Requests{Total: 3, Watches: 1, Leases: 1, By: map[string]int{"patch webs.g/status": 2, "get (discovery)": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := want.Most(1); got != "patch webs.g/status 2" {
		t.Errorf("the most frequent is %q", got)
	}

	// The rest of a line that was half written is read with the next ones, and nothing twice.
	log.Forget()
	file, err := os.OpenFile(log.Path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("Complete\",\"verb\":\"list\",\"user\":{\"username\":\"a\"}}\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if events, err = log.Read(); err != nil || len(events) != 1 || events[0].Verb != "list" {
		t.Errorf("got %v, %v", events, err)
	}
}

func TestDistribute(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	tests := map[string]struct {
		seconds []float64
		never   int
		want    Distribution
	}{
		"nothing was done":       {never: 2, want: Distribution{Never: 2}},
		"one":                    {seconds: []float64{3}, want: Distribution{Count: 1, P50: 3, P99: 3, Max: 3}},
		"nearest rank, unsorted": {seconds: hundred, want: Distribution{Count: 100, P50: 50, P99: 99, Max: 100}},
		"the slowest of few":     {seconds: []float64{1, 9, 2}, never: 1, want: Distribution{Count: 3, P50: 2, P99: 9, Max: 9, Never: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Distribute(test.seconds, test.never)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
