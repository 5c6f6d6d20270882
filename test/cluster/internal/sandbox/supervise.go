// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// restartDelay is the pause before a program that ended is started again.
const restartDelay = time.Second

// supervisor is the first process of a process namespace: besides its programs it
// must collect every process whose parent ended.
type supervisor struct {
	mu     sync.Mutex
	exits  map[int]chan syscall.WaitStatus // by process ID of a running program
	status map[string]ProgramStatus
}

func supervise(programs []Program) error {
	s := &supervisor{exits: map[int]chan syscall.WaitStatus{}, status: map[string]ProgramStatus{}}
	for _, p := range programs {
		go s.keepRunning(p)
	}
	s.collect()
	return nil
}

// collect waits for ended processes, forever.
func (s *supervisor) collect() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err != nil { // no process at the moment
			time.Sleep(50 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		if exit, ok := s.exits[pid]; ok {
			exit <- ws
			delete(s.exits, pid)
		}
		s.mu.Unlock()
	}
}

func (s *supervisor) keepRunning(p Program) {
	for {
		waitForSocket(p.WaitFor)
		exit, err := s.start(p)
		ended := fmt.Sprint(err)
		if err == nil {
			s.report(p.Name, func(st *ProgramStatus) { st.Running = true })
			ended = describe(<-exit)
		}
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339), p.Name, ended)
		s.report(p.Name, func(st *ProgramStatus) { st.Running, st.LastExit, st.Restarts = false, ended, st.Restarts+1 })
		time.Sleep(restartDelay)
	}
}

// start holds the lock until the process ID is known, so that collect cannot see
// its end before.
func (s *supervisor) start(p Program) (<-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(filepath.Join(MemberDir, logDir, p.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(p.Args[0], p.Args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(os.Environ(), p.Env...),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Args[0], err)
	}
	exit := make(chan syscall.WaitStatus, 1)
	s.exits[pid] = exit
	return exit, nil
}

func (s *supervisor) report(name string, change func(*ProgramStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status[name]
	change(&st)
	s.status[name] = st
	if err := writeJSON(filepath.Join(MemberDir, statusFile), s.status); err != nil {
		fmt.Fprintln(os.Stderr, "writing the status:", err)
	}
}

func describe(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return "ended by signal " + ws.Signal().String()
	}
	return fmt.Sprintf("ended with code %d", ws.ExitStatus())
}

func waitForSocket(path string) {
	for path != "" {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
			return
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			fmt.Fprintln(os.Stderr, "waiting for a socket:", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
