// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle starts, stops and inspects the cluster.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// Cluster is the machine's one local cluster.
type Cluster struct {
	Dirs state.Dirs
	// Out gets progress.
	Out io.Writer
	// Now is the clock.
	Now func() time.Time
}

// Options of Up.
type Options struct {
	// Nodes, from 1.
	Nodes int
	// MetricsServer runs metrics-server, also when the cluster was started without it.
	MetricsServer bool
	// Engines loads the images of Redis, Valkey and what the samples use; without
	// it only what the cluster itself runs is loaded.
	Engines bool
}

// stage runs one part of a command and prints how long it took.
func (c *Cluster) stage(name string, run func() error) error {
	started := c.Now()
	if err := run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(c.Out, "%6.1f s  %s\n", c.Now().Sub(started).Seconds(), name)
	return nil
}

// lock serializes commands that change the cluster.
func (c *Cluster) lock() (func(), error) {
	return c.Dirs.Lock(func() { fmt.Fprintln(c.Out, "waiting for another cluster command to end") })
}

// members are the control plane and the nodes of this cluster, running or not. A
// node's image store that outlived an earlier cluster does not count.
func (c *Cluster) members() ([]string, error) {
	folders, err := c.Dirs.Members()
	if err != nil {
		return nil, err
	}
	var members []string
	for _, m := range folders {
		if sandbox.Exists(c.Dirs.Member(m)) {
			members = append(members, m)
		}
	}
	return members, nil
}

// nodeNames are the nodes of this cluster, running or not.
func (c *Cluster) nodeNames() ([]string, error) {
	members, err := c.members()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(members, func(m string) bool { return m == state.ControlPlane }), nil
}

// running reports whether the member lives.
func (c *Cluster) running(member string) (sandbox.Record, bool, error) {
	return sandbox.Find(c.Dirs.Member(member))
}

// kubectl runs kubectl with the administrator's rights and returns its output.
func (c *Cluster) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	binary, err := c.installed("kubernetes", "kubectl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"--kubeconfig=" + c.Dirs.Kubeconfig(), "--request-timeout=10s"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// installed is the path of a binary that the running cluster uses.
func (c *Cluster) installed(tool, binary string) (string, error) {
	path := filepath.Join(c.Dirs.State, "tools", tool, binary)
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("the cluster is not up; run hack/cluster.sh up")
	}
	return path, nil
}

// Down stops everything and removes the cluster's data. Images stay in the nodes'
// stores and in the cache, unless purge says to remove them and the built tools too.
func (c *Cluster) Down(purge bool) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	if err := c.stage("stopping the cluster", c.reset); err != nil || !purge {
		return err
	}
	return c.stage("removing images and tools", func() error {
		for _, dir := range []string{c.Dirs.State, c.Dirs.Images(), filepath.Join(c.Dirs.Cache, "tools")} {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		return nil
	})
}

// reset ends every member, living or left over, and removes what belongs to this
// run of the cluster.
func (c *Cluster) reset() error {
	members, err := c.Dirs.Members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := c.stopMember(m); err != nil {
			return err
		}
		if err := wipeMember(c.Dirs.Member(m)); err != nil {
			return err
		}
	}
	if err := c.removeCgroup(config.CgroupRoot(c.Dirs.Name)); err != nil {
		return err
	}
	if err := c.removeHostLink(); err != nil {
		return err
	}
	for _, path := range []string{c.Dirs.PKI(), c.Dirs.Kubeconfig(), c.Dirs.Loaded(), filepath.Join(c.Dirs.State, "tools")} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// imageStore is the part of a node's folder that outlives the cluster.
const imageStore = "var/lib/containerd"

// wipeMember removes a member's folder but for its image store.
func wipeMember(dir string) error {
	keep := filepath.Join(dir, imageStore)
	for level := dir; ; {
		entries, err := os.ReadDir(level)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		next := ""
		for _, e := range entries {
			path := filepath.Join(level, e.Name())
			if path == keep {
				continue
			}
			if strings.HasPrefix(keep, path+"/") {
				next = path
				continue
			}
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		level = next
	}
}
