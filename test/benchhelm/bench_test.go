// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{2: {9, 1, 2}, 1.5: {2, 1}, 4: {4}} {
		if got := median(values); got != want {
			t.Errorf("median of %v is %v, want %v", values, got, want)
		}
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

// The least client writes what settles a custom resource.
func TestWrites(t *testing.T) {
	web := newWeb("ns", "web-1", firstText)
	for name, want := range map[string]int{sevenWrites: 7, fiveWrites: 5} {
		w := &writer{namespace: "ns", seven: name == sevenWrites, record: "x"}
		list := w.writes(web)
		if len(list) != want {
			t.Errorf("%s are %d", name, len(list))
		}
		for _, one := range list {
			if body := (map[string]any{}); json.Unmarshal([]byte(one.body), &body) != nil {
				t.Errorf("%s: not JSON: %s", name, one.body)
			} else if one.path == "/apis/apps/v1/namespaces/ns/deployments/web-1?fieldManager=writer&force=true" &&
				textOf(&unstructured.Unstructured{Object: body}) != firstText {
				t.Errorf("the Deployment is %s", one.body)
			} else if strings.HasSuffix(one.path, "/status") {
				web.Object["status"] = body["status"]
			}
		}
		if !deployed(web) {
			t.Errorf("%s do not settle it", name)
		}
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
