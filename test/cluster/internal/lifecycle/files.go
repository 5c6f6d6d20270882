// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"

	"middleware.hc.cn/operator/test/cluster/internal/address"
	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/pki"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// makePKI makes the authorities, the keys and the client certificates of a new
// cluster; a member's own certificates are issued when its files are written.
func (c *Cluster) makePKI() error {
	now := c.Now()
	ca, err := pki.NewAuthority("middleware-operator-cluster", now)
	if err != nil {
		return err
	}
	frontProxy, err := pki.NewAuthority("front-proxy", now)
	if err != nil {
		return err
	}
	signing, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt": ca.Cert, "ca.key": ca.Key,
		"front-proxy-ca.crt":  frontProxy.Cert,
		"service-account.pub": signing.Cert, "service-account.key": signing.Key,
	}
	issue := func(name string, pair pki.Pair, failed error) {
		files[name+".crt"], files[name+".key"] = pair.Cert, pair.Key
		if failed != nil {
			err = fmt.Errorf("certificate %s: %w", name, failed)
		}
	}
	client := func(name, user string, groups ...string) {
		pair, failed := ca.Client(user, groups...)
		issue(name, pair, failed)
	}
	client("admin", "admin", "system:masters")
	client("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
	client("controller-manager", "system:kube-controller-manager")
	client("scheduler", "system:kube-scheduler")
	client("kube-proxy", "system:kube-proxy")
	client("storage-provisioner", "storage-provisioner")
	pair, failed := frontProxy.Client("front-proxy-client")
	issue("front-proxy-client", pair, failed)
	if err != nil {
		return err
	}
	return writeAll(c.Dirs.PKI(), files)
}

// kubeconfig renders the configuration of the client called name in the PKI.
func (c *Cluster) kubeconfig(server, name string) ([]byte, error) {
	var pem [3][]byte
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		content, err := os.ReadFile(filepath.Join(c.Dirs.PKI(), file))
		if err != nil {
			return nil, err
		}
		pem[i] = content
	}
	return []byte(config.Kubeconfig(server, pem[0], pem[1], pem[2])), nil
}

// writeControlPlaneFiles writes the control plane's configuration and the
// administrator's kubeconfig; link decides the API server's address on the host.
func (c *Cluster) writeControlPlaneFiles(link address.HostLink) error {
	authority, err := c.authority()
	if err != nil {
		return err
	}
	serving, err := authority.Server("kube-apiserver", "localhost", "127.0.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		address.KubernetesService, address.Bridge, link.ControlPlane.String())
	if err != nil {
		return err
	}
	registry, err := authority.Server("registry", "localhost", "127.0.0.1", address.Bridge, link.ControlPlane.String())
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"apiserver.crt": serving.Cert, "apiserver.key": serving.Key,
		"registry.crt": registry.Cert, "registry.key": registry.Key,
		"audit-policy.yaml": []byte(config.AuditPolicy),
		"resolv.conf":       []byte(config.ResolvConf()),
	}
	for _, name := range []string{"controller-manager", "scheduler", "kube-proxy", "storage-provisioner"} {
		if files[name+".kubeconfig"], err = c.kubeconfig("127.0.0.1", name); err != nil {
			return err
		}
	}
	for _, name := range []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "service-account.pub", "service-account.key",
		"apiserver-kubelet-client.crt", "apiserver-kubelet-client.key", "front-proxy-client.crt", "front-proxy-client.key"} {
		if files[name], err = os.ReadFile(filepath.Join(c.Dirs.PKI(), name)); err != nil {
			return err
		}
	}
	if err := writeAll(filepath.Join(c.Dirs.Member(state.ControlPlane), "config"), files); err != nil {
		return err
	}
	admin, err := c.kubeconfig(link.ControlPlane.String(), "admin")
	if err != nil {
		return err
	}
	return write(c.Dirs.Kubeconfig(), admin)
}

// authority reads the cluster's authority back from the PKI.
func (c *Cluster) authority() (*pki.Authority, error) {
	cert, err := os.ReadFile(filepath.Join(c.Dirs.PKI(), "ca.crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(c.Dirs.PKI(), "ca.key"))
	if err != nil {
		return nil, err
	}
	return pki.LoadAuthority(pki.Pair{Cert: cert, Key: key}, c.Now())
}

func (c *Cluster) writeNodeFiles(n int) error {
	name := config.NodeName(n)
	authority, err := c.authority()
	if err != nil {
		return err
	}
	client, err := authority.Client("system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	serving, err := authority.Server("system:node:"+name, name, address.Node(n))
	if err != nil {
		return err
	}
	proxy, err := c.kubeconfig(address.Bridge, "kube-proxy")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt":                authority.Cert,
		"kubelet.kubeconfig":    []byte(config.Kubeconfig(address.Bridge, authority.Cert, client.Cert, client.Key)),
		"kubelet-server.crt":    serving.Cert,
		"kubelet-server.key":    serving.Key,
		"kube-proxy.kubeconfig": proxy,
	}
	for file, content := range config.NodeFiles(c.Dirs.Name, n) {
		files[file] = []byte(content)
	}
	return writeAll(filepath.Join(c.Dirs.Member(name), "config"), files)
}

// writeAll writes files, by their path in dir.
func writeAll(dir string, files map[string][]byte) error {
	for name, content := range files {
		if err := write(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}
