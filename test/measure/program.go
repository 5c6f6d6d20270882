// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Program is an operator that runs as a process of its own.
type Program struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended
}

// Start starts a program, which appends to a log, and waits until it is ready by its health endpoint (/readyz), for a minute at most.
func Start(ctx context.Context, command *exec.Cmd, logFile, health string) (*Program, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // whoever runs the bench names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &Program{command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // how it ended is in its log
		close(p.ended)
	}()
	if err := p.awaitHealth(ctx, health); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w (its log is %s)", err, logFile)
	}
	return p, nil
}

func (p *Program) awaitHealth(ctx context.Context, address string) error {
	client := http.Client{Timeout: time.Second}
	for range 600 {
		response, err := client.Get("http://" + address + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ended:
			return fmt.Errorf("%s ended: %v", filepath.Base(p.command.Path), p.command.ProcessState)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not ready after a minute", filepath.Base(p.command.Path))
}

// PID is that of the process.
func (p *Program) PID() int { return p.command.Process.Pid }

// Kill ends the program as a crash would; it may have ended already.
func (p *Program) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// FreeAddresses finds ports of this machine that nobody uses now.
func FreeAddresses(n int) ([]string, error) {
	var list []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		list = append(list, listener.Addr().String())
	}
	return list, nil
}
