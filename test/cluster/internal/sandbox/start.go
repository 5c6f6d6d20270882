// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// InitCommand is the hidden command under which Start runs Init.
const InitCommand = "sandbox-init"

// Held is a member whose namespaces exist, but in which nothing runs yet: its
// network links can be made now.
type Held struct {
	Record
	gate *os.File
}

// Start makes the namespaces of the member in dir. executable is a copy of this
// program that stays in place as long as the member lives.
func Start(dir, executable string, spec Spec) (*Held, error) {
	for _, sub := range []string{logDir, varDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := writeJSON(filepath.Join(dir, specFile), spec); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, logDir, "supervisor.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	wait, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer wait.Close()
	cmd := exec.Command(executable, InitCommand, dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	// A cluster for tests has memory to spare and processor time not: its programs, most of them in Go, collect garbage less often.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "GOGC=300"}
	cmd.ExtraFiles = []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		gate.Close()
		return nil, fmt.Errorf("making namespaces: %w", err)
	}
	record, err := NewRecord(cmd.Process.Pid)
	if err == nil {
		err = writeJSON(filepath.Join(dir, recordFile), record)
	}
	if err != nil {
		gate.Close()
		_ = cmd.Process.Kill()
		return nil, err
	}
	return &Held{Record: record, gate: gate}, nil
}

// Release lets the member's programs start.
func (h *Held) Release() error {
	defer h.gate.Close()
	_, err := h.gate.Write([]byte{1})
	return err
}

// writeJSON replaces the file in one step, so that a reader or a crash never sees
// half of it.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
