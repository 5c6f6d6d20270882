// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"fmt"
	"path/filepath"

	"middleware.hc.cn/operator/test/cluster/internal/address"
	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
)

// Images that the cluster itself runs; image.System holds their recipes.
const (
	PauseImage         = "localhost/pause:1"
	CoreDNSImage       = "localhost/coredns:1"
	MetricsServerImage = "localhost/metrics-server:1"
)

// ContainerdSocket is a node's, inside.
const ContainerdSocket = "/run/containerd/containerd.sock"

// Volumes holds a node's local volumes, inside the node.
const Volumes = "/var/lib/volumes"

// CgroupRoot is the parent of all cgroups of a cluster.
func CgroupRoot(cluster string) string { return "/middleware-operator-" + cluster }

// Cgroup is the cgroup of a member.
func Cgroup(cluster, member string) string { return CgroupRoot(cluster) + "/" + member }

// NodeName is the name of node number n, counted from 1.
func NodeName(n int) string { return fmt.Sprintf("node%d", n) }

// Zone is the zone of node number n: zone-a, zone-b, zone-c, and again.
func Zone(n int) string { return "zone-" + string(rune('a'+(n-1)%3)) }

// Region holds all zones.
const Region = "region-1"

// Node are the programs of node number n.
func Node(n int) []sandbox.Program {
	name := NodeName(n)
	return []sandbox.Program{
		{
			Name: "containerd",
			Args: []string{Tools + "/containerd/containerd", "--config=" + Config + "/containerd.toml"},
			// Where it finds its shim.
			Env: []string{"PATH=" + Tools + "/containerd:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		{
			Name:    "kubelet",
			WaitFor: ContainerdSocket,
			Args: []string{
				Kubernetes("kubelet"),
				"--config=" + Config + "/kubelet.yaml",
				"--kubeconfig=" + Config + "/kubelet.kubeconfig",
				"--hostname-override=" + name,
				"--node-ip=" + address.Node(n),
				"--node-labels=topology.kubernetes.io/region=" + Region + ",topology.kubernetes.io/zone=" + Zone(n),
			},
		},
		kubeProxy(name),
	}
}

// NodeFiles are the configuration files of node number n of a cluster, by their
// path in Config.
func NodeFiles(cluster string, n int) map[string]string {
	return map[string]string{
		"containerd.toml":             containerd,
		"kubelet.yaml":                kubelet(cluster, n),
		"cni/10-bridge.conflist":      cni(n),
		"certs.d/_default/hosts.toml": registryMirror,
	}
}

// containerd's configuration. restrict_oom_score_adj lets it work where the
// machine's root lacks CAP_SYS_RESOURCE.
var containerd = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "` + ContainerdSocket + `"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "` + PauseImage + `"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "` + Config + `/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "` + Config + `/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

// RegistryPort is where the control plane serves the images that were built or
// loaded to the nodes, which take it for any registry. RegistryTLSPort is the same
// for the machine's programs and for pods, with a certificate of the cluster's
// authority for the control plane's addresses.
const (
	RegistryPort    = 5000
	RegistryTLSPort = 5443
)

// RegistryCommand is the hidden command that serves images.
const RegistryCommand = "serve-images"

var registryMirror = fmt.Sprintf(`[host."http://%s:%d"]
  capabilities = ["pull", "resolve"]
`, address.Bridge, RegistryPort)

func kubelet(cluster string, n int) string {
	return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: ` + Config + `/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: ` + Config + `/kubelet-server.crt
tlsPrivateKeyFile: ` + Config + `/kubelet-server.key
containerRuntimeEndpoint: unix://` + ContainerdSocket + `
cgroupDriver: cgroupfs
cgroupRoot: ` + Cgroup(cluster, NodeName(n)) + `
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
clusterDNS: [` + address.DNSService + `]
clusterDomain: cluster.local
resolvConf: ""
serializeImagePulls: false
# Images cannot be fetched again from anywhere, and the disk is the machine's.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 5s
nodeLeaseDurationSeconds: 20
# Changes of Secrets and ConfigMaps reach the files of pods within this time, and a little more.
syncFrequency: 10s
configMapAndSecretChangeDetectionStrategy: Watch
`
}

func cni(n int) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0", "name": "cluster",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
      "ipam": {
        "type": "host-local", "dataDir": "/var/lib/cni",
        "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, address.PodRange(n))
}

// Kubeconfig is a client's configuration; ca, cert and key are PEM.
func Kubeconfig(server string, ca, cert, key []byte) string {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://%s:%d
    certificate-authority-data: %s
users:
- name: local
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: local
  context: {cluster: local, user: local}
current-context: local
`, server, address.APIPort, b64(ca), b64(cert), b64(key))
}

// WireControlPlane are the `ip -batch` lines, run on the host, that link the control plane to
// the host. controlPlane is a process ID in its namespaces.
func WireControlPlane(cluster string, controlPlane int, link address.HostLink) []string {
	host := HostInterface(cluster)
	return []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", host, controlPlane),
		fmt.Sprintf("addr add %s/30 dev %s", link.Host, host),
		"link set " + host + " up",
	}
}

// HostInterface is the one network interface that a cluster adds to the host.
func HostInterface(cluster string) string { return "mwop-" + cluster }

// WireNode links a node to the control plane.
func WireNode(name string, controlPlane, node int) []string {
	return []string{fmt.Sprintf("link add %s netns %d type veth peer name eth0 netns %d", name, controlPlane, node)}
}

// ControlPlaneNetwork are the `ip -batch` lines of the control plane's namespace
// in a cluster of so many nodes. Its bridge br0 exists already.
func ControlPlaneNetwork(link address.HostLink, nodes int) []string {
	lines := []string{
		"link set lo up",
		fmt.Sprintf("addr add %s/30 dev eth0", link.ControlPlane),
		"link set eth0 up",
		fmt.Sprintf("addr add %s/%d dev br0", address.Bridge, address.NodePrefixLength),
		"link set br0 up",
		// Something must route service addresses, else kube-proxy's rules never see them.
		"route add " + address.Services + " dev br0",
	}
	for n := 1; n <= nodes; n++ {
		lines = append(lines, fmt.Sprintf("route add %s via %s", address.PodRange(n), address.Node(n)))
	}
	return lines
}

// NodeNetwork are the `ip -batch` lines of the namespace of node number n.
func NodeNetwork(n, nodes int) []string {
	lines := []string{
		"link set lo up",
		fmt.Sprintf("addr add %s/%d dev eth0", address.Node(n), address.NodePrefixLength),
		"link set eth0 up",
		"route add " + address.Services + " dev eth0",
	}
	for m := 1; m <= nodes; m++ {
		if m != n {
			lines = append(lines, fmt.Sprintf("route add %s via %s", address.PodRange(m), address.Node(m)))
		}
	}
	// The registry is reached by one name from the machine, nodes and pods alike.
	for _, a := range address.ControlPlanes() {
		lines = append(lines, fmt.Sprintf("route add %s via %s", a, address.Bridge))
	}
	return lines
}

// VolumesOf is the folder of a node's volumes in the folder of its member.
func VolumesOf(member string) string { return filepath.Join(member, Volumes) }
