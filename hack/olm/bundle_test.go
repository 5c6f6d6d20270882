// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What operator-sdk leaves to be finished.
const unfinished = `
metadata:
  name: op.v0.1.0
  annotations:
    createdAt: "2030-01-01T01:01:01Z"
    alm-examples: '[{"kind": "App", "metadata": {"name": "a"}}, {"kind": "RedisCluster", "metadata": {"name": "r"}}]'
spec:
  futureField: kept
  install:
    spec:
      deployments:
        - spec:
            template:
              spec:
                containers:
                  - {name: sidecar, image: r.example.com:5000/sidecar:1}
                  - name: manager
                    image: r.example.com:5000/operator:0.1.0
                    env:
                      - {name: POD_NAMESPACE, value: x}
                      - {name: RELATED_IMAGE_REDIS, value: "r.example.com:5000/redis:8.0.6"}
                      - {name: RELATED_IMAGE_FOOBAR_SHELL, value: "docker.io/library/busybox:1.36"}
                initContainers:
                  - {name: init, image: r.example.com/init}
`

// checkout writes a bundle, a base and an icon into a folder, with some of the files replaced.
func checkout(t *testing.T, replaced map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"base.yaml": "metadata: {annotations: {createdAt: \"2026-11-21T00:00:00Z\"}}\n",
		"icon.svg":  "<svg/>",
		"bundle/manifests/op.clusterserviceversion.yaml": unfinished,
	}
	for name, text := range replaced {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func finishIn(root string) error {
	return finish(filepath.Join(root, "bundle"), filepath.Join(root, "base.yaml"), filepath.Join(root, "icon.svg"))
}

func readBack(t *testing.T, root string) map[string]any {
	t.Helper()
	c, err := readCSV(filepath.Join(root, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	return c.object.Object
}

func TestFinish(t *testing.T) {
	root := checkout(t, nil)
	if err := finishIn(root); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal([]byte(unfinished), &want); err != nil {
		t.Fatal(err)
	}
	annotations := want["metadata"].(map[string]any)["annotations"].(map[string]any)
	annotations["createdAt"] = "2026-11-21T00:00:00Z"
	annotations["containerImage"] = "r.example.com:5000/operator:0.1.0"
	annotations["operatorframework.io/initialization-resource"] = `{"kind":"RedisCluster","metadata":{"name":"r"}}`
	spec := want["spec"].(map[string]any)
	spec["icon"] = []any{map[string]any{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}}
	spec["relatedImages"] = []any{
		map[string]any{"name": "operator", "image": "r.example.com:5000/operator:0.1.0"},
		map[string]any{"name": "redis", "image": "r.example.com:5000/redis:8.0.6"},
		map[string]any{"name": "foobar-shell", "image": "docker.io/library/busybox:1.36"},
	}
	if diff := cmp.Diff(want, readBack(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestFinishRefuses(t *testing.T) {
	const csvPath = "bundle/manifests/op.clusterserviceversion.yaml"
	for name, c := range map[string]struct{ file, text, want string }{
		"a base without a date": {"base.yaml", "metadata: {}", "must be the release date"},
		"a date of another form": {"base.yaml", "metadata: {annotations: {createdAt: \"21.11.2026\"}}",
			"must be the release date"},
		"no manager":        {csvPath, strings.ReplaceAll(unfinished, "manager", "other"), "no container named manager"},
		"no first resource": {csvPath, strings.ReplaceAll(unfinished, "RedisCluster", "FooBar"), "has no RedisCluster"},
		"two CSVs":          {"bundle/manifests/b.clusterserviceversion.yaml", unfinished, "a bundle has one"},
		"no variables":      {csvPath, strings.ReplaceAll(unfinished, "RELATED_IMAGE_", "IMAGE_"), "has no variable RELATED_IMAGE_"},
		"a variable without value": {csvPath, strings.ReplaceAll(unfinished, `"r.example.com:5000/redis:8.0.6"`, `""`),
			"RELATED_IMAGE_REDIS of the manager has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			err := finishIn(checkout(t, map[string]string{c.file: c.text}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

func TestPin(t *testing.T) {
	root := checkout(t, nil)
	if err := finishIn(root); err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	err := pin(filepath.Join(root, "bundle"), func(image string) (string, error) {
		asked[image]++
		return digest, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"r.example.com:5000/sidecar:1": 1, "r.example.com:5000/operator:0.1.0": 1, "r.example.com/init": 1,
		"r.example.com:5000/redis:8.0.6": 1, "docker.io/library/busybox:1.36": 1}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("images that were asked about:\n%s", diff)
	}
	text, err := yaml.Marshal(readBack(t, root))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(strings.ToLower(line), "image: ") && !strings.Contains(line, "@"+digest) {
			t.Errorf("an image is not pinned: %s", line)
		}
	}
	for _, image := range []string{"image: r.example.com:5000/redis@", "value: r.example.com:5000/redis:8.0.6@",
		"r.example.com:5000/operator@", "r.example.com/init@", "containerImage: r.example.com:5000/operator@"} {
		if !strings.Contains(string(text), image+digest) {
			t.Errorf("%s is missing in\n%s", image, text)
		}
	}

	// What is pinned already is nobody's to ask about.
	err = pin(filepath.Join(root, "bundle"), func(image string) (string, error) { return "", errors.New("asked about " + image) })
	if err != nil {
		t.Error(err)
	}
}

func TestPinRefusesWhatIsNoDigest(t *testing.T) {
	for name, c := range map[string]struct {
		resolve resolver
		want    string
	}{
		"no answer": {func(string) (string, error) { return "", errors.New("no such image") }, "no such image"},
		"a word":    {func(string) (string, error) { return "latest", nil }, "is not of the form"},
		"two lines": {func(string) (string, error) { return digest + "\n" + digest, nil }, "is not of the form"},
	} {
		t.Run(name, func(t *testing.T) {
			root := checkout(t, nil)
			before := readBack(t, root)
			err := pin(filepath.Join(root, "bundle"), c.resolve)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if diff := cmp.Diff(before, readBack(t, root)); diff != "" {
				t.Errorf("the bundle was changed:\n%s", diff)
			}
		})
	}
}

func TestReleasedCRDsKeepAllButDescriptions(t *testing.T) {
	root := checkout(t, map[string]string{"crds/a.yaml": `
spec:
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          description: gone
          properties:
            description: {type: string, description: gone, maxLength: 3}
            list: {type: array, items: {description: gone, type: string}}
            map: {type: object, additionalProperties: {description: gone, type: integer}}
            any: {anyOf: [{description: gone, type: string}]}
`})
	output := filepath.Join(root, "released", "0.1.0")
	if err := release(filepath.Join(root, "crds"), output); err != nil {
		t.Fatal(err)
	}
	got, err := readObject(filepath.Join(output, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal([]byte(`
spec:
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          properties:
            description: {type: string, maxLength: 3}
            list: {type: array, items: {type: string}}
            map: {type: object, additionalProperties: {type: integer}}
            any: {anyOf: [{type: string}]}
`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Error(diff)
	}
}
