// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Record identifies a process for as long as the machine exists: process IDs are
// used again, but not with the same start time in the same boot.
type Record struct {
	PID int `json:"pid"`
	// Start is the process's start time in clock ticks since the boot.
	Start string `json:"start"`
	// Boot is the kernel's identifier of this boot.
	Boot string `json:"boot"`
}

// NewRecord identifies the running process pid.
func NewRecord(pid int) (Record, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Record{}, fmt.Errorf("identifying process %d: %w", pid, err)
	}
	_, start, err := parseStat(string(stat))
	if err != nil {
		return Record{}, err
	}
	boot, err := bootID()
	return Record{PID: pid, Start: start, Boot: boot}, err
}

// Alive reports whether the very process is still running.
func (r Record) Alive() bool {
	boot, err := bootID()
	if err != nil || boot != r.Boot {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID))
	if err != nil {
		return false
	}
	state, start, err := parseStat(string(stat))
	return err == nil && start == r.Start && state != "Z" && state != "X"
}

// parseStat takes state (field 3) and start time (field 22) out of the text of
// /proc/PID/stat. The name in field 2 may itself hold blanks and parentheses.
func parseStat(stat string) (state, start string, err error) {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return "", "", fmt.Errorf("not a process status: %q", stat)
	}
	f := strings.Fields(stat[i+1:])
	if len(f) < 20 {
		return "", "", fmt.Errorf("not a process status: %q", stat)
	}
	return f[0], f[19], nil
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// Find reads the record of the member in dir. ok is false if it is not running:
// never started, stopped, or left over from a crash or an earlier boot.
func Find(dir string) (r Record, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, false, nil // half-written when the machine went down
	}
	return r, r.Alive(), nil
}

// Exists reports whether a member was ever started in dir.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, recordFile))
	return err == nil
}

// Stop ends the member in dir and everything in it, if it runs.
func Stop(dir string) error {
	r, running, err := Find(dir)
	if err != nil || !running {
		return err
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", r.PID, err)
	}
	// The kernel ends the whole process namespace before its first process is gone.
	for deadline := time.Now().Add(30 * time.Second); r.Alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not end; see `ps -o stat,wchan %d`", r.PID, r.PID)
		}
	}
	return nil
}

// Programs reads what the supervisor last reported of the member in dir.
func Programs(dir string) (map[string]ProgramStatus, error) {
	data, err := os.ReadFile(filepath.Join(dir, statusFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var status map[string]ProgramStatus
	if err := json.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("reading %s: %w", statusFile, err)
	}
	return status, nil
}
