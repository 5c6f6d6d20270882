// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/chartkind"
)

func child(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestCronTabStatus(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 2, 30, 0, time.UTC)
	cronJob := `{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, status: {lastScheduleTime: "2026-11-21T10:00:00Z", active: [{name: c-1}]}}`
	tests := []struct {
		name     string
		spec     map[string]any
		children []string
		want     map[string]any
	}{
		{"not yet made", map[string]any{"cronSpec": "*/5 * * * *"}, nil,
			map[string]any{"lastRunTime": nil, "nextRunTime": "2026-11-21T10:05:00Z", "active": nil}},
		{"has run", map[string]any{"cronSpec": "*/5 * * * *"}, []string{cronJob},
			map[string]any{"lastRunTime": "2026-11-21T10:00:00Z", "nextRunTime": "2026-11-21T10:05:00Z", "active": int64(1)}},
		{"in its time zone", map[string]any{"cronSpec": "30 6 * * 1-5", "timeZone": "Asia/Shanghai"}, nil,
			map[string]any{"lastRunTime": nil, "nextRunTime": "2026-11-22T22:30:00Z", "active": nil}},
		{"suspended", map[string]any{"cronSpec": "@hourly", "suspend": true}, []string{cronJob},
			map[string]any{"lastRunTime": "2026-11-21T10:00:00Z", "nextRunTime": nil, "active": int64(1)}},
		{"refused", map[string]any{"cronSpec": "@every 1m"}, nil,
			map[string]any{"lastRunTime": nil, "nextRunTime": nil, "active": nil}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var children []*unstructured.Unstructured
			for _, text := range tt.children {
				children = append(children, child(t, text))
			}
			object := newObject("CronTab", "c", tt.spec)
			got, _ := chartkind.CronTabStatus(object, children, now)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			later, _ := chartkind.CronTabStatus(object, children, now.Add(2*time.Minute))
			if diff := cmp.Diff(got, later); diff != "" {
				t.Errorf("between two runs the status must not change:\n%s", diff)
			}
		})
	}
}

func TestFooBarStatus(t *testing.T) {
	tests := []struct {
		name                          string
		jobs                          []string
		completions, job              any
		complete, failed, whyComplete string
	}{
		{"no Job", nil, nil, nil, "False", "False", "NotStarted"},
		{"running", []string{`{apiVersion: batch/v1, kind: Job, metadata: {name: f-1}, spec: {completions: 1}}`},
			"0/1", "f-1", "False", "False", "Running"},
		{"complete",
			[]string{`{apiVersion: batch/v1, kind: Job, metadata: {name: f-1}, status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True", reason: CompletionsReached}]}}`},
			"1/1", "f-1", "True", "False", "CompletionsReached"},
		{"failed", []string{
			`{apiVersion: batch/v1, kind: Job, metadata: {name: f-1}, status: {failed: 4, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`},
			"0/1", "f-1", "False", "True", "Finished"},
		{"the newest counts", []string{
			`{apiVersion: batch/v1, kind: Job, metadata: {name: f-old, creationTimestamp: "2026-01-01T00:00:00Z"}, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: f-new, creationTimestamp: "2026-01-02T00:00:00Z"}}`},
			"0/1", "f-new", "False", "False", "Running"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var children []*unstructured.Unstructured
			for _, text := range tt.jobs {
				children = append(children, child(t, text))
			}
			fields, conditions := chartkind.FooBarStatus(newObject("FooBar", "f", nil), children, time.Time{})
			if diff := cmp.Diff(map[string]any{"completions": tt.completions, "jobName": tt.job}, fields); diff != "" {
				t.Error(diff)
			}
			got := []string{conditions[0].Type, string(conditions[0].Status), conditions[0].Reason, conditions[1].Type, string(conditions[1].Status)}
			if diff := cmp.Diff([]string{"Complete", tt.complete, tt.whyComplete, "Failed", tt.failed}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAppStatus(t *testing.T) {
	deployment :=
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {x: "y"}}}, status: {replicas: 3, readyReplicas: 2}}`
	canary := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a-canary}, status: {replicas: 1, readyReplicas: 1}}`
	tests := []struct {
		name     string
		children []string
		want     map[string]any
	}{
		{"nothing yet", nil, map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": nil}},
		{"canary pods do not count", []string{canary, deployment},
			map[string]any{"replicas": int64(3), "readyReplicas": int64(2), "selector": "x=y", "url": nil}},
		{"Service", []string{`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {ports: [{name: http, port: 80}]}}`},
			map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": "http://a.default.svc"}},
		{"other port",
			[]string{`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {ports: [{name: grpc, port: 9090, protocol: TCP}]}}`},
			map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": "tcp://a.default.svc:9090"}},
		{"load balancer",
			[]string{`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {ports: [{name: https, port: 8443}]}, status: {loadBalancer: {ingress: [{ip: "fd00::1"}]}}}`},
			map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": "https://[fd00::1]:8443"}},
		{"HTTPRoute", []string{
			`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {ports: [{name: http, port: 80}]}}`,
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {rules: [{host: old.example.com}]}}`,
			`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a}, spec: {hostnames: [a.example.com]}}`},
			map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": "http://a.example.com"}},
		{"Ingress", []string{
			`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: default}, spec: {ports: [{name: http, port: 80}]}}`,
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {tls: [{secretName: s}], rules: [{host: a.example.com, http: {paths: [{path: /shop/}]}}]}}`},
			map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": "https://a.example.com/shop"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var children []*unstructured.Unstructured
			for _, text := range tt.children {
				children = append(children, child(t, text))
			}
			got, _ := chartkind.AppStatus(newObject("App", "a", nil), children, time.Time{})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAppAwaits: only an App that names a Gateway, and is reached from outside, waits for the Gateway API.
func TestAppAwaits(t *testing.T) {
	route := []string{"gateway.networking.k8s.io/v1/HTTPRoute"}
	gateway := map[string]any{"name": "public"}
	for _, tt := range []struct {
		name    string
		ingress map[string]any
		want    []string
	}{
		{"no Ingress", nil, nil},
		{"an Ingress", map[string]any{"enabled": true, "host": "a.b"}, nil},
		{"a Gateway", map[string]any{"enabled": true, "host": "a.b", "gateway": gateway}, route},
		{"switched off", map[string]any{"enabled": false, "gateway": gateway}, nil},
	} {
		spec := map[string]any{"image": "b:1"}
		if tt.ingress != nil {
			spec["ingress"] = tt.ingress
		}
		if diff := cmp.Diff(tt.want, chartkind.AppAwaits(newObject("App", "a", spec))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
