// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// aProxy stands for the sidecar of a mesh: it is there before Redis, passes on connections, and stays until Redis has stopped.
const aProxy = `{"initContainers": [{"name": "proxy", "image": "docker.io/library/busybox:1.36", "restartPolicy": "Always",
	"command": ["sh", "-c", "trap 'exit 0' TERM; cat /etc/proxy/greeting; nc -ll -p 16000 -e nc 127.0.0.1 6379 & wait"],
	"startupProbe": {"tcpSocket": {"port": 16000}, "periodSeconds": 1},
	"volumeMounts": [{"name": "settings", "mountPath": "/etc/proxy"}]},
	{"name": "check", "image": "docker.io/library/busybox:1.36", "command": ["sh", "-c", "nc -w 2 127.0.0.1 16000 </dev/null"]}],
	"containers": [{"name": "redis", "volumeMounts": [{"name": "settings", "mountPath": "/settings", "readOnly": true}]}],
	"volumes": [{"name": "settings", "configMap": {"name": "proxy"}}],
	"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["proxy.example.com"]}], "terminationGracePeriodSeconds": 90}`

// A sidecar comes and goes by rollouts that clients do not notice.
func TestRedisClusterWithASidecar(t *testing.T) {
	if os.Getenv("E2E") != "all" {
		t.Skip("takes minutes: with E2E=all; TestOverlay has the API server alone")
	}
	parallel(t)
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "proxy",
			Labels: map[string]string{v1alpha1.LabelPod: "true"}}, Data: map[string]string{"greeting": "hello"}}
		live.Create(t, settings)
		load := underLoad(t, cluster, 2000)
		rolled(t, cluster, "a sidecar", func(c *v1alpha1.RedisCluster) {
			c.Spec.Pod[0].Overlay = &runtime.RawExtension{Raw: []byte(aProxy)}
		})
		for _, pod := range podsOf(t, cluster) {
			out, err := cli(t.Context(), cluster, pod.Name, "-h", "proxy.example.com", "-p", "16000", "PING")
			if err != nil || strings.TrimSpace(out) != "PONG" {
				t.Errorf("%s by its sidecar: %q, %v", pod.Name, out, err)
			}
			if out, err = live.Execute(t.Context(), pod.Namespace, pod.Name, "redis", "cat", "/settings/greeting"); err != nil || out != "hello" {
				t.Errorf("%s has the settings %q, %v", pod.Name, out, err)
			}
			if out, err := live.Execute(t.Context(), pod.Namespace, pod.Name, "proxy", "ls", "/data", "/etc/redis"); err == nil {
				t.Errorf("the sidecar of %s sees the instance's files: %s", pod.Name, out)
			}
		}
		rolled(t, cluster, "no sidecar", func(c *v1alpha1.RedisCluster) { c.Spec.Pod[0].Overlay = nil })
		for _, pod := range podsOf(t, cluster) {
			if len(pod.Spec.InitContainers) > 0 {
				t.Errorf("%s has %d init containers", pod.Name, len(pod.Spec.InitContainers))
			}
		}
		run.WantUnnoticed(load, live.NothingMoved)
	})
}
