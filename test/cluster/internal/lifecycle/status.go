// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// StopNode ends a node as a power cut would.
func (c *Cluster) StopNode(name string) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	if err := c.checkNode(name); err != nil {
		return err
	}
	return c.stage("stopping "+name, func() error { return c.stopMember(name) })
}

// StartNode starts a node that was stopped.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	if err := c.checkNode(name); err != nil {
		return err
	}
	controlPlane, alive, err := c.running(state.ControlPlane)
	if err != nil {
		return err
	}
	if !alive {
		return errors.New("the cluster is not up; run hack/cluster.sh up")
	}
	if _, alive, err := c.running(name); err != nil || alive {
		return err
	}
	nodes, err := c.nodeNames()
	if err != nil {
		return err
	}
	return c.stage("starting "+name, func() error { return c.bringBack(name, len(nodes), controlPlane.PID) })
}

func (c *Cluster) checkNode(name string) error {
	nodes, err := c.nodeNames()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n == name {
			return nil
		}
	}
	return fmt.Errorf("there is no node %q; the nodes are %s", name, strings.Join(nodes, ", "))
}

// Status describes members, programs and nodes. The error says what is wrong.
func (c *Cluster) Status(ctx context.Context) (string, error) {
	members, err := c.members()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	var wrong []string
	for _, m := range members {
		record, alive, err := c.running(m)
		if err != nil {
			return "", err
		}
		if !alive {
			fmt.Fprintf(&text, "%s: stopped\n", m)
			wrong = append(wrong, m+" is stopped")
			continue
		}
		fmt.Fprintf(&text, "%s: process %d\n", m, record.PID)
		programs, err := sandbox.Programs(c.Dirs.Member(m))
		if err != nil {
			return "", err
		}
		wrong = append(wrong, describePrograms(&text, m, programs)...)
	}
	if _, alive, err := c.running(state.ControlPlane); err != nil || !alive {
		return text.String(), errors.Join(err, errors.New("the cluster is not up; run hack/cluster.sh up"))
	}
	nodes, err := c.kubectl(ctx, "", "get", "nodes", "-o", "wide", "-L", "topology.kubernetes.io/zone")
	if err != nil {
		return text.String(), err
	}
	fmt.Fprintf(&text, "\n%s", nodes)
	if strings.Contains(nodes, "NotReady") {
		wrong = append(wrong, "a node is not ready")
	}
	if len(wrong) > 0 {
		return text.String(), errors.New(strings.Join(wrong, "; "))
	}
	return text.String(), nil
}

// describePrograms writes a line a program and returns what is wrong with them.
func describePrograms(w io.Writer, member string, programs map[string]sandbox.ProgramStatus) []string {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	var wrong []string
	for _, name := range names {
		p := programs[name]
		word := "running"
		if !p.Running {
			word = "not running"
			wrong = append(wrong, member+"/"+name+" is not running")
		}
		if p.Restarts > 0 {
			word += fmt.Sprintf(", started again %d times (%s)", p.Restarts, p.LastExit)
		}
		fmt.Fprintf(w, "  %-24s %s\n", name, word)
	}
	return wrong
}

// ListLogs lists the components that have logs.
func (c *Cluster) ListLogs(w io.Writer) error {
	files, err := filepath.Glob(c.Dirs.Log("*", "*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		member := filepath.Base(filepath.Dir(filepath.Dir(f)))
		fmt.Fprintf(w, "%s/%s\n", member, strings.TrimSuffix(filepath.Base(f), ".log"))
	}
	return nil
}

// Logs prints the log of a component: PROGRAM of the control plane, or
// MEMBER/PROGRAM.
func (c *Cluster) Logs(component string, follow bool) error {
	member, program, ok := strings.Cut(component, "/")
	if !ok {
		member, program = state.ControlPlane, component
	}
	file := c.Dirs.Log(member, program)
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("there is no log of %s; hack/cluster.sh logs lists them", component)
	}
	cmd := exec.Command("cat", file)
	if follow {
		cmd = exec.Command("tail", "-n", "+1", "-f", file)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
