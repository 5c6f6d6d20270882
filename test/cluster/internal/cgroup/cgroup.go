// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes and removes control groups, in whichever of the two forms
// the machine has: cgroup v1 (one tree a controller) or v2 (one tree).
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Trees are the cgroup file systems that are mounted on the machine.
type Trees struct {
	// Unified reports whether controllers are in the v2 tree; otherwise every root is a
	// v1 controller's.
	Unified bool
	// Roots are the mount points of the trees that groups are made in.
	Roots []string
	// Empty are the mount points of v2 trees without controllers, beside v1 ones.
	// Container runtimes make groups in them too.
	Empty []string
}

// Detect reads the machine's mounts.
func Detect() (Trees, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return Trees{}, fmt.Errorf("reading the mounts: %w", err)
	}
	return parse(string(mounts))
}

// parse prefers v1 controllers where both forms are mounted (the "hybrid" layout
// has an empty v2 tree beside them).
func parse(mounts string) (Trees, error) {
	var v1, v2 []string
	for _, line := range strings.Split(mounts, "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) < 3:
		case f[2] == "cgroup":
			v1 = append(v1, f[1])
		case f[2] == "cgroup2":
			v2 = append(v2, f[1])
		}
	}
	switch {
	case len(v1) > 0:
		return Trees{Roots: v1, Empty: v2}, nil
	case len(v2) > 0:
		return Trees{Unified: true, Roots: v2[:1]}, nil
	}
	return Trees{}, errors.New("no cgroup file system is mounted at /sys/fs/cgroup; the kubelet needs one")
}

// Create makes the group at path (such as /a/b) in every tree.
func (t Trees) Create(path string) error {
	for _, root := range t.Roots {
		if t.Unified {
			if err := delegate(root); err != nil {
				return err
			}
		}
		dir := root
		for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("making the cgroup: %w", err)
			}
			if err := inheritCPUSet(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delegate lets groups below path have controllers (v2; nothing to do in v1).
// After that path itself must hold no process.
func (t Trees) Delegate(path string) error {
	if !t.Unified {
		return nil
	}
	dir := t.Roots[0]
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		dir = filepath.Join(dir, part)
		if err := delegate(dir); err != nil {
			return err
		}
	}
	return nil
}

func delegate(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(available)) {
		// One by one: a controller that cannot be delegated must not stop the others.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
	}
	return nil
}

// inheritCPUSet copies the processors and memory nodes that a new v1 cpuset lacks:
// while they are empty no process can be put in it.
func inheritCPUSet(parent, dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		if current, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.TrimSpace(string(current)) != "" {
			continue // not a cpuset, or set already
		}
		value, err := os.ReadFile(filepath.Join(parent, name))
		if err != nil || strings.TrimSpace(string(value)) == "" {
			continue // v2: empty means inherited
		}
		if err := os.WriteFile(filepath.Join(dir, name), value, 0); err != nil {
			return fmt.Errorf("preparing the cpuset: %w", err)
		}
	}
	return nil
}

// Weigh gives the group at path so many times the processor time of a group beside it, from 1 to 100, when there is not
// enough for both.
func (t Trees) Weigh(path string, times int) error {
	name, one := "cpu.shares", 1024
	if t.Unified {
		name, one = "cpu.weight", 100
	}
	for _, root := range t.Roots {
		file := filepath.Join(root, path, name)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue // the tree of another controller
		}
		if err := os.WriteFile(file, []byte(strconv.Itoa(times*one)), 0); err != nil {
			return fmt.Errorf("weighing the cgroup: %w", err)
		}
	}
	return nil
}

// Add moves a process into the group at path in every tree.
func (t Trees) Add(path string, pid int) error {
	for _, root := range t.Roots {
		file := filepath.Join(root, path, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("moving process %d into the cgroup %s: %w", pid, filepath.Join(root, path), err)
		}
	}
	return nil
}

// Resume lets every process of the group at path, and of those below it, go on that somebody stopped (SIGSTOP).
func (t Trees) Resume(path string) error {
	return filepath.WalkDir(filepath.Join(t.Roots[0], path), func(file string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a container has ended
		}
		if err != nil || filepath.Base(file) != "cgroup.procs" {
			return err
		}
		processes, err := os.ReadFile(file)
		if err != nil {
			return nil // so has its group
		}
		for _, field := range strings.Fields(string(processes)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("having process %d go on: %w", pid, err)
			}
		}
		return nil
	})
}

// Remove removes the group at path and those below it from every tree; none may
// hold a process. The kernel may need a moment after the last process ended, so it
// tries for up to two seconds.
func (t Trees) Remove(path string) error {
	var err error
	for range 40 {
		err = nil
		for _, root := range slices.Concat(t.Roots, t.Empty) {
			err = errors.Join(err, removeTree(filepath.Join(root, path)))
		}
		if err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("removing the cgroup %s: %w", path, err)
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
