// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds the container images that the cluster and the project's
// manifests run, without a registry: from Debian packages and from the built tools.
package image

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"middleware.hc.cn/operator/test/cluster/internal/config"
)

// builderVersion is part of every archive's key: raise it when the way images are
// put together changes.
const builderVersion = 1

// Recipe says what an image holds. Images are built from the packages of one
// Debian suite, so that programs find the libraries they were built with.
type Recipe struct {
	// Name of the recipe and of its archive.
	Name string
	// System images are run by the cluster itself.
	System bool
	// OLM images are run by OLM and by what operator-sdk starts: built only when
	// asked for, and pulled from the cluster's registry.
	OLM bool `json:",omitempty"`
	// Tool is a tool module whose binary of the same name is the image's program;
	// empty for an image made of Debian packages.
	Tool string
	// Tools are built tools that are put in, by their path in the image; the value
	// is MODULE/BINARY.
	Tools map[string]string `json:",omitempty"`
	// Suite and Package name the Debian package that holds the programs. busybox
	// of the same suite is always added, for a shell.
	Suite, Package string
	// Programs are put in with the libraries they need, by their path in the image;
	// the value is their path in the package.
	Programs map[string]string
	// Links are symbolic links, by their path in the image.
	Links map[string]string
	// Repository is the image's name. Its tags are the package's version, that
	// version's first two parts, and Tags.
	Repository string
	Tags       []string
	// Names are further complete names of the image.
	Names []string
	// Folders are empty folders, which every user may read.
	Folders []string `json:",omitempty"`
	// The image's configuration.
	Entrypoint    []string `json:",omitempty"`
	Cmd           []string
	User, WorkDir string
	Labels        map[string]string `json:",omitempty"`
}

// Recipes are all images.
func Recipes() []Recipe { return append(clusterRecipes(), olmRecipes()...) }

func clusterRecipes() []Recipe {
	return []Recipe{
		{
			Name: "pause", System: true, Suite: "trixie", Package: "busybox-static",
			// The second is in the project's samples.
			Names: []string{config.PauseImage, "registry.k8s.io/pause:3.10"}, Cmd: []string{"/bin/sleep", "infinity"}, User: "65535:65535",
		},
		{
			Name: "coredns", System: true, Tool: "coredns",
			Names: []string{config.CoreDNSImage}, Cmd: []string{"/coredns"},
		},
		{
			Name: "metrics-server", System: true, Tool: "metrics-server",
			Names: []string{config.MetricsServerImage}, Cmd: []string{"/metrics-server"}, User: "65534:65534",
		},
		{
			Name: "busybox", Suite: "trixie", Package: "busybox-static",
			Repository: "docker.io/library/busybox", Tags: []string{"1.36", "latest"},
			// The second is named in a document that the project's samples come from.
			Names: []string{"docker.io/library/my-awesome-cron-image:latest"},
			Cmd:   []string{"sh"},
		},
		redis("redis-7.0", "bookworm"),
		redis("redis-8.0", "forky"),
		valkey("valkey-8.1", "trixie"),
		valkey("valkey-9.1", "forky"),
		{
			Name: "redis-exporter", Suite: "bookworm", Package: "prometheus-redis-exporter",
			Programs: map[string]string{"/redis_exporter": "/usr/bin/prometheus-redis-exporter"},
			Names:    []string{"docker.io/oliver006/redis_exporter:v1.45.0"},
			Cmd:      []string{"/redis_exporter"}, User: "59000:59000",
		},
	}
}

// redis is like the public image, except that its entrypoint does not change the
// user: it runs as whom the pod says, else as root.
func redis(name, suite string) Recipe {
	return Recipe{
		Name: name, Suite: suite, Package: "redis-server",
		Programs: map[string]string{
			"/usr/local/bin/redis-server":    "/usr/bin/redis-server",
			"/usr/local/bin/redis-cli":       "/usr/bin/redis-cli",
			"/usr/local/bin/redis-benchmark": "/usr/bin/redis-benchmark",
		},
		Links: map[string]string{
			"/usr/local/bin/redis-check-aof": "redis-server",
			"/usr/local/bin/redis-check-rdb": "redis-server",
			"/usr/local/bin/redis-sentinel":  "redis-server",
		},
		Repository: "docker.io/library/redis",
		Cmd:        []string{"redis-server"}, WorkDir: "/data",
	}
}

// valkey answers to Redis' names too, as the public image does.
func valkey(name, suite string) Recipe {
	return Recipe{
		Name: name, Suite: suite, Package: "valkey-server",
		Programs: map[string]string{
			"/usr/local/bin/valkey-server":    "/usr/bin/valkey-server",
			"/usr/local/bin/valkey-cli":       "/usr/bin/valkey-cli",
			"/usr/local/bin/valkey-benchmark": "/usr/bin/valkey-benchmark",
		},
		Links: map[string]string{
			"/usr/local/bin/valkey-check-aof": "valkey-server",
			"/usr/local/bin/valkey-check-rdb": "valkey-server",
			"/usr/local/bin/valkey-sentinel":  "valkey-server",
			"/usr/local/bin/redis-server":     "valkey-server",
			"/usr/local/bin/redis-cli":        "valkey-cli",
			"/usr/local/bin/redis-benchmark":  "valkey-benchmark",
			"/usr/local/bin/redis-check-aof":  "valkey-server",
			"/usr/local/bin/redis-check-rdb":  "valkey-server",
			"/usr/local/bin/redis-sentinel":   "valkey-server",
		},
		Repository: "docker.io/valkey/valkey",
		Cmd:        []string{"valkey-server"}, WorkDir: "/data",
	}
}

// tools are the built tools that the recipe packs, by their path in the image; the
// value is MODULE/BINARY.
func (r Recipe) tools() map[string]string {
	if r.Tool != "" {
		return map[string]string{"/" + r.Tool: r.Tool + "/" + r.Tool}
	}
	return r.Tools
}

// key changes when the recipe, the way it is built, or a tool that it packs does.
// toolPath is where those tools are, which their versions are part of.
func (r Recipe) key(toolPath string) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(text, "\n%d\n%s", builderVersion, toolPath))
	return fmt.Sprintf("%x", sum[:6]), nil
}

// packages are the Debian packages that the recipe is made of.
func (r Recipe) packages() []string {
	if r.Suite == "" {
		return nil
	}
	if r.Package == busybox {
		return []string{busybox}
	}
	return []string{busybox, r.Package}
}

// references are the image's names, if its package has this version.
func (r Recipe) references(version string) []string {
	names := append([]string{}, r.Names...)
	if r.Repository == "" {
		return names
	}
	tags := r.Tags
	if upstream := upstreamVersion(version); upstream != "" {
		tags = append([]string{upstream, minor(upstream)}, tags...)
	}
	seen := map[string]bool{}
	for _, t := range tags {
		if !seen[t] {
			names = append(names, r.Repository+":"+t)
		}
		seen[t] = true
	}
	return names
}
