// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"

	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/registry"
)

// RegistryAddress is the address and port of the registry, which are the same from
// the machine, from nodes and from pods.
func (c *Cluster) RegistryAddress() (string, error) {
	if _, err := os.Stat(c.Dirs.Kubeconfig()); err != nil {
		return "", errors.New("the cluster is not up; run hack/cluster.sh up")
	}
	client, err := clientcmd.BuildConfigFromFlags("", c.Dirs.Kubeconfig())
	if err != nil {
		return "", err
	}
	server, err := url.Parse(client.Host)
	if err != nil {
		return "", fmt.Errorf("the server in %s: %w", c.Dirs.Kubeconfig(), err)
	}
	return net.JoinHostPort(server.Hostname(), strconv.Itoa(config.RegistryTLSPort)), nil
}

// RegistryCA is the certificate of the authority that the registry's is of.
func (c *Cluster) RegistryCA() string { return filepath.Join(c.Dirs.PKI(), "ca.crt") }

// Digest is the digest of an image in the registry, by its name or by an archive
// that it is loaded from.
func (c *Cluster) Digest(argument string) (string, error) {
	if info, err := os.Stat(argument); err == nil && info.Mode().IsRegular() {
		return registry.ArchiveDigest(argument)
	}
	store := registry.Store{Folders: []string{c.Dirs.Images(), c.Dirs.Loaded()}}
	return store.Digest(argument)
}
