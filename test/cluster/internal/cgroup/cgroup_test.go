// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		mounts string
		want   Trees
	}{
		"v1": {
			"cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
			Trees{Roots: []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"}},
		},
		"hybrid": {
			"cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
			Trees{Roots: []string{"/sys/fs/cgroup/cpu"}, Empty: []string{"/sys/fs/cgroup/unified"}},
		},
		"v2": {
			"cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n",
			Trees{Unified: true, Roots: []string{"/sys/fs/cgroup"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.mounts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := parse("/dev/sda / ext4 rw 0 0\n"); err == nil {
		t.Error("a machine without cgroups was not refused")
	}
}

func TestNewCPUSetInheritsItsParents(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "new")
	for path, content := range map[string]string{
		"cpuset.cpus": "0-3\n", "cpuset.mems": "0\n", "new/cpuset.cpus": "\n", "new/cpuset.mems": "1\n",
	} {
		path = filepath.Join(parent, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := inheritCPUSet(parent, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cpuset.cpus": "0-3\n", "cpuset.mems": "1\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestWeigh(t *testing.T) {
	for name, test := range map[string]struct {
		unified    bool
		file, want string
	}{
		"v1": {false, "cpu.shares", "4096"},
		"v2": {true, "cpu.weight", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			processor, other := t.TempDir(), t.TempDir()
			file := filepath.Join(processor, test.file)
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := (Trees{Unified: test.unified, Roots: []string{processor, other}}).Weigh("/", 4); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != test.want {
				t.Errorf("%s is %q, %v; want %q", test.file, got, err, test.want)
			}
			if entries, _ := os.ReadDir(other); len(entries) > 0 {
				t.Errorf("the tree of another controller has %v", entries)
			}
		})
	}
}

func TestResume(t *testing.T) {
	root := t.TempDir()
	stopped := exec.Command("sleep", "60")
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stopped.Process.Kill(); _ = stopped.Wait() }()
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(stopped.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it was not stopped: %v, %v", status, err)
	}
	if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a/b/cgroup.procs"), fmt.Appendln(nil, stopped.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Trees{Roots: []string{root}}).Resume("/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(stopped.Process.Pid, &status, syscall.WCONTINUED, nil); err != nil || !status.Continued() {
		t.Errorf("it did not go on: %v, %v", status, err)
	}
}
