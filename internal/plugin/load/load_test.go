// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

var update = flag.Bool("update", false, "write testdata/*.txt anew")

func cluster() *v1alpha1.RedisCluster {
	cr := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}
	for shard := range 3 {
		for ordinal, role := range []string{"master", "slave"} {
			cr.Status.Nodes = append(cr.Status.Nodes, v1alpha1.NodeStatus{Name: fmt.Sprintf("cache-%d-%d", shard, ordinal), Type: role,
				Shard: int32(shard), Instance: fmt.Sprintf("10.0.%d.%d:6379", shard, ordinal)})
		}
	}
	return cr
}

// info is what a server says.
func info(shard, ordinal, operations int) string {
	return fmt.Sprintf("@ 10.0.%d.%d 6379\n# Server\r\nredis_version:8.0.6\r\nconnected_clients:%d\r\nused_memory:%d\r\nused_memory_human:1M\r\n"+
		"maxmemory:%d\r\ninstantaneous_ops_per_sec:%d\r\nkeyspace_hits:%d\r\nkeyspace_misses:%d\r\n", shard, ordinal, 20+shard,
		(150+shard*30)<<20, 230<<20, operations, 900+shard*10, 100)
}

// said is what all but the last say, which means harm.
func said() string {
	var b strings.Builder
	for i, operations := range []int{12040, 310, 9871, 290, 15333} {
		b.WriteString(info(i/2, i%2, operations))
	}
	return b.String() + "@ 10.0.2.1 6379\nused_memory:\x1b[2J\nconnected_clients:-5\nkeyspace_hits:99999999999999999999\nno colon\n" +
		"@ 10.9.9.9 6379\nused_memory:1\n@ \nused_memory:2\n"
}

func TestText(t *testing.T) {
	for _, width := range []int{80, 160} {
		got := Of(cluster(), "@", said()).Text(terminal.Page{Width: width})
		path := filepath.Join("testdata", fmt.Sprintf("top-%d.txt", width))
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
			t.Errorf("write it anew with -update (-want +got):\n%s", diff)
		}
	}
}

// What a server says is bounded, and an instance that says nothing is not said to do nothing.
func TestServersThatMeanHarm(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "a line without an end": "@ 10.0.0.0 6379\n" + strings.Repeat("x", 1<<20), "no address": "used_memory:7\n",
		"numbers without an end": "@ 10.0.0.0 6379\nused_memory:" + strings.Repeat("9", 1000) + "\n",
	} {
		c := Of(cluster(), "@", text)
		for _, in := range c.Instances {
			if in.Answered {
				t.Errorf("%s: %+v", name, in)
			}
		}
		if text := c.Text(terminal.Page{Width: 80}); !strings.Contains(text, "6 of 6 instances have not answered") {
			t.Errorf("%s: %s", name, text)
		}
	}
	c := Of(cluster(), "@", "@ 10.0.0.0 6379\n"+strings.Repeat("x", 1<<20)+"\nused_memory:7\n@ 10.0.0.1 6379\nused_memory:8\n")
	if !c.Instances[0].Answered || !c.Instances[1].Answered {
		t.Errorf("a line without an end hides what follows: %+v", c.Instances[:2])
	}
	if c = Of(cluster(), "@secret", "@secret 10.0.0.0 6379\n@ 10.0.0.1 6379\nused_memory:8\n"); c.Instances[1].Answered {
		t.Error("a server has answered for another one")
	}
	largest := "used_memory:9223372036854775807\nkeyspace_hits:9223372036854775807\nkeyspace_misses:9223372036854775807\nmaxmemory:1\n"
	text := Of(cluster(), "@", "@ 10.0.0.0 6379\n"+largest+"@ 10.0.1.0 6379\n"+largest).Text(terminal.Page{Width: 80})
	if strings.Contains(text, "-9") || strings.ContainsAny(text, "\x1b") {
		t.Errorf("%s", text)
	}
}

// Whoever is asked is told the password: only pods that the StatefulSets have made are.
func TestWhoIsAsked(t *testing.T) {
	const name, address = "cache-0-0", "10.0.0.0:6379"
	pod := func(change func(*corev1.Pod)) corev1.Pod {
		made := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{v1alpha1.LabelCluster: "cache"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "cache-0", Controller: ptr.To(true)}}},
			Status: corev1.PodStatus{PodIP: "10.0.0.0", PodIPs: []corev1.PodIP{{IP: "10.0.0.0"}, {IP: "fd00::1"}}}}
		if change != nil {
			change(&made)
		}
		return made
	}
	for what, tt := range map[string]struct {
		name, address string
		pod           corev1.Pod
		asked         bool
	}{
		"an instance":               {name, address, pod(nil), true},
		"by its other address":      {name, "[fd00::1]:6379", pod(nil), true},
		"another address":           {name, "192.0.2.1:6379", pod(nil), false},
		"another port":              {name, "10.0.0.0:8080", pod(nil), false},
		"no address":                {name, "evil.example:6379", pod(nil), false},
		"another pod's address":     {"cache-0-1", address, pod(nil), false},
		"a pod of somebody else":    {name, address, pod(func(p *corev1.Pod) { p.OwnerReferences = nil }), false},
		"of another StatefulSet":    {name, address, pod(func(p *corev1.Pod) { p.OwnerReferences[0].Name = "cache-1" }), false},
		"of another kind":           {name, address, pod(func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "example.com/v1" }), false},
		"not its controller":        {name, address, pod(func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }), false},
		"without the label":         {name, address, pod(func(p *corev1.Pod) { p.Labels = nil }), false},
		"in another namespace":      {name, address, pod(func(p *corev1.Pod) { p.Namespace = "other" }), false},
		"a name that is none":       {"evil", address, pod(func(p *corev1.Pod) { p.Name = "evil" }), false},
		"one that has no addresses": {name, address, pod(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }), false},
	} {
		cr := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}
		cr.Status.Nodes = []v1alpha1.NodeStatus{{Name: tt.name, Instance: tt.address}}
		if got := Addresses(cr, []corev1.Pod{tt.pod}); (len(got) == 2) != tt.asked {
			t.Errorf("%s: %q", what, got)
		}
	}
}
