// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin"
	"middleware.hc.cn/operator/test/live"
)

// middleware runs the plugin of kubectl, with the kubectl of the checkout.
func middleware(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	kubectl, err := exec.CommandContext(t.Context(), filepath.Join("..", "..", "hack", "tool.sh"), "kubernetes", "kubectl").Output()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	root := plugin.New(plugin.Environment{In: strings.NewReader(""), Out: &out, Err: &out, Lookup: os.LookupEnv,
		Kubectl: strings.TrimSpace(string(kubectl))})
	root.SetArgs(arguments)
	err = root.ExecuteContext(t.Context())
	return out.String(), err
}

// wantSteered asserts of a cluster with a password and TLS that the plugin gets into it, sees what its instances do and hold, and has a
// replica take over at once.
func wantSteered(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	in := "--namespace=" + cluster.Namespace
	live.Ready(t, cluster)
	out, err := middleware(t, "cli", cluster.Name, in, "--", "SET", "a b", "$(id) 'x")
	if err != nil || !strings.Contains(out, "OK") {
		t.Errorf("cli: %v: %s", err, out)
	}
	out, err = middleware(t, "cli", cluster.Name, in, "--", "GET", "a b")
	if err != nil || !strings.Contains(out, "$(id) 'x") {
		t.Errorf("cli: %v: %s", err, out)
	}
	live.Eventually(t, "top shows all instances", func() error { // which have 20 s to answer
		if out, err := middleware(t, "top", cluster.Name, in); err != nil || strings.Contains(out, "have not answered") ||
			strings.Count(out, "replica") != 3 {
			return errors.Join(err, errors.New(out))
		}
		return nil
	})
	out, err = middleware(t, "keys", cluster.Name, in, "--number=1", "--for=5m")
	if err != nil || !strings.Contains(out, "LARGEST") || strings.Contains(out, "shard ") {
		t.Errorf("keys: %v: %s", err, out)
	}
	replica := ""
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	for _, node := range cluster.Status.Nodes {
		if node.Shard == 1 && node.Type == "slave" {
			replica = node.Name
		}
	}
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.SpreadMasters = ptr.To(false) })
	out, err = middleware(t, "failover", cluster.Name, replica, in)
	if err != nil || !strings.Contains(out, replica+" is the master of shard 1") {
		t.Errorf("failover: %v: %s", err, out)
	}
	live.Ready(t, cluster)
	if now := master(t, cluster, 1).Name; now != replica {
		t.Errorf("%s is the master of shard 1, and %s was asked for", now, replica)
	}
	if cluster.Annotations[v1alpha1.AnnotationSwitchover] != "" {
		t.Errorf("the request is still there: %v", cluster.Annotations)
	}
}
