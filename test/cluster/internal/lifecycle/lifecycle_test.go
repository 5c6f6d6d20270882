// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWipeKeepsOnlyTheImageStore(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"spec.json", "config/ca.crt", "var/lib/kubelet/pods/x", "var/log/y", "var/lib/containerd/imported.json"} {
		if err := write(filepath.Join(dir, f), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := wipeMember(dir); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/var/lib/containerd/imported.json"}, left); diff != "" {
		t.Error(diff)
	}
	if err := wipeMember(filepath.Join(dir, "never-made")); err != nil {
		t.Error(err)
	}
}

func TestCopyFileKeepsTheTimeByWhichImportsAreRecognized(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.tar"), filepath.Join(dir, "to.tar")
	if err := os.WriteFile(from, []byte("archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(from, to); err != nil {
		t.Fatal(err)
	}
	before, err := identify(from)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := identify(to); err != nil || after != before {
		t.Errorf("got %q, %v; want %q", after, err, before)
	}
}
