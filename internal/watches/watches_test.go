// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func read(content string) ([]Watch, error) {
	fsys := fstest.MapFS{
		"opt/watches.yaml":          {Data: []byte(content)},
		"opt/charts/web/Chart.yaml": {Data: []byte("name: web\n")},
	}
	env := map[string]string{"REGISTRY": "registry.example.com"}
	const file = "opt/watches.yaml"
	return load(reader{fsys: fsys, file: file, shown: file, beside: []string{"opt"},
		env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
}

func TestLoad(t *testing.T) {
	list, err := read(`# our kinds
- {group: example.com, version: v1, kind: Web, chart: charts/web}
- group: example.com
  version: v2
  kind: Web
  chart: ./charts/web
  watchDependentResources: false
  overrideValues:
    image.repository: ${REGISTRY}/web
  reconcilePeriod: 5m
  maxConcurrentReconciles: 3
  selector: {matchLabels: {tier: gold}}
  dryRunOption: server
`)
	if err != nil {
		t.Fatal(err)
	}
	plain, rich := list[0], list[1]
	if plain.Chart != "opt/charts/web" || !plain.WatchDependentResources || plain.ReconcilePeriod != 0 || !plain.Selector.Empty() {
		t.Errorf("the defaults: %+v", plain)
	}
	if rich.GroupVersionKind != (schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Web"}) ||
		rich.WatchDependentResources || rich.ReconcilePeriod != 5*time.Minute || rich.MaxConcurrentReconciles != 3 ||
		rich.OverrideValues["image.repository"] != "registry.example.com/web" ||
		rich.Selector.Matches(labels.Set{"tier": "silver"}) || !rich.Selector.Matches(labels.Set{"tier": "gold"}) {
		t.Errorf("got %+v", rich)
	}
	if list, err := read(""); err != nil || len(list) != 0 {
		t.Errorf("an empty file has no entries: %v, %v", list, err)
	}
}

func TestRefusals(t *testing.T) {
	const entry = "- group: example.com\n  version: v1\n  kind: Web\n  chart: charts/web\n"
	for _, tc := range []struct{ name, content, says string }{
		{"an unknown field", entry + "  reconcilePeriods: 5m\n",
			`opt/watches.yaml:5: unknown field "reconcilePeriods"; did you mean "reconcilePeriod"? The fields are`},
		{"the same kind twice", entry + entry, "opt/watches.yaml:5: Web is listed a second time, first in line 1"},
		{"a bad duration", entry + "  reconcilePeriod: often\n", `:5: reconcilePeriod "often" is no duration; write one such as 30s`},
		{"a negative duration", entry + "  reconcilePeriod: -1s\n", "is no duration"},
		{"no workers", entry + "  maxConcurrentReconciles: 0\n", "at least 1"},
		{"a chart that is not there", "- {group: g, version: v1, kind: A, chart: charts/nope}\n", `:1: there is no chart at "charts/nope"`},
		{"a chart elsewhere", "- {group: g, version: v1, kind: A, chart: ../../etc}\n", "lies outside"},
		{"no chart", "- {group: g, version: v1, kind: A}\n", `field "chart" is missing`},
		{"no kind", "- {group: g, version: v1, kind: '', chart: charts/web}\n", "an empty value"},
		{"a wrong type", entry + "  watchDependentResources: perhaps\n", `field "watchDependentResources"`},
		{"a bad selector", entry + "  selector: {matchExpressions: [{key: a, operator: Near}]}\n", "selector:"},
		{"an operator no selector has", entry + "  selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}\n",
			"write matchLabels or matchExpressions"},
		{"a misspelt selector", entry + "  selector:\n    matchLabel: {a: b}\n", `:6: unknown field "matchLabel"; did you mean "matchLabels"?`},
		{"a misspelt expression", entry + "  selector: {matchExpressions: [{key: a, operater: In}]}\n",
			`unknown field "operater"; did you mean "operator"?`},
		{"a misspelt permission", entry + "  allow:\n    clusterscoped: true\n",
			`:6: unknown field "clusterscoped"; did you mean "clusterScoped"?`},
		{"a permission of the wrong type", entry + "  allow: {kinds: Widget}\n", `:5: field "kinds": cannot unmarshal !!str`},
		{"a period without a unit", entry + "  reconcilePeriod: 60\n", "write one such as 30s"},
		{"a broken template", entry + "  overrideValues:\n    a: '{{ nope }}'\n",
			":6: overrideValues[a]: template: value:1: function \"nope\" not defined; correct the template"},
		{"an override that is no string", entry + "  overrideValues:\n    a: {b: c}\n", ":6: overrideValues[a] is not a string"},
		{"a field of Ansible's operator", entry + "  role: web\n", `:5: unknown field "role"`},
		{"fields merged in", "- &a\n  group: g\n- <<: *a\n", "a merge key (<<); write the fields out"},
		{"a second document", entry + "---\n" + entry, "there is a second YAML document"},
		{"an absolute path within a file system", "- {group: g, version: v1, kind: A, chart: /charts/web}\n", "lies outside"},
		{"no list", "group: g\n", "the file is not a list"},
		{"no YAML", "\t- x", "correct the YAML"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := read(tc.content); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nope.yaml"), nil); err == nil || !strings.Contains(err.Error(), "--watches-file") {
		t.Errorf("a file that is not there: %v", err)
	}
}
