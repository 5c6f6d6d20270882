// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"middleware.hc.cn/operator/test/cluster/internal/config"
)

func TestVersions(t *testing.T) {
	for version, want := range map[string][2]string{
		"5:7.0.15-1~deb12u5": {"7.0.15", "7.0"},
		"5:8.0.6-1":          {"8.0.6", "8.0"},
		"8.1.1+dfsg1-3":      {"8.1.1", "8.1"},
		"1:1.37.0-6+b9":      {"1.37.0", "1.37"},
		"9":                  {"9", "9"},
	} {
		upstream := upstreamVersion(version)
		if got := [2]string{upstream, minor(upstream)}; got != want {
			t.Errorf("%s: got %v, want %v", version, got, want)
		}
	}
}

func TestReferences(t *testing.T) {
	r := Recipe{Names: []string{"localhost/x:1"}, Repository: "docker.io/library/redis", Tags: []string{"7.0", "latest"}}
	want := []string{
		"localhost/x:1",
		"docker.io/library/redis:7.0.15", "docker.io/library/redis:7.0", "docker.io/library/redis:latest",
	}
	if diff := cmp.Diff(want, r.references("5:7.0.15-1")); diff != "" {
		t.Error(diff)
	}
}

func TestKeyFollowsRecipeAndTool(t *testing.T) {
	key := func(r Recipe, tool string) string {
		k, err := r.key(tool)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	base := Recipe{Name: "a", Programs: map[string]string{"/x": "/y", "/z": "/y"}}
	other := Recipe{Name: "a", Programs: map[string]string{"/x": "/y"}}
	if key(base, "") != key(base, "") {
		t.Error("the same recipe has two keys")
	}
	if key(base, "") == key(other, "") || key(base, "tool-1") == key(base, "tool-2") {
		t.Error("different images have one key")
	}
}

func TestAnImageOfBuiltTools(t *testing.T) {
	program := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(program, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked []string
	builder := Builder{Dir: t.TempDir(), Out: io.Discard, Tool: func(module, binary string) (string, error) {
		asked = append(asked, module+" "+binary)
		return program, nil
	}}
	recipe := Recipe{
		Name: "catalog", Names: []string{"example.org/opm:v1"}, Tools: map[string]string{"/usr/bin/opm": "module/opm"},
		Folders: []string{"/configs"}, Labels: map[string]string{"configs": "/configs"},
		Entrypoint: []string{"/bin/opm"}, User: "1001",
	}
	archives, err := builder.Build([]Recipe{recipe})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(recipe.Names[0])
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archives[0], &tag)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := file.Config
	got.Env = nil
	want := v1.Config{Entrypoint: recipe.Entrypoint, User: "1001", Labels: recipe.Labels}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	content := map[string]string{}
	stream := mutate.Extract(image)
	defer stream.Close()
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content["/"+strings.TrimSuffix(h.Name, "/")] = string(data)
	}
	if content["/usr/bin/opm"] != "program" {
		t.Errorf("the program is %q", content["/usr/bin/opm"])
	}
	if _, ok := content["/configs"]; !ok {
		t.Error("there is no folder /configs")
	}

	asked = nil
	again, err := builder.Build([]Recipe{recipe})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(archives, again); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"module opm"}, asked); diff != "" {
		t.Error(diff) // once for the key: nothing is built again
	}
}

// The images' names say which versions hack/tools builds them from.
func TestOLMImagesAreNamedAfterTheVersionsOfTheirTools(t *testing.T) {
	for image, c := range map[string]struct{ tool, module string }{
		config.OLMImage:           {"olm", "github.com/operator-framework/operator-lifecycle-manager"},
		config.OPMImage:           {"opm", "github.com/operator-framework/operator-registry"},
		config.ScorecardTestImage: {"operator-sdk", "github.com/operator-framework/operator-sdk"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "hack", "tools", c.tool, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		_, version, _ := strings.Cut(image, ":")
		if !strings.Contains(string(text), c.module+" "+version+" ") {
			t.Errorf("%s is not the version of %s in hack/tools/%s/go.mod", image, c.module, c.tool)
		}
	}
}

func TestRecipesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, r := range Recipes() {
		if r.Tool == "" && (r.Suite == "" || r.Package == "") {
			t.Errorf("%s is made of nothing", r.Name)
		}
		for _, n := range append(r.Names, r.Name) {
			if seen[n] != "" {
				t.Errorf("%s is in both %s and %s", n, seen[n], r.Name)
			}
			seen[n] = r.Name
		}
	}
}

func TestFindMirror(t *testing.T) {
	targets := "Packages stable-security http://mirror.example/security/\n" +
		"Translations stable http://mirror.example/debian/\n" +
		"Packages stable http://mirror.example/debian/\n"
	release := "ID=debian\nVERSION_CODENAME=\"stable\"\n"
	if got := findMirror(targets, codename(release)); got != "http://mirror.example/debian/" {
		t.Errorf("got %q", got)
	}
	if got := findMirror(targets, "other"); got != "" {
		t.Errorf("a mirror of another release: %q", got)
	}
}

func TestTreeIsPackedTheSameEveryTime(t *testing.T) {
	pack := func() []byte {
		tree := newTree()
		tree["/opt/a/b"] = entry{mode: 0o644, content: []byte("text")}
		tree.addLinks(map[string]string{"/usr/bin/sh": "busybox", "/opt/a/b": "elsewhere"})
		layer, err := tree.tar()
		if err != nil {
			t.Fatal(err)
		}
		return layer
	}
	layer := pack()
	if !bytes.Equal(layer, pack()) {
		t.Error("two packings of one tree differ")
	}
	kinds := map[string]byte{}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[h.Name] = h.Typeflag
	}
	for name, want := range map[string]byte{
		"opt/a/":  tar.TypeDir,
		"opt/a/b": tar.TypeReg, // a link does not replace a file
		"bin":     tar.TypeSymlink, "usr/bin/sh": tar.TypeSymlink, "etc/passwd": tar.TypeReg,
	} {
		if kinds[name] != want {
			t.Errorf("%s has type %q, want %q", name, kinds[name], want)
		}
	}
}
