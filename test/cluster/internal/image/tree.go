// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// entry is a file, folder or link of an image.
type entry struct {
	mode    int64
	content []byte
	link    string
	dir     bool
}

// tree is the content of an image, by absolute path.
type tree map[string]entry

// newTree has what every image needs: Debian's merged layout and the users.
func newTree() tree {
	t := tree{}
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/local/bin", "/etc", "/var/run"} {
		t[dir] = entry{mode: 0o755, dir: true}
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		t["/"+link] = entry{mode: 0o777, link: "usr/" + link}
	}
	t["/tmp"] = entry{mode: 0o1777, dir: true}
	t["/data"] = entry{mode: 0o777, dir: true}
	t["/etc/passwd"] =
		entry{mode: 0o644, content: []byte("root:x:0:0:root:/root:/bin/sh\nredis:x:999:999::/data:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")}
	t["/etc/group"] = entry{mode: 0o644, content: []byte("root:x:0:\nredis:x:999:\nnogroup:x:65534:\n")}
	t["/etc/nsswitch.conf"] = entry{mode: 0o644, content: []byte("passwd: files\ngroup: files\nhosts: files dns\n")}
	return t
}

// addLinks adds symbolic links; what is there already stays.
func (t tree) addLinks(links map[string]string) {
	for p, target := range links {
		if _, taken := t[p]; !taken {
			t[p] = entry{mode: 0o777, link: target}
		}
	}
}

// tar packs the tree, always the same way: sorted, without times.
func (t tree) tar() ([]byte, error) {
	for p := range t {
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if _, ok := t[dir]; !ok {
				t[dir] = entry{mode: 0o755, dir: true}
			}
		}
	}
	paths := make([]string, 0, len(t))
	for p := range t {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, p := range paths {
		e := t[p]
		header := &tar.Header{Name: strings.TrimPrefix(p, "/"), Mode: e.mode, ModTime: time.Unix(0, 0)}
		switch {
		case e.dir:
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		case e.link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		default:
			header.Typeflag, header.Size = tar.TypeReg, int64(len(e.content))
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	return buffer.Bytes(), w.Close()
}

// unpacked is a folder with unpacked packages.
type unpacked struct {
	root string
	// libraries by file name.
	libraries map[string]string
}

func newUnpacked(root string) (unpacked, error) {
	u := unpacked{root: root, libraries: map[string]string{}}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), ".so") {
			u.libraries[d.Name()] = p
		}
		return err
	})
	return u, err
}

// read reads a file of the packages, following links inside the root. A path
// below /usr is also looked for without it, and the other way around: packages of
// older suites have not merged the two.
func (u unpacked) read(name string) ([]byte, error) {
	for range 10 {
		found := ""
		for _, candidate := range []string{name, "/usr" + name, strings.TrimPrefix(name, "/usr")} {
			if _, err := os.Lstat(filepath.Join(u.root, candidate)); err == nil {
				found = candidate
				break
			}
		}
		if found == "" {
			return nil, fmt.Errorf("the packages hold no %s", name)
		}
		target, err := os.Readlink(filepath.Join(u.root, found))
		if err != nil {
			return os.ReadFile(filepath.Join(u.root, found))
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(found), target)
		}
		name = target
	}
	return nil, fmt.Errorf("too many links at %s", name)
}

// addProgram puts a program of the packages at the path at, with every library it
// needs and the dynamic loader.
func (t tree) addProgram(u unpacked, at, name string) error {
	content, err := u.read(name)
	if err != nil {
		return err
	}
	t[at] = entry{mode: 0o755, content: content}
	return t.addLibraries(u, name, content)
}

func (t tree) addLibraries(u unpacked, name string, content []byte) error {
	file, err := elf.NewFile(bytes.NewReader(content))
	var notELF *elf.FormatError
	if errors.As(err, &notELF) {
		return nil // a script
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		raw := make([]byte, p.Filesz)
		if _, err := p.ReadAt(raw, 0); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		loader := string(bytes.TrimRight(raw, "\x00"))
		content, err := u.read(loader)
		if err != nil {
			return err
		}
		t["/usr"+strings.TrimPrefix(loader, "/usr")] = entry{mode: 0o755, content: content}
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading what %s needs: %w", name, err)
	}
	for _, library := range needed {
		if err := t.addLibrary(u, library, name); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) addLibrary(u unpacked, library, neededBy string) error {
	found, ok := u.libraries[library]
	if !ok {
		return fmt.Errorf("the packages hold no %s, which %s needs", library, neededBy)
	}
	inRoot := strings.TrimPrefix(found, u.root)
	at := "/usr" + strings.TrimPrefix(inRoot, "/usr")
	if _, done := t[at]; done {
		return nil
	}
	content, err := u.read(inRoot)
	if err != nil {
		return err
	}
	t[at] = entry{mode: 0o644, content: content}
	return t.addLibraries(u, library, content)
}
