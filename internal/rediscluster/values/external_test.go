// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/gateway"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

const clusterDomain = "cluster.local"

// renderOutside renders a cluster with what leads clients outside to it.
func renderOutside(t testing.TB, c *chart.Chart, cr *v1alpha1.RedisCluster, out snapshot.Outside,
	service *snapshot.ExternalService) []*unstructured.Unstructured {
	t.Helper()
	v := values.Build(cr, v1alpha1.Topology{2, 2, 2}, redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr))
	x := values.ExternalOf(cr, out, service, clusterDomain)
	x.Values["pod"] = values.Gateway(cr, "operator:1")
	v["external"] = x.Values
	rendered, err := c.Render(v, chart.Release{Name: cr.Name, Namespace: cr.Namespace, Revision: 1, IsInstall: true}, chart.Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Check(rendered, chart.Allowed{Namespace: cr.Namespace, Kinds: append(slices.Clone(kinds), "Deployment"),
		Namespaced: namespaced}); err != nil {
		t.Fatal(err)
	}
	return rendered.Objects
}

func ofOutside(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GetName() != "cache-gateway" && o.GetName() != "cache-external"
	})
}

// What a cluster with clients outside becomes. Gateways have no identity, no shell, no password, and none of the labels that Services and
// budgets select instances by.
func TestExternalGolden(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/external.yaml")
	all := renderOutside(t, c, cr, snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2}, Leaving: []snapshot.Leaving{{Shard: 3}}},
		&snapshot.ExternalService{})
	got, path := toYAML(t, ofOutside(all)), filepath.Join("testdata", "external.golden.yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("rendered objects differ from %s (-want +got); run go test with -update when that is meant:\n%s", path, diff)
	}
}

// Clients outside are let in and kept out without a restart, and gateways do not restart when the cluster is scaled.
func TestExternalRestartsNothing(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/external.yaml")
	three := snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2}}
	with := renderOutside(t, c, cr, three, &snapshot.ExternalService{})
	inside := cr.DeepCopy()
	inside.Spec.External = nil
	without, err := render(c, inside, v1alpha1.Topology{2, 2, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(toYAML(t, without), toYAML(t, slices.DeleteFunc(slices.Clone(with), func(o *unstructured.Unstructured) bool {
		return o.GetName() == "cache-gateway" || o.GetName() == "cache-external"
	}))); diff != "" {
		t.Errorf("spec.external changes what is there without it:\n%s", diff)
	}
	deployment := func(objects []*unstructured.Unstructured) string {
		return toYAML(t, slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Deployment" }))
	}
	four := renderOutside(t, c, cr, snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2, 3}}, &snapshot.ExternalService{})
	if diff := cmp.Diff(deployment(with), deployment(four)); diff != "" {
		t.Errorf("gateways restart when the cluster is scaled:\n%s", diff)
	}
}

// The map is one that gateways take, each instance keeps its port whatever is scaled, and it is there when all of it is known.
func TestMapOfGateways(t *testing.T) {
	cr := readCluster(t, "testdata/external.yaml")
	outside := func(out snapshot.Outside, service *snapshot.ExternalService) (map[string]string, values.External) {
		t.Helper()
		x := values.ExternalOf(cr, out, service, clusterDomain)
		if x.Map == "" {
			return nil, x
		}
		m, err := gateway.ParseMap([]byte(x.Values["map"].(string)))
		if err != nil {
			t.Fatalf("a gateway does not take it: %v", err)
		}
		at := map[string]string{}
		for _, i := range m.Instances {
			at[i.Name] = i.Outside
			if !strings.HasSuffix(i.Inside[0], ".cluster.local.:6379") {
				t.Errorf("%s is at %s, which is no whole name", i.Name, i.Inside[0])
			}
		}
		return at, x
	}
	all := snapshot.Outside{Instances: slices.Repeat(v1alpha1.Topology{10}, 100)} // more than admission lets be
	before, _ := outside(all, &snapshot.ExternalService{})
	if len(before) != 1000 || before["cache"] != "redis.example.com:7000" || before["cache-0-0"] != "redis.example.com:7010" ||
		before["cache-99-8"] != "redis.example.com:8008" {
		t.Errorf("%d instances, %v", len(before), before["cache-99-8"])
	}
	for _, out := range []snapshot.Outside{{Instances: v1alpha1.Topology{1, 4}}, {Instances: v1alpha1.Topology{2, 2, 2, 2}},
		{Instances: v1alpha1.Topology{2}, Leaving: []snapshot.Leaving{{Shard: 12, Ordinal: 3}}}} {
		after, _ := outside(out, &snapshot.ExternalService{})
		for name, at := range after {
			if before[name] != at {
				t.Errorf("the port of %s changes from %s to %s", name, before[name], at)
			}
		}
	}
	beyond := snapshot.Outside{Leaving: []snapshot.Leaving{{Shard: 100}, {Ordinal: 10}}}
	if after, _ := outside(beyond, &snapshot.ExternalService{}); len(after) != 1 {
		t.Errorf("instances without a port: %v", after)
	}
	cr.Spec.External.Host = ""
	three := snapshot.Outside{Instances: v1alpha1.Topology{1, 1, 1}}
	at, x := outside(three, &snapshot.ExternalService{Host: "2001:db8::1"})
	if at["cache"] != "[2001:db8::1]:7000" || x.Address != at["cache"] {
		t.Errorf("behind a balancer: %v, %s", at, x.Address)
	}
	for _, service := range []*snapshot.ExternalService{nil, {}} {
		if at, x := outside(three, service); at != nil || x.Address != "" || x.Values["map"] != nil {
			t.Errorf("while the balancer has no address: %v", at)
		}
	}
	cr.Spec.External.Type, cr.Spec.External.Host = v1alpha1.ExternalNodePort, "node"
	ports := map[int32]int32{7000: 30001, 7010: 31111, 7020: 30002}
	if at, _ := outside(three, &snapshot.ExternalService{NodePorts: ports}); at != nil {
		t.Errorf("while a node port is not known: %v", at)
	}
	ports[7030] = 30003
	if at, _ := outside(three, &snapshot.ExternalService{NodePorts: ports}); at["cache"] != "node:30001" || at["cache-0-0"] != "node:31111" {
		t.Errorf("at node ports: %v", at)
	}
	cr.Spec.External.FirstPort = ptr.To[int32](30500)
	_, x = outside(three, nil)
	if first := x.Values["ports"].([]any)[1].(map[string]any); first["nodePort"] != int64(30510) || first["targetPort"] != int64(7010) {
		t.Errorf("with node ports that were asked for: %v", first)
	}
}

// Gateways together leave room for clients inside, and a source is told apart where it can be.
func TestConnectionsOfGateways(t *testing.T) {
	for _, tt := range []struct {
		maxclients string
		replicas   int32
		ranges     []string
		all, each  int
	}{
		{"", 2, nil, 2000, 2000},
		{"", 4, []string{"192.0.2.0/24"}, 1000, 1000},
		{"500", 2, []string{"192.0.2.0/24"}, 100, 100},
		{"1000000", 1, nil, 4000, 4000},
		{"1", 10, nil, 10, 10},
		{"", 1, []string{"192.0.2.0/24"}, 4000, 1000},
	} {
		cr := readCluster(t, "testdata/external.yaml")
		cr.Spec.External.Replicas, cr.Spec.External.SourceRanges = &tt.replicas, tt.ranges
		if tt.maxclients != "" {
			cr.Spec.Config = map[string]string{"maxClients": tt.maxclients}
		}
		var pod corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(values.Gateway(cr, "operator:1"), &pod, true); err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(pod.Containers[0].Args, func(arg string) bool { return !strings.HasPrefix(arg, "--max-") })
		want := []string{fmt.Sprintf("--max-connections=%d", tt.all), fmt.Sprintf("--max-connections-per-source=%d", tt.each),
			fmt.Sprintf("--max-connections-per-instance=%d", tt.all)}
		if !cmp.Equal(got, want) {
			t.Errorf("maxclients %q: %v, want %v", tt.maxclients, got, want)
		}
	}
}

// Where instances want a certificate of clients, gateways show theirs, and want one of clients outside: else whoever has none would come in
// by that of the gateway. They show it as long as an instance may want one.
func TestGatewaysAndCertificatesOfClients(t *testing.T) {
	shows := []string{"--client-cert-file=/etc/backup/cert/tls.crt", "--client-key-file=/etc/backup/key/tls.key"}
	for name, tt := range map[string]struct {
		tls  v1alpha1.TLS
		is   v1alpha1.ClientCertificates
		want []string
		from string // the Secret of the authority of clients
	}{
		"optional": {tls: v1alpha1.TLS{SecretName: "own"}},
		"required": {tls: v1alpha1.TLS{SecretName: "own", CASecretName: "ca", ClientCertificates: v1alpha1.ClientCertificatesRequired},
			want: append(slices.Clone(shows), "--client-ca-file=/etc/gateway/clients/ca.crt"), from: "ca"},
		"required, of an authority for clients": {tls: v1alpha1.TLS{SecretName: "own", ClientCASecretName: "theirs",
			ClientCertificates: v1alpha1.ClientCertificatesRequired},
			want: append(slices.Clone(shows), "--client-ca-file=/etc/gateway/clients/ca.crt"), from: "theirs"},
		"not any more": {tls: v1alpha1.TLS{SecretName: "own"}, is: v1alpha1.ClientCertificatesRequired, want: shows},
		"disabled": {tls: v1alpha1.TLS{SecretName: "own", Mode: v1alpha1.TLSDisabled,
			ClientCertificates: v1alpha1.ClientCertificatesRequired}},
	} {
		cr := readCluster(t, "testdata/external.yaml")
		cr.Spec.TLS, cr.Status.TLS = &tt.tls, &v1alpha1.TLSStatus{ClientCertificates: tt.is}
		var pod corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(values.Gateway(cr, "operator:1"), &pod, true); err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(pod.Containers[0].Args, func(arg string) bool { return !strings.HasPrefix(arg, "--client-") })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		mounted := map[string]string{}
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				mounted[v.Name] = v.Secret.SecretName
			}
		}
		if mounted["clients"] != tt.from || (mounted["shown-key"] == "own") != (len(tt.want) > 0) {
			t.Errorf("%s: %v is mounted", name, mounted)
		}
	}
}

// Strings stay what they are, whatever is in them. (Admission refuses nearly all of these.)
func TestStringsOfExternal(t *testing.T) {
	c := loadChart(t)
	service := func(text string) (corev1.Service, appsv1.Deployment) {
		cr := readCluster(t, "testdata/external.yaml")
		cr.Spec.External.Host, cr.Spec.External.Annotations = "h", map[string]string{"a": text}
		cr.Spec.External.TLS.SecretName = "x" + text
		var s corev1.Service
		var d appsv1.Deployment
		for _, o := range ofOutside(renderOutside(t, c, cr, snapshot.Outside{}, &snapshot.ExternalService{})) {
			var into any
			switch o.GetKind() {
			case "Service":
				into = &s
			case "Deployment":
				into = &d
			default:
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
				t.Fatal(err)
			}
		}
		return s, d
	}
	_, want := service("plain")
	for _, attack := range attacks {
		if attack == "\xff" || attack == "" {
			continue // no string of JSON, and none at all
		}
		s, d := service(attack)
		got := d.Spec.Template.Spec
		if s.Annotations["a"] != attack || len(got.Volumes) != len(want.Spec.Template.Spec.Volumes) || got.HostNetwork ||
			!cmp.Equal(got.Containers[0].Args, want.Spec.Template.Spec.Containers[0].Args) {
			t.Errorf("%q becomes %+v", attack, got)
		}
	}
}
