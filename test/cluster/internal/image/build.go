// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Builder makes the archives of recipes.
type Builder struct {
	// Dir keeps the archives.
	Dir string
	// Tool finds (and builds, if need be) a binary of a tool module.
	Tool func(module, binary string) (string, error)
	// Out gets progress.
	Out io.Writer
}

// Build makes the archives that Dir lacks and returns the paths of all, in order.
func (b Builder) Build(recipes []Recipe) ([]string, error) {
	archives := make([]string, len(recipes))
	var missing []int
	for i, r := range recipes {
		tools, err := b.tools(r)
		if err != nil {
			return nil, err
		}
		key, err := r.key(strings.Join(slices.Sorted(maps.Values(tools)), "\n"))
		if err != nil {
			return nil, err
		}
		archives[i] = filepath.Join(b.Dir, r.Name+"-"+key+".tar")
		if _, err := os.Stat(archives[i]); err != nil {
			missing = append(missing, i)
		}
	}
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return nil, err
	}
	fetched := map[string]source{}
	defer func() {
		for suite := range fetched {
			_ = os.RemoveAll(b.suiteDir(suite)) // large, and of no use once packed
		}
	}()
	for n, i := range missing {
		r := recipes[i]
		fmt.Fprintf(b.Out, "image %d of %d: %s\n", n+1, len(missing), r.Name)
		if _, done := fetched[r.Suite]; r.Suite != "" && !done {
			s, err := b.fetch(r.Suite, recipes)
			if err != nil {
				return nil, err
			}
			fetched[r.Suite] = s
		}
		if err := b.build(r, fetched[r.Suite], archives[i]); err != nil {
			return nil, fmt.Errorf("image %s: %w", r.Name, err)
		}
	}
	return archives, nil
}

// tools are the files on this machine of the tools that the recipe packs, by their
// path in the image.
func (b Builder) tools(r Recipe) (map[string]string, error) {
	found := map[string]string{}
	for at, tool := range r.tools() {
		module, binary, _ := strings.Cut(tool, "/")
		path, err := b.Tool(module, binary)
		if err != nil {
			return nil, err
		}
		found[at] = path
	}
	return found, nil
}

// source is what was fetched of one suite.
type source struct {
	unpacked
	versions map[string]string
}

func (b Builder) suiteDir(suite string) string { return filepath.Join(b.Dir, "debian-"+suite) }

// fetch gets the packages of all recipes of one suite at once.
func (b Builder) fetch(name string, recipes []Recipe) (source, error) {
	wanted := map[string]bool{}
	for _, r := range recipes {
		if r.Suite == name {
			for _, p := range r.packages() {
				wanted[p] = true
			}
		}
	}
	packages := make([]string, 0, len(wanted))
	for p := range wanted {
		packages = append(packages, p)
	}
	sort.Strings(packages)
	fmt.Fprintf(b.Out, "fetching from Debian %s: %s\n", name, strings.Join(packages, " "))
	root, versions, err := suite{name: name, dir: b.suiteDir(name)}.fetch(packages)
	if err != nil {
		return source{}, err
	}
	u, err := newUnpacked(root)
	return source{unpacked: u, versions: versions}, err
}

// build writes the recipe's archive and removes older ones.
func (b Builder) build(r Recipe, s source, archive string) error {
	content := newTree()
	if err := b.fill(content, r, s); err != nil {
		return err
	}
	layer, err := content.tar()
	if err != nil {
		return err
	}
	image, err := pack(r, layer)
	if err != nil {
		return err
	}
	images := map[name.Reference]v1.Image{}
	for _, n := range r.references(s.versions[r.Package]) {
		ref, err := name.NewTag(n)
		if err != nil {
			return err
		}
		images[ref] = image
		fmt.Fprintf(b.Out, "  %s\n", n)
	}
	if err := tarball.MultiRefWriteToFile(archive+".new", images); err != nil {
		return err
	}
	older, err := filepath.Glob(filepath.Join(b.Dir, r.Name+"-????????????.tar"))
	if err != nil {
		return err
	}
	for _, o := range older {
		if err := os.Remove(o); err != nil {
			return err
		}
	}
	return os.Rename(archive+".new", archive)
}

func (b Builder) fill(t tree, r Recipe, s source) error {
	tools, err := b.tools(r)
	if err != nil {
		return err
	}
	for at, path := range tools {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t[at] = entry{mode: 0o755, content: content}
	}
	for _, folder := range r.Folders {
		t[folder] = entry{mode: 0o755, dir: true}
	}
	if r.Suite == "" {
		return nil
	}
	for at, path := range r.Programs {
		if err := t.addProgram(s.unpacked, at, path); err != nil {
			return err
		}
	}
	t.addLinks(r.Links)
	if err := t.addProgram(s.unpacked, "/usr/bin/busybox", "/usr/bin/busybox"); err != nil {
		return err
	}
	applets, err := s.applets()
	if err != nil {
		return err
	}
	for _, a := range applets {
		t.addLinks(map[string]string{"/usr/bin/" + a: "busybox"})
	}
	return nil
}

// applets asks busybox for the commands it stands for.
func (s source) applets() ([]string, error) {
	for _, path := range []string{"usr/bin/busybox", "bin/busybox"} {
		binary := filepath.Join(s.root, path)
		if _, err := os.Stat(binary); err != nil {
			continue
		}
		out, err := exec.Command(binary, "--list").Output()
		if err != nil {
			return nil, fmt.Errorf("listing the commands of busybox: %w", err)
		}
		return strings.Fields(string(out)), nil
	}
	return nil, fmt.Errorf("the package %s holds no busybox", busybox)
}

// NameOf is the first name of the images in an archive.
func NameOf(archive string) (string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return "", fmt.Errorf("reading %s: %w; an image archive is what docker save or buildah push docker-archive: write", archive, err)
	}
	for _, descriptor := range manifest {
		if len(descriptor.RepoTags) > 0 {
			return descriptor.RepoTags[0], nil
		}
	}
	return "", fmt.Errorf("%s holds no image with a name", archive)
}

func pack(r Recipe, layer []byte) (v1.Image, error) {
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer)), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS = runtime.GOARCH, "linux"
	file.Config = v1.Config{
		Entrypoint: r.Entrypoint, Cmd: r.Cmd, User: r.User, WorkingDir: r.WorkDir, Labels: r.Labels,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return mutate.ConfigFile(image, file)
}
