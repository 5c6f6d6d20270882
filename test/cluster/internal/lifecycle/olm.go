// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"middleware.hc.cn/operator/test/cluster/internal/olm"
)

// Kubectl runs kubectl with the administrator's rights; see olm.Cluster.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	return c.kubectl(ctx, stdin, args...)
}

// Stage runs one part of a command and prints how long it took.
func (c *Cluster) Stage(name string, run func() error) error { return c.stage(name, run) }

// Poll repeats check until it succeeds or readyTimeout has passed.
func (c *Cluster) Poll(ctx context.Context, check func() error) error { return c.poll(ctx, check) }

// OLMUp installs OLM, which pulls its images from the cluster's registry, and makes
// the cluster serve a catalog if it is given one. The catalog's image is pinned to
// what the registry has by that name now, so that OLM notices when another is loaded.
func (c *Cluster) OLMUp(ctx context.Context, catalog olm.Catalog) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	if err := c.waitAPI(ctx); err != nil {
		return err
	}
	started := c.Now()
	if catalog.Image != "" {
		digest, err := c.Digest(catalog.Image)
		if err != nil {
			return err
		}
		catalog.Image = repositoryOf(catalog.Image) + "@" + digest
	}
	if err := c.stage("OLM's images", func() error {
		_, err := c.BuildImages(true)
		return err
	}); err != nil {
		return err
	}
	manifest, err := c.olmManifest(ctx)
	if err != nil {
		return err
	}
	if err := olm.Up(ctx, c, manifest); err != nil {
		return err
	}
	if catalog.Image != "" {
		if err := olm.Serve(ctx, c, catalog); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Out, "%6.1f s  in all\n", c.Now().Sub(started).Seconds())
	return nil
}

// repositoryOf is an image's name without its tag.
func repositoryOf(image string) string {
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i]
	}
	return image
}

// OLMDown removes OLM and the operators that it installed.
func (c *Cluster) OLMDown(ctx context.Context) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	manifest, err := c.olmManifest(ctx)
	if err != nil {
		return err
	}
	return olm.Down(ctx, c, manifest)
}

// OLMStatus describes OLM and what it manages.
func (c *Cluster) OLMStatus(ctx context.Context) (string, error) { return olm.Status(ctx, c) }

// olmManifest renders OLM's chart, which is in the module that its tools are built from.
func (c *Cluster) olmManifest(ctx context.Context) (olm.Manifest, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", olm.Module)
	download.Dir = filepath.Join(c.Dirs.Project, "hack", "tools", "olm")
	out, err := download.Output()
	if err != nil {
		return olm.Manifest{}, fmt.Errorf("finding the module %s: %w: %s", olm.Module, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return olm.Manifest{}, fmt.Errorf("finding the module %s: %w", olm.Module, err)
	}
	helm, err := c.tool("tool for OLM", "helm")
	if err != nil {
		return olm.Manifest{}, err
	}
	cmd := exec.CommandContext(ctx, helm, olm.HelmArguments(module.Dir)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	rendered, err := cmd.Output()
	if err != nil {
		return olm.Manifest{}, fmt.Errorf("rendering OLM's chart: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return olm.Split(string(rendered))
}
