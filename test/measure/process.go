// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure has what benchmarks of the operator share: what processes use, and what they ask of an API server.
package measure

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, the unit of times in /proc/PID/stat; it is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// CPUSeconds is the processor time that a process has used, in user and kernel mode.
func CPUSeconds(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(text))
}

// parseCPU reads utime and stime from a /proc/PID/stat (proc(5)). The command's name may hold blanks and brackets.
func parseCPU(stat string) (float64, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat: cannot read %q", stat)
	}
	var ticks uint64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return float64(ticks) / ticksPerSecond, nil
}

// Memory is what a process has resident, in MB (10⁶ bytes).
type Memory struct {
	// Peak is the most at any time so far.
	Peak float64 `json:"peakMB"`
	// Own is now and the process's alone; File is now and mapped from files, the program itself above all, which the kernel may
	// drop and read again.
	Own  float64 `json:"ownMB"`
	File float64 `json:"fileMB"`
}

// MemoryOf reads what a process has resident.
func MemoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	return parseMemory(string(text))
}

// parseMemory reads VmHWM, RssAnon and RssFile from a /proc/PID/status (proc(5)).
func parseMemory(status string) (Memory, error) {
	var m Memory
	found := 0
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		target := map[string]*float64{"VmHWM:": &m.Peak, "RssAnon:": &m.Own, "RssFile:": &m.File}[fields[0]]
		if target == nil {
			continue
		}
		kib, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return m, fmt.Errorf("/proc/PID/status: %s %w", fields[0], err)
		}
		*target = kib * 1024 / 1e6
		found++
	}
	if found != 3 {
		return m, fmt.Errorf("/proc/PID/status lacks VmHWM, RssAnon or RssFile")
	}
	return m, nil
}

// ChildPID finds the process that this one started under a name.
func ChildPID(name string) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		if command, parent := parseParent(string(stat)); command == name && parent == os.Getpid() {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("there is no process %s", name)
}

// parseParent reads the command and the parent from a /proc/PID/stat.
func parseParent(stat string) (command string, parent int) {
	begin, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if begin < 0 || end < begin {
		return "", 0
	}
	if fields := strings.Fields(stat[end+1:]); len(fields) > 1 {
		parent, _ = strconv.Atoi(fields[1])
	}
	return stat[begin+1 : end], parent
}

// Allocations are what a Go process has allocated since it started.
type Allocations struct {
	Bytes   float64 `json:"bytes"`
	Objects float64 `json:"objects"`
}

// Allocated asks a process's metrics endpoint; both operators have the Go collector there.
func Allocated(address string) (Allocations, error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return Allocations{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Allocations{}, fmt.Errorf("metrics: %s", response.Status)
	}
	return parseAllocations(response.Body)
}

// parseAllocations reads two counters from Prometheus' text format.
func parseAllocations(text io.Reader) (Allocations, error) {
	var a Allocations
	found := 0
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		target := map[string]*float64{"go_memstats_alloc_bytes_total": &a.Bytes, "go_memstats_mallocs_total": &a.Objects}[name]
		if target == nil {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return a, fmt.Errorf("metrics: %s: %w", name, err)
		}
		*target = n
		found++
	}
	if err := lines.Err(); err != nil {
		return a, err
	}
	if found != 2 {
		return a, fmt.Errorf("metrics: no go_memstats_alloc_bytes_total and go_memstats_mallocs_total")
	}
	return a, nil
}
