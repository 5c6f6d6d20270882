// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"
)

// quoted writes every value as data; unquoted forgets to.
var (
	quoted = map[string]string{"templates/c.yaml": configMap + `  list:
    {{- toYaml .Values.list | nindent 4 }}
`, "templates/s.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n  labels:\n    text: {{ .Values.text | toJson }}\n"}
	unquoted = map[string]string{"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  text: {{ .Values.text }}\n"}
)

// FuzzValuesAreData shows that a string of a CR never adds an object, never changes a namespace and arrives as it was written,
// in a chart that quotes; and that nothing the CR may not create passes Check in a chart that does not.
func FuzzValuesAreData(f *testing.F) {
	for _, seed := range []string{
		"plain", "", "a\nb", "x\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: stolen\n  namespace: kube-system\n",
		"{{ .Release.Namespace }}", "{{- fail \"x\" -}}", "&a [*a, *a]", "\"\nmetadata: {namespace: other}", "'", "\\", "!!binary x",
		"\u2028", "\x00", "x: y", "# comment", "- item", "null", "true", "1e3", "|\n  x", "%YAML 1.1\n---\n",
		"a\nkind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1",
	} {
		f.Add(seed)
	}
	careful, careless := load(f, quoted), load(f, unquoted)
	f.Fuzz(func(t *testing.T, text string) {
		values := map[string]any{"text": text, "list": map[string]any{text: []any{text}}}
		if rendered, err := careful.Render(values, shop, Capabilities{}); err == nil {
			if len(rendered.Objects) != 2 || len(rendered.Hooks) != 0 {
				t.Errorf("%q: got objects %v and %d hooks", text, names(rendered), len(rendered.Hooks))
			}
			for _, object := range rendered.Objects {
				if object.GetNamespace() != "" || object.GetName() != "web" {
					t.Errorf("%q: became %s/%s", text, object.GetNamespace(), object.GetName())
				}
			}
		}
		rendered, err := careless.Render(values, shop, Capabilities{})
		if err != nil || Check(rendered, Allowed{Namespace: "shop", Kinds: careless.Kinds(), Namespaced: namespaced}) != nil {
			return
		}
		for _, object := range rendered.Objects {
			if object.GetKind() != "ConfigMap" || object.GetNamespace() != "" && object.GetNamespace() != "shop" {
				t.Errorf("%q: Check let through %s in %q", text, object.GetKind(), object.GetNamespace())
			}
		}
	})
}
