// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
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
