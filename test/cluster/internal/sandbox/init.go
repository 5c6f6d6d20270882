// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// gateFD is the pipe from Start: one byte means go.
const gateFD = 3

// Init is the life of the first process in the namespaces of the member in dir. It
// returns only on an error before the programs were started.
func Init(dir string) error {
	gate := os.NewFile(gateFD, "gate")
	if n, _ := gate.Read(make([]byte, 1)); n == 0 {
		return fmt.Errorf("the command that started this member ended before it was done")
	}
	gate.Close()
	data, err := os.ReadFile(filepath.Join(dir, specFile))
	if err != nil {
		return err
	}
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("reading %s: %w", specFile, err)
	}
	if err := mountAll(dir, spec.Binds); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := configureNetwork(spec.Network); err != nil {
		return err
	}
	for path, value := range spec.Sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0); err != nil {
			return fmt.Errorf("setting a kernel parameter: %w", err)
		}
	}
	return supervise(spec.Programs)
}

// mountAll lays the member's own /run, /var and /proc and the binds over the
// machine's file system, in this mount namespace only.
func mountAll(dir string, binds []Bind) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts: %w", err)
	}
	binds = append([]Bind{
		{Source: filepath.Join(dir, varDir), Target: "/var"},
		{Source: dir, Target: MemberDir},
	}, binds...)
	// Sources are opened before anything is mounted, since a mount may hide them.
	sources := make([]int, len(binds))
	for i, b := range binds {
		fd, err := unix.Open(b.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening %s: %w", b.Source, err)
		}
		sources[i] = fd
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	for i, b := range binds {
		if err := bind(sources[i], b); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", b.Source, b.Target, err)
		}
	}
	if err := os.MkdirAll("/var/tmp", 0o1777); err != nil {
		return err
	}
	if err := os.Symlink("/run", "/var/run"); err != nil && !os.IsExist(err) {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	// Containers with mount propagation need a shared root, as on any node.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func bind(source int, b Bind) error {
	defer unix.Close(source)
	if err := os.MkdirAll(b.Target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source), b.Target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if !b.ReadOnly {
		return nil
	}
	return unix.Mount("", b.Target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

func configureNetwork(lines []string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("configuring the network: %w: %s", err, out)
	}
	return nil
}

// Enter makes the calling process part of the network of the running member in
// dir, gives it resolvConf as /etc/resolv.conf, and turns it into argv. It returns
// only on an error. The caller must have locked its goroutine to its thread.
func Enter(dir, resolvConf string, argv []string) error {
	r, running, err := Find(dir)
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("the cluster is not running")
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", r.PID), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the network namespace: %w", err)
	}
	if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network namespace: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("separating the mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts: %w", err)
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("replacing /etc/resolv.conf: %w", err)
	}
	if err := unix.Mount(resolvConf, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("replacing /etc/resolv.conf: %w", err)
	}
	return syscall.Exec(path, argv, os.Environ())
}
