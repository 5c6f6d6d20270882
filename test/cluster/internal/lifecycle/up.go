// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"middleware.hc.cn/operator/test/cluster/internal/addon"
	"middleware.hc.cn/operator/test/cluster/internal/address"
	"middleware.hc.cn/operator/test/cluster/internal/cgroup"
	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/image"
	"middleware.hc.cn/operator/test/cluster/internal/preflight"
	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// readyTimeout bounds the wait for nodes and CoreDNS.
const readyTimeout = 3 * time.Minute

// Up makes the cluster as the options say. A healthy one is left as it is; one
// that lost nodes gets them back, with their data; one that lost its control plane
// (a crash, a reboot) starts empty.
func (c *Cluster) Up(ctx context.Context, o Options) error {
	if o.Nodes < 1 || o.Nodes > address.MaxNodes {
		return fmt.Errorf("--nodes is %d; a cluster has 1 to %d nodes", o.Nodes, address.MaxNodes)
	}
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	controlPlane, alive, err := c.running(state.ControlPlane)
	if err != nil {
		return err
	}
	if alive {
		return c.complete(ctx, o, controlPlane.PID)
	}
	return c.create(ctx, o)
}

// complete brings a cluster whose control plane runs to its full number of nodes.
func (c *Cluster) complete(ctx context.Context, o Options, controlPlane int) error {
	nodes, err := c.nodeNames()
	if err != nil {
		return err
	}
	if len(nodes) != o.Nodes {
		return fmt.Errorf("a cluster of %d nodes is up, not %d; run hack/cluster.sh down first", len(nodes), o.Nodes)
	}
	if err := c.resume(); err != nil {
		return err
	}
	var missing []string
	for _, name := range nodes {
		if _, alive, err := c.running(name); err != nil {
			return err
		} else if !alive {
			missing = append(missing, name)
		}
	}
	for _, name := range missing {
		if err := c.stage("starting "+name, func() error { return c.bringBack(name, len(nodes), controlPlane) }); err != nil {
			return err
		}
	}
	if o.MetricsServer {
		if err := c.stage("metrics-server", func() error { return c.addMetricsServer(ctx) }); err != nil {
			return err
		}
	}
	return c.stage("ready", func() error { return c.waitReady(ctx, o.Nodes) })
}

// resume lets programs go on that a test had stopped when it was killed.
func (c *Cluster) resume() error {
	trees, err := cgroup.Detect()
	if err != nil {
		return err
	}
	return trees.Resume(config.CgroupRoot(c.Dirs.Name))
}

// addMetricsServer runs metrics-server on a cluster that may have been started without it.
func (c *Cluster) addMetricsServer(ctx context.Context) error {
	archive, err := c.findArchive("metrics-server")
	if err != nil {
		return err
	}
	if err := c.importIntoAll([]string{archive}); err != nil {
		return err
	}
	_, err = c.kubectl(ctx, addon.MetricsServer(), "apply", "--server-side", "--field-manager=cluster", "-f", "-")
	return err
}

// create makes a new cluster.
func (c *Cluster) create(ctx context.Context, o Options) error {
	started := c.Now()
	if err := preflight.Install(preflight.Runtime, c.Out); err != nil {
		return err
	}
	if err := c.stage("removing what an earlier cluster left", c.reset); err != nil {
		return err
	}
	if err := c.stage("tools", c.installTools); err != nil {
		return err
	}
	var archives []string
	err := c.stage("images", func() error {
		var err error
		archives, err = c.buildImages(o)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.stage("processes", func() error { return c.startAll(o.Nodes) }); err != nil {
		return err
	}
	imported := make(chan error, 1)
	go func() { imported <- c.importIntoAll(archives) }()
	err = c.stage("API server", func() error { return c.waitAPI(ctx) })
	if err != nil {
		return errors.Join(err, <-imported)
	}
	if err := c.stage("images in the nodes", func() error { return <-imported }); err != nil {
		return err
	}
	err = c.stage("storage class, CoreDNS, metrics-server", func() error {
		manifests := addon.Base()
		if o.MetricsServer {
			manifests += "\n---\n" + addon.MetricsServer()
		}
		_, err := c.kubectl(ctx, manifests, "apply", "--server-side", "--field-manager=cluster", "-f", "-")
		return err
	})
	if err != nil {
		return err
	}
	if err := c.stage("ready", func() error { return c.waitReady(ctx, o.Nodes) }); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%6.1f s  in all; export KUBECONFIG=%s\n", c.Now().Sub(started).Seconds(), c.Dirs.Kubeconfig())
	return nil
}

// clusterTools are the tool modules whose binaries members run.
var clusterTools = []string{"kubernetes", "etcd", "containerd"}

// installTools builds the tools that are not in the cache and links them into the
// cluster's state, beside a copy of this program: a later build of another version
// must not change what a running cluster uses.
func (c *Cluster) installTools() error {
	dir := filepath.Join(c.Dirs.State, "tools")
	if err := os.MkdirAll(filepath.Join(dir, "cluster"), 0o755); err != nil {
		return err
	}
	for i, name := range clusterTools {
		path, err := c.tool(fmt.Sprintf("tool %d of %d", i+1, len(clusterTools)), name)
		if err != nil {
			return err
		}
		if err := os.Symlink(filepath.Dir(path), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cluster", "cluster"), self, 0o755)
}

// tool is the path of a built tool: the module's binary of the same name, or another.
func (c *Cluster) tool(progress, name string, binary ...string) (string, error) {
	cmd := exec.Command(filepath.Join(c.Dirs.Project, "hack", "tool.sh"), append([]string{name}, binary...)...)
	cmd.Env = append(os.Environ(), "MIDDLEWARE_OPERATOR_CACHE="+c.Dirs.Cache)
	cmd.Stderr = prefixed{out: c.Out, prefix: progress + ": "}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// wants says which images are put into the nodes when they start.
func (o Options) wants(r image.Recipe) bool {
	switch {
	case r.OLM:
		return false
	case r.Name == "metrics-server":
		return o.MetricsServer
	}
	return r.System || o.Engines
}

// buildImages makes the image archives that are not in the cache.
func (c *Cluster) buildImages(o Options) ([]string, error) {
	var wanted []image.Recipe
	for _, r := range image.Recipes() {
		if o.wants(r) {
			wanted = append(wanted, r)
		}
	}
	return c.imageBuilder().Build(wanted)
}

func (c *Cluster) imageBuilder() image.Builder {
	return image.Builder{
		Dir:  c.Dirs.Images(),
		Tool: func(module, binary string) (string, error) { return c.tool("tool for an image", module, binary) },
		Out:  c.Out,
	}
}

// BuildImages makes the image archives and returns their paths: those of OLM, or
// what a cluster with engines starts with.
func (c *Cluster) BuildImages(olm bool) ([]string, error) {
	var wanted []image.Recipe
	for _, r := range image.Recipes() {
		if olm && r.OLM || !olm && (Options{Engines: true}).wants(r) {
			wanted = append(wanted, r)
		}
	}
	return c.imageBuilder().Build(wanted)
}

// startAll starts the members. Their programs start only when all are linked.
func (c *Cluster) startAll(nodes int) error {
	if err := c.makePKI(); err != nil {
		return err
	}
	for _, dir := range []string{c.Dirs.Images(), c.Dirs.Loaded()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	controlPlane, err := c.startControlPlane(nodes)
	if err != nil {
		return err
	}
	held := []*sandbox.Held{controlPlane}
	for n := 1; n <= nodes; n++ {
		node, err := c.startNode(n, nodes, controlPlane.PID)
		if err != nil {
			return err
		}
		held = append(held, node)
	}
	for _, h := range held {
		if err := h.Release(); err != nil {
			return err
		}
	}
	return nil
}

// bringBack starts a node that was stopped or lost; its data is still there.
func (c *Cluster) bringBack(name string, nodes, controlPlane int) error {
	var n int
	if _, err := fmt.Sscanf(name, "node%d", &n); err != nil {
		return fmt.Errorf("%s is not a node", name)
	}
	if err := c.stopMember(name); err != nil {
		return err
	}
	held, err := c.startNode(n, nodes, controlPlane)
	if err != nil {
		return err
	}
	if err := held.Release(); err != nil {
		return err
	}
	loaded, err := filepath.Glob(filepath.Join(c.Dirs.Loaded(), "*.tar"))
	if err != nil {
		return err
	}
	return c.importInto(name, loaded)
}

// waitAPI waits until the API server is ready.
func (c *Cluster) waitAPI(ctx context.Context) error {
	return c.poll(ctx, func() error {
		_, err := c.kubectl(ctx, "", "get", "--raw", "/readyz")
		return err
	})
}

// waitReady waits until all nodes and CoreDNS are ready.
func (c *Cluster) waitReady(ctx context.Context, nodes int) error {
	return c.poll(ctx, func() error {
		out, err := c.kubectl(ctx, "", "get", "nodes", "-o",
			`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{" "}{end}`)
		if err != nil {
			return err
		}
		if ready := strings.Count(out, "True"); ready < nodes {
			return fmt.Errorf("%d of %d nodes are ready", ready, nodes)
		}
		out, err = c.kubectl(ctx, "", "-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath={.status.readyReplicas}")
		if err != nil {
			return err
		}
		if out == "" || out == "0" {
			return errors.New("CoreDNS is not ready")
		}
		return nil
	})
}

// poll repeats check until it succeeds; at the deadline it returns its last error.
func (c *Cluster) poll(ctx context.Context, check func() error) error {
	deadline := c.Now().Add(readyTimeout)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if c.Now().After(deadline) {
			return fmt.Errorf("not after %s: %w; see hack/cluster.sh status and hack/cluster.sh logs", readyTimeout, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
