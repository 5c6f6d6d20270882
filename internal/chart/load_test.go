// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var onDisk = map[string]string{
	"Chart.yaml": "\ufeffapiVersion: v2\nname: demo\nversion: 1.2.3\n",
	"templates/c.yaml": configMap +
		"  file: {{ .Files.Get \".motd\" | trim | quote }}\n  gone: {{ .Files.Get \"secret.txt\" | quote }}\n",
	"templates/.c.yaml.swp":             "{{ broken",
	".helmignore":                       "*.txt\n",
	".motd":                             "hello",
	"secret.txt":                        "ignored",
	"embed.go":                          "package demo",
	"shared/sub/Chart.yaml":             "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
	"shared/sub/templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: sub}\n",
}

func writeFiles(t *testing.T, dir string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadPath(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, onDisk)
	if err := os.Mkdir(filepath.Join(dir, "charts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "shared", "sub"), filepath.Join(dir, "charts", "sub")); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), "demo-1.2.3.tgz")
	files := map[string]string{}
	for name, content := range onDisk {
		if name != "secret.txt" && name != "templates/.c.yaml.swp" && name != "embed.go" {
			files[strings.Replace(name, "shared/", "charts/", 1)] = content
		}
	}
	if err := os.WriteFile(packed, archive(t, files), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, packed} {
		c, err := LoadPath(path)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := c.Render(map[string]any{"text": "a"}, shop, Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ConfigMap/web", "Service/sub"}, names(rendered)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if diff := cmp.Diff(map[string]any{"text": "a", "revision": "1", "file": "hello", "gone": ""},
			rendered.Objects[0].Object["data"]); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	tarred := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := tarred.WriteHeader(&tar.Header{Name: "demo/" + name, Mode: 0o600, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tarred.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []interface{ Close() error }{tarred, zipped} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return packed.Bytes()
}

func TestWhatCannotBeLoaded(t *testing.T) {
	for _, tc := range []struct {
		name string
		load func() (*Chart, error)
		says string
	}{
		{"nothing", func() (*Chart, error) { return LoadPath(filepath.Join(t.TempDir(), "nope")) }, "check the path of the chart"},
		{"no archive", func() (*Chart, error) { return LoadArchive(strings.NewReader("PK")) }, "pack it with `helm package`"},
		{"an archive that reaches out", func() (*Chart, error) {
			return LoadArchive(bytes.NewReader(archive(t, map[string]string{"../../etc/passwd": "x"})))
		}, "references parent directory"},
		{"a dependency that was not fetched", func() (*Chart, error) {
			return Load(files(map[string]string{
				"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies: [{name: redis, version: 1.0.0}]\n"}))
		}, "Chart.yaml: the dependency redis is not in charts/; run `helm dependency build`"},
		{"no name", func() (*Chart, error) {
			return Load(files(map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"}))
		}, "name is required"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := tc.load(); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// A schema that refers to another is refused, whoever would serve it; what is in the schema itself may be referred to.
func TestSchemasElsewhere(t *testing.T) {
	var asked atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"type":"integer"}`))
	}))
	t.Cleanup(web.Close)
	local := filepath.Join(t.TempDir(), "size.json")
	if err := os.WriteFile(local, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ref := func(to string) string { return fmt.Sprintf(`{"properties":{"size":{"$ref":%q}}}`, to) }
	const named = `{"$id":"https://example.com/demo/values.json","properties":{"size":{"$ref":%q}},"$defs":{"size":{"$id":"size.json","type":"integer"}}}`
	for name, tc := range map[string]struct {
		schema  string
		refused string
	}{
		"on the web":                  {ref(web.URL + "/size.json"), web.URL + "/size.json"},
		"on the web, over TLS":        {ref("https://example.com/size.json#/a"), "https://example.com/size.json"},
		"a file":                      {ref("file://" + local), "file://" + local},
		"a file beside it":            {ref("size.json"), "file:///size.json"},
		"a meta-schema of others":     {`{"$schema":"https://example.com/schema"}`, "https://example.com/schema"},
		"beside its own name":         {fmt.Sprintf(named, "other.json"), "https://example.com/demo/other.json"},
		"within it":                   {`{"properties":{"size":{"$ref":"#/$defs/size"}},"$defs":{"size":{"type":"integer"}}}`, ""},
		"within it, by its own name":  {fmt.Sprintf(named, "https://example.com/demo/size.json"), ""},
		"within it, by a part's name": {fmt.Sprintf(named, "size.json"), ""},
		"a draft":                     {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"size":{"type":"integer"}}}`, ""},
	} {
		for dir, prefix := range map[string]string{"": "", "charts/sub/": "charts/sub/"} {
			t.Run(name+" "+dir, func(t *testing.T) {
				chart := map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\n", "templates/c.yaml": configMap,
					"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", dir + "values.schema.json": tc.schema}
				loaded, err := Load(files(chart))
				if tc.refused != "" {
					if want := prefix + "values.schema.json: it refers to " + tc.refused; err == nil || !strings.Contains(err.Error(), want) ||
						!strings.Contains(err.Error(), "under $defs") {
						t.Errorf("got %v, want %s", err, want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for size, good := range map[any]bool{int64(1): true, "big": false} {
					given := map[string]any{"size": size}
					if dir != "" {
						given = map[string]any{"sub": given}
					}
					if _, err := loaded.Render(given, Release{Name: "r", Namespace: "n", Revision: 1, IsInstall: true}, Capabilities{}); (err == nil) !=
						good {
						t.Errorf("size %v: %v", size, err)
					}
				}
			})
		}
	}
	if asked.Load() > 0 {
		t.Error("something was fetched")
	}
}

func TestProblems(t *testing.T) {
	if found := load(t,
		map[string]string{"templates/c.yaml": configMap, "values.schema.json": `{"type":"object"}`}).Problems(); len(found) > 0 {
		t.Errorf("a good chart: %v", found)
	}
	c := load(t, map[string]string{
		"values.schema.json": `{"type": "objekt"}`, "templates/c.yaml": "{{ if }}",
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.schema.json": "{",
	})
	var said []string
	for _, problem := range c.Problems() {
		path, _, _ := strings.Cut(problem.Error(), ": ")
		said = append(said, path)
	}
	if diff := cmp.Diff([]string{"values.schema.json", "templates/c.yaml", "charts/sub/values.schema.json"}, said); diff != "" {
		t.Error(diff)
	}
}
