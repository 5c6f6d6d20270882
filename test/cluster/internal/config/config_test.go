// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/cluster/internal/address"
)

func TestKubeletConfigurationIsThatOfItsNode(t *testing.T) {
	var got struct {
		CgroupRoot     string   `json:"cgroupRoot"`
		ClusterDNS     []string `json:"clusterDNS"`
		Authentication struct {
			Anonymous struct{ Enabled bool } `json:"anonymous"`
		} `json:"authentication"`
	}
	if err := yaml.Unmarshal([]byte(NodeFiles("local", 2)["kubelet.yaml"]), &got); err != nil {
		t.Fatal(err)
	}
	if got.CgroupRoot != "/middleware-operator-local/node2" || got.Authentication.Anonymous.Enabled {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{address.DNSService}, got.ClusterDNS); diff != "" {
		t.Error(diff)
	}
}

func TestEveryYAMLFileParses(t *testing.T) {
	files := NodeFiles("local", 1)
	files["audit-policy.yaml"] = AuditPolicy
	files["kubeconfig.yaml"] = Kubeconfig("192.0.2.1", []byte("a"), []byte("b"), []byte("c"))
	delete(files, "containerd.toml")
	delete(files, "certs.d/_default/hosts.toml")
	for name, content := range files {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(content), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestZonesRepeat(t *testing.T) {
	var got []string
	for n := 1; n <= 4; n++ {
		got = append(got, Zone(n))
	}
	if diff := cmp.Diff([]string{"zone-a", "zone-b", "zone-c", "zone-a"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNothingRoutesOutOfTheCluster(t *testing.T) {
	link, err := address.ChooseHostLink(nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := append(ControlPlaneNetwork(link, 3), NodeNetwork(1, 3)...)
	for _, l := range lines {
		if strings.Contains(l, "default") || strings.Contains(l, "0.0.0.0/0") {
			t.Errorf("a default route: %s", l)
		}
	}
}

func TestEveryNodeReachesThePodsOfEveryOtherAndTheRegistry(t *testing.T) {
	want := []string{
		"link set lo up",
		"addr add 203.0.113.12/24 dev eth0",
		"link set eth0 up",
		"route add 10.96.0.0/16 dev eth0",
		"route add 10.244.1.0/24 via 203.0.113.11",
		"route add 10.244.3.0/24 via 203.0.113.13",
		"route add 198.51.100.2 via 203.0.113.1",
		"route add 198.51.100.242 via 203.0.113.1",
		"route add 198.51.100.122 via 203.0.113.1",
		"route add 192.0.2.242 via 203.0.113.1",
	}
	if diff := cmp.Diff(want, NodeNetwork(2, 3)); diff != "" {
		t.Error(diff)
	}
}

func TestHostInterfaceFitsTheKernel(t *testing.T) {
	if name := HostInterface("eightlet"); len(name) > 15 {
		t.Errorf("%s is longer than 15 bytes", name)
	}
}
