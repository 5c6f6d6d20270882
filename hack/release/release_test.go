// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const changelogText = `# Changelog

## Unreleased

### Added

- **Chart**: [Helm](docs/x.md) installs ` + "`it`" + `. And more.

### Security

- A hole is closed

## [0.2.0] - 2026-01-02

### Fixed

- Something

## 0.1.0
`

func TestChangesOfAVersion(t *testing.T) {
	path := file(t, "CHANGELOG.md", changelogText)
	for name, tt := range map[string]struct {
		version  string
		snapshot bool
		want     []change
		refusal  string
	}{
		"a version with a date":           {"0.2.0", false, []change{{"fixed", "Something"}}, ""},
		"one that is there, in a dry run": {"0.2.0", true, []change{{"fixed", "Something"}}, ""},
		"one that is not, in a dry run": {"0.3.0", true,
			[]change{{"added", "Chart: Helm installs it."}, {"security", "A hole is closed"}}, ""},
		"one that is not, in earnest":        {"0.3.0", false, nil, `has no heading "## 0.3.0"`},
		"one about which nothing is written": {"0.1.0", true, nil, "says nothing about 0.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readChanges(path, tt.version, tt.snapshot)
			if tt.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refusal) {
					t.Errorf("got %v, want %q", err, tt.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.changes()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got.has("Security") != (len(tt.want) == 2) {
				t.Errorf("security: %t", got.has("Security"))
			}
		})
	}
}

// What config/ says is data to Helm, and what is not known is refused.
func TestTemplatesOfObjects(t *testing.T) {
	made := func(kind, name string, fields map[string]any) object {
		o := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		o.SetName(name)
		o.SetNamespace(installationNamespace)
		for field, value := range fields {
			o.Object[field] = value
		}
		return object{Unstructured: o}
	}
	text, err := template(made("ConfigMap", "a", map[string]any{"data": map[string]any{
		"rule": `up{job="x"} {{ $value }}`, "host": "webhook." + installationNamespace + ".svc"}}))
	want := `---
apiVersion: v1
data:
  host: webhook.{{ $.Release.Namespace }}.svc
  rule: up{job="x"} {{ "{{" }} $value }}
kind: ConfigMap
metadata:
  labels:
    {{- include "middleware-operator.labels" $ | nindent 4 }}
  name: a
  namespace: {{ $.Release.Namespace | quote }}
`
	if diff := cmp.Diff(want, text); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	text, err = template(made("Deployment", "middleware-operator", nil))
	if err == nil || !strings.Contains(err.Error(), "there is no spec") {
		t.Errorf("a Deployment without the fields that values change: %v\n%s", err, text)
	}
	if unused := unusedEdits(nil); len(unused) == 0 {
		t.Error("objects that edits change are missing, and nothing says so")
	}
}

func TestTheTableOfValues(t *testing.T) {
	folder := filepath.Dir(file(t, "values.yaml", "# A thing,\n# explained.\na: 1\nb:\n  # Another.\n  c: []\n"))
	c := chart{output: folder}
	page := filepath.Join(folder, "README.md")
	for _, before := range []string{"x\n" + tableBegin + "old\n" + tableEnd + "\ny\n", "x\n"} {
		if err := os.WriteFile(page, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := c.writeReadme()
		if strings.Contains(before, tableEnd) != (err == nil) {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(page)
		want := "x\n" + tableBegin + "\n| value | default | meaning |\n|---|---|---|\n| `a` | `1` | A thing, explained. |\n| `b.c` | `[]` | Another. |\n\n" + tableEnd + "\ny\n"
		if err == nil && string(text) != want {
			t.Errorf("got\n%s", text)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "values.yaml"), []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.writeReadme(); err == nil || !strings.Contains(err.Error(), "a has no comment") {
		t.Errorf("a value without a word: %v", err)
	}
}

func TestTheImageOfARelease(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	values := "image:\n  repository: a/b\n  digest: \"\"\n"
	for image, want := range map[string]string{
		"":                             values,
		"r:5000/operator":              "image:\n  repository: r:5000/operator\n  digest: \"\"\n",
		"r.example/operator@" + digest: "image:\n  repository: r.example/operator\n  digest: \"" + digest + "\"\n",
		"r:5000/operator:1":            "",
		"operator@sha256:1":            "",
	} {
		c := chart{output: filepath.Dir(file(t, "values.yaml", values)), image: image}
		err := c.writeImage()
		text, _ := os.ReadFile(c.values())
		if (err == nil) != (want != "") || err == nil && string(text) != want {
			t.Errorf("%q: %v\n%s", image, err, text)
		}
	}
}
