// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"middleware.hc.cn/operator/test/cluster/internal/address"
	"middleware.hc.cn/operator/test/cluster/internal/cgroup"
	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// startControlPlane makes the control plane's namespaces, linked to the host.
func (c *Cluster) startControlPlane(nodes int) (*sandbox.Held, error) {
	used, err := address.UsedByMachine()
	if err != nil {
		return nil, err
	}
	link, err := address.ChooseHostLink(used)
	if err != nil {
		return nil, err
	}
	if err := c.writeControlPlaneFiles(link); err != nil {
		return nil, err
	}
	held, err := c.startMember(state.ControlPlane, sandbox.Spec{
		Hostname: state.ControlPlane,
		Binds: append(c.toolBinds("kubernetes", "etcd", "cluster"),
			sandbox.Bind{Source: filepath.Join(c.Dirs.State, "members"), Target: config.Members},
			sandbox.Bind{Source: c.Dirs.Images(), Target: config.BuiltImages, ReadOnly: true},
			sandbox.Bind{Source: c.Dirs.Loaded(), Target: config.LoadedImages, ReadOnly: true}),
		Network:  config.ControlPlaneNetwork(link, nodes),
		Sysctls:  forwarding,
		Programs: config.ControlPlane(),
	})
	if err != nil {
		return nil, err
	}
	if err := ip(0, config.WireControlPlane(c.Dirs.Name, held.PID, link)); err != nil {
		return nil, err
	}
	return held, ip(held.PID, []string{"link add br0 type bridge"})
}

// forwarding lets a member route packets; it is a parameter of the namespace.
var forwarding = map[string]string{"net/ipv4/ip_forward": "1"}

// startNode makes the namespaces of node number n, linked to the control plane.
func (c *Cluster) startNode(n, nodes, controlPlane int) (*sandbox.Held, error) {
	name := config.NodeName(n)
	if err := c.writeNodeFiles(n); err != nil {
		return nil, err
	}
	held, err := c.startMember(name, sandbox.Spec{
		Hostname: name,
		Binds:    c.toolBinds("kubernetes", "containerd"),
		Network:  config.NodeNetwork(n, nodes),
		Sysctls:  forwarding,
		Programs: config.Node(n),
	})
	if err != nil {
		return nil, err
	}
	if err := ip(0, config.WireNode(name, controlPlane, held.PID)); err != nil {
		return nil, err
	}
	return held, ip(controlPlane, []string{"link set " + name + " master br0", "link set " + name + " up"})
}

func (c *Cluster) toolBinds(tools ...string) []sandbox.Bind {
	var binds []sandbox.Bind
	for _, t := range tools {
		source := filepath.Join(c.Dirs.State, "tools", t)
		binds = append(binds, sandbox.Bind{Source: source, Target: config.Tools + "/" + t, ReadOnly: true})
	}
	return binds
}

// startMember starts a member in a cgroup of its own, so that it does not end with
// the session of the user who started it.
func (c *Cluster) startMember(name string, spec sandbox.Spec) (*sandbox.Held, error) {
	trees, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	programs := config.Cgroup(c.Dirs.Name, name) + "/system"
	if err := trees.Create(programs); err != nil {
		return nil, err
	}
	if err := trees.Delegate(config.Cgroup(c.Dirs.Name, name)); err != nil {
		return nil, err
	}
	// Compilers and tests beside the cluster must not look like failing machines in it.
	if err := trees.Weigh(config.CgroupRoot(c.Dirs.Name), 4); err != nil {
		return nil, err
	}
	executable := filepath.Join(c.Dirs.State, "tools", "cluster", "cluster")
	held, err := sandbox.Start(c.Dirs.Member(name), executable, spec)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return held, trees.Add(programs, held.PID)
}

// stopMember ends a member and all its processes, and removes its cgroup.
func (c *Cluster) stopMember(name string) error {
	if err := sandbox.Stop(c.Dirs.Member(name)); err != nil {
		return fmt.Errorf("stopping %s: %w", name, err)
	}
	return c.removeCgroup(config.Cgroup(c.Dirs.Name, name))
}

func (c *Cluster) removeCgroup(path string) error {
	trees, err := cgroup.Detect()
	if err != nil {
		return err
	}
	return trees.Remove(path)
}

// ip runs `ip -batch` lines in the network namespace of process pid, or on the
// host if pid is 0.
func ip(pid int, lines []string) error {
	cmd := exec.Command("ip", "-batch", "-")
	if pid != 0 {
		cmd = exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid), "ip", "-batch", "-")
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s (lines: %s)", err, strings.TrimSpace(string(out)), strings.Join(lines, "; "))
	}
	return nil
}

// removeHostLink removes the link to the control plane. It vanishes with the
// control plane's namespace, but the kernel keeps that for minutes after its last
// process, while TCP connections die out, or as long as a program of exec-net runs.
func (c *Cluster) removeHostLink() error {
	name := config.HostInterface(c.Dirs.Name)
	if _, err := net.InterfaceByName(name); err != nil {
		return nil
	}
	return ip(0, []string{"link del " + name})
}

// write writes a file, and its folder if needed, readable by root alone.
func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
