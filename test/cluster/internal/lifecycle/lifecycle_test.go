// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/test/cluster/internal/image"
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

func TestUpMakesOnlyTheImagesThatItsOptionsAskFor(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{}, []string{"coredns", "pause"}},
		{Options{MetricsServer: true}, []string{"coredns", "metrics-server", "pause"}},
		{Options{Engines: true}, []string{
			"busybox", "coredns", "pause", "redis-7.0", "redis-8.0", "redis-exporter", "valkey-8.1", "valkey-9.1",
		}},
	} {
		var got []string
		for _, r := range image.Recipes() {
			if c.options.wants(r) {
				got = append(got, r.Name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v: %s", c.options, diff)
		}
	}
}

func TestRepositoryOf(t *testing.T) {
	for name, want := range map[string]string{
		"middleware.hc.cn/operator-catalog:v0.1.0": "middleware.hc.cn/operator-catalog",
		"localhost:5000/catalog":                   "localhost:5000/catalog",
		"localhost:5000/catalog:v1":                "localhost:5000/catalog",
	} {
		if got := repositoryOf(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
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
