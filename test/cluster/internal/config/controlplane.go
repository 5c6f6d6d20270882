// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config renders the configuration files and command lines of every
// program of the cluster. It does no I/O: what it returns is checked in tests.
package config

import (
	"fmt"

	"middleware.hc.cn/operator/test/cluster/internal/address"
	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
)

// Where the programs of a member find things; see sandbox.Spec.
const (
	// Tools holds one folder for each tool module.
	Tools = "/run/tools"
	// Config holds the member's configuration, certificates and keys.
	Config = sandbox.MemberDir + "/config"
	logs   = sandbox.MemberDir + "/logs"
	// Members shows the folders of all members to the control plane.
	Members = "/run/members"
	// BuiltImages and LoadedImages show the image archives to the control plane.
	BuiltImages  = "/run/images/built"
	LoadedImages = "/run/images/loaded"
)

// Kubernetes is the path of one of the Kubernetes programs inside a member.
func Kubernetes(program string) string { return Tools + "/kubernetes/" + program }

// ControlPlane are the programs of the control plane.
func ControlPlane() []sandbox.Program {
	return []sandbox.Program{
		{Name: "etcd", Args: []string{
			Tools + "/etcd/etcd",
			"--data-dir=/var/lib/etcd",
			"--listen-client-urls=http://127.0.0.1:2379",
			"--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
			// The data need not survive a power cut: a new start begins empty.
			"--unsafe-no-fsync",
			"--log-level=warn",
		}},
		{Name: "kube-apiserver", Args: apiServer()},
		{Name: "kube-controller-manager", Args: []string{
			Kubernetes("kube-controller-manager"),
			"--kubeconfig=" + Config + "/controller-manager.kubeconfig",
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + Config + "/service-account.key",
			"--root-ca-file=" + Config + "/ca.crt",
			"--cluster-signing-cert-file=" + Config + "/ca.crt",
			"--cluster-signing-key-file=" + Config + "/ca.key",
			// A lost node is noticed after 20 s instead of 50 s.
			"--node-monitor-grace-period=20s",
		}},
		{Name: "kube-scheduler", Args: []string{
			Kubernetes("kube-scheduler"),
			"--kubeconfig=" + Config + "/scheduler.kubeconfig",
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
		}},
		// For what runs in the control plane's network: the API server calling
		// webhooks on service addresses, and exec-net. It stands in for the first
		// node, which only decides which node ports it would serve.
		kubeProxy("node1"),
		{Name: "storage-provisioner", Args: []string{
			Tools + "/cluster/cluster", "storage-provisioner",
			"--kubeconfig=" + Config + "/storage-provisioner.kubeconfig",
			"--members=" + Members,
		}},
		{Name: "registry", Args: []string{
			Tools + "/cluster/cluster", RegistryCommand,
			fmt.Sprintf("--listen=%s:%d", address.Bridge, RegistryPort),
			fmt.Sprintf("--listen-tls=:%d", RegistryTLSPort),
			"--tls-cert=" + Config + "/registry.crt", "--tls-key=" + Config + "/registry.key",
			BuiltImages, LoadedImages,
		}},
	}
}

func apiServer() []string {
	return []string{
		Kubernetes("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0",
		fmt.Sprintf("--secure-port=%d", address.APIPort),
		"--advertise-address=" + address.Bridge,
		"--service-cluster-ip-range=" + address.Services,
		"--tls-cert-file=" + Config + "/apiserver.crt",
		"--tls-private-key-file=" + Config + "/apiserver.key",
		"--client-ca-file=" + Config + "/ca.crt",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + Config + "/service-account.pub",
		"--service-account-signing-key-file=" + Config + "/service-account.key",
		"--kubelet-certificate-authority=" + Config + "/ca.crt",
		"--kubelet-client-certificate=" + Config + "/apiserver-kubelet-client.crt",
		"--kubelet-client-key=" + Config + "/apiserver-kubelet-client.key",
		// Else `kubectl exec` would look the node's name up in DNS.
		"--kubelet-preferred-address-types=InternalIP",
		// Aggregated APIs, such as metrics-server's.
		"--requestheader-client-ca-file=" + Config + "/front-proxy-ca.crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + Config + "/front-proxy-client.crt",
		"--proxy-client-key-file=" + Config + "/front-proxy-client.key",
		"--enable-aggregator-routing=true",
		// One line a request, so that requests can be counted by user agent.
		"--audit-policy-file=" + Config + "/audit-policy.yaml",
		"--audit-log-path=" + logs + "/audit.log",
		"--audit-log-maxsize=100",
		"--audit-log-maxbackup=2",
		"--default-not-ready-toleration-seconds=30",
		"--default-unreachable-toleration-seconds=30",
		"--profiling=false",
	}
}

func kubeProxy(node string) sandbox.Program {
	return sandbox.Program{Name: "kube-proxy", Args: []string{
		Kubernetes("kube-proxy"),
		"--kubeconfig=" + Config + "/kube-proxy.kubeconfig",
		"--hostname-override=" + node,
		"--cluster-cidr=" + address.Pods,
		"--proxy-mode=iptables",
		// These kernel parameters cannot be set in a network namespace.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0",
	}}
}

// AuditPolicy logs who asked for what, without bodies.
const AuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// ResolvConf makes a program in the cluster's network use the cluster's names.
func ResolvConf() string {
	return "search default.svc.cluster.local svc.cluster.local cluster.local\n" +
		"nameserver " + address.DNSService + "\noptions ndots:5\n"
}
