// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"errors"
	"path"
	"strings"
	"testing"
)

// FuzzLoad reads any file: what is wrong is said with a remedy, and no chart lies outside of where charts may.
func FuzzLoad(f *testing.F) {
	const entry = "- group: example.com\n  version: v1\n  kind: Web\n  chart: charts/web\n"
	for _, seed := range []string{
		"", "---\n", "null", "[]", "- null", "- []", "- &a [*a]", "- &a {b: *a}", "- *a", "{}", "\t", "\xff", "- {<<: [*a]}", "? - a\n: - b\n",
		entry, entry + entry, entry + "---\n" + entry, "- &a {group: g, version: v, kind: K, chart: charts/web}\n- *a\n",
		entry + "  overrideValues: {a: $REGISTRY, 'b[0]': \"${X}\", c: {d: e}}\n", entry + "  overrideValues: &o\n    a: *o\n",
		entry + "  reconcilePeriod: 9999999h\n  maxConcurrentReconciles: 99999999999999999999\n",
		entry + "  selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}\n",
		entry + "  allow: {kinds: [A], namespaces: ['*'], clusterScoped: yes, structuredValues: ~}\n",
		entry + "  watchDependentResources: [true]\n  proxyVariables: {}\n", strings.Replace(entry, "charts/web", "../../opt/charts/web", 1),
		strings.Replace(entry, "charts/web", "!!binary Y2hhcnRzL3dlYg==", 1), strings.Repeat("- ", 2000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if strings.Contains(content, "{{") {
			return // whoever writes this file may run templates, also such as never end
		}
		list, err := read(content)
		var mistake *Error
		if err != nil && (!errors.As(err, &mistake) || mistake.Problem == "" || mistake.Remedy == "") {
			t.Errorf("%q: a mistake without a remedy: %v", content, err)
		}
		for _, watch := range list {
			if err != nil || path.Clean(watch.Chart) != "opt/charts/web" || watch.Kind == "" || watch.Version == "" || watch.Selector == nil {
				t.Errorf("%q: %+v, %v", content, watch, err)
			}
		}
	})
}
