// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestEachOperatorIsMissed: of several operators the alert fires for each that does not answer, in Prometheus' own engine, and says which.
func TestEachOperatorIsMissed(t *testing.T) {
	const on = "metrics: {prometheusRule: {enabled: true}}\n"
	const two = on + "selector: tier!=gold\noperators: [{name: gold, selector: tier=gold, replicas: 2}]"
	type samples = map[string]string // a selector, and the summary for it
	const alone, gold, rest = "The Middleware Operator does not answer.", "The Middleware Operator with --selector=tier=gold does not answer.",
		"The Middleware Operator with --selector=tier!=gold does not answer."
	page, err := os.ReadFile("../../docs/sharing.md")
	rules, _, _ := unstructured.NestedSlice(rendered(t, two)["PrometheusRule middleware-operator system"].Object, "spec", "groups")
	expr := rules[0].(map[string]any)["rules"].([]any)[0].(map[string]any)["expr"].(string) //nolint:forcetypeassert // a rule
	if err != nil || !strings.Contains(string(page), "value: "+expr+"\n") {
		t.Errorf("docs/sharing.md has another expression than %s (%v)", expr, err)
	}
	for what, tt := range map[string]struct {
		values string
		up     map[string]string // values of each selector's series, a minute each
		want   samples
	}{
		"one operator is up":           {on, map[string]string{"": "1x10"}, nil},
		"one operator is down":         {on, map[string]string{"": "1x3 stale"}, samples{"": alone}},
		"with a selector, and is up":   {on + "selector: tier=gold", map[string]string{"tier=gold": "1x10"}, nil},
		"two are up":                   {two, map[string]string{"tier=gold": "1x10", "tier!=gold": "1x10"}, nil},
		"one restarts":                 {two, map[string]string{"tier=gold": "1x4 stale 1x10", "tier!=gold": "1x10"}, nil},
		"the one beside is down":       {two, map[string]string{"tier=gold": "1x3 stale", "tier!=gold": "1x10"}, samples{"tier=gold": gold}},
		"the first is down":            {two, map[string]string{"tier=gold": "1x10", "tier!=gold": "1x3 stale"}, samples{"tier!=gold": rest}},
		"both are down":                {two, nil, samples{"tier=gold": gold, "tier!=gold": rest}},
		"another one is no substitute": {two, map[string]string{"tier=gold": "1x10", "": "1x10"}, samples{"tier!=gold": rest}},
	} {
		t.Run(what, func(t *testing.T) {
			var series, alerts []any
			for selector, values := range tt.up {
				series = append(series, map[string]any{"series": `middleware_operator_build_info{version="1",selector="` + selector + `"}`,
					"values": values})
			}
			for selector, summary := range tt.want {
				labels := map[string]any{"severity": "critical"}
				if selector != "" {
					labels["selector"] = selector
				}
				alerts = append(alerts, map[string]any{"exp_labels": labels, "exp_annotations": map[string]any{"summary": summary}})
			}
			promtool(t, tt.values, map[string]any{"interval": "1m", "input_series": series, "alert_rule_test": []any{
				map[string]any{"eval_time": "9m", "alertname": "MiddlewareOperatorDown", "exp_alerts": alerts}}})
		})
	}
}

// promtool runs a test of the first rule of a release with values.
func promtool(t *testing.T, values string, test map[string]any) {
	t.Helper()
	tool, err := exec.CommandContext(t.Context(), "../../hack/tool.sh", "prometheus", "promtool").Output()
	if err != nil {
		t.Fatalf("promtool cannot be built: %v", err)
	}
	groups, _, err := unstructured.NestedSlice(rendered(t, values)["PrometheusRule middleware-operator system"].Object, "spec", "groups")
	if err != nil || len(groups) == 0 {
		t.Fatalf("there are no rules: %v", err)
	}
	group := groups[0].(map[string]any)                //nolint:forcetypeassert // a group
	rule := group["rules"].([]any)[0].(map[string]any) //nolint:forcetypeassert // its first rule
	rule["annotations"] = map[string]any{"summary": rule["annotations"].(map[string]any)["summary"]}
	dir := t.TempDir()
	for file, what := range map[string]any{
		"rules.yaml": map[string]any{"groups": []any{map[string]any{"name": "operator", "interval": group["interval"], "rules": []any{rule}}}},
		"test.yaml":  map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "30s", "tests": []any{test}},
	} {
		text, err := yaml.Marshal(what)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), string(bytes.TrimSpace(tool)), "test", "rules", filepath.Join(dir, "test.yaml"))
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
