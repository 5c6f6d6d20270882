// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/checkup"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// unpacked are the files of a bundle.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	opened, err := os.Open(file)
	shared.Check(t, err)
	defer func() { _ = opened.Close() }()
	compressed, err := gzip.NewReader(opened)
	shared.Check(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		shared.Check(t, err)
		text, err := io.ReadAll(archive)
		shared.Check(t, err)
		files[path.Base(header.Name)] = string(text)
	}
}

// A report has the objects, no Secret, and none of the passwords that people write where they do not belong.
func TestReport(t *testing.T) {
	const password = "hunter2-horse"
	ctx, namespace := context.Background(), shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	own := metav1.ObjectMeta{Name: "cache-config", Namespace: namespace, Labels: map[string]string{v1alpha1.LabelCluster: "cache"}}
	data := map[string]string{"redis.conf": "maxmemory 100mb\nmasterauth " + password}
	shared.Check(t, api.Create(ctx, &corev1.ConfigMap{ObjectMeta: own, Data: data}))
	own.Name = "cache-auth"
	shared.Check(t, api.Create(ctx, &corev1.Secret{ObjectMeta: own, StringData: map[string]string{"password": password}}))
	shared.Change(t, api, cr, func(cr *v1alpha1.RedisCluster) {
		cr.Annotations = map[string]string{"note": "the password is " + password, "kubectl.kubernetes.io/last-applied-configuration": password}
	})
	helps := user(t, "helps-"+namespace, namespace, "report")
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	out, err := run(helps, "", "report", "cache", "-n", namespace, "--file="+file)
	shared.Check(t, err)
	contains(t, out, "look them through")
	files := unpacked(t, file)
	for name, text := range files {
		if strings.Contains(text, password) || strings.Contains(text, "kind: Secret\n") {
			t.Errorf("%s holds a password or a Secret:\n%s", name, text)
		}
	}
	contains(t, files["status.txt"], "shard 0", "cache-0-0")
	contains(t, files["rediscluster.yaml"], "name: cache", "[redacted]")
	contains(t, files["configmaps.yaml"], "maxmemory 100mb")
	contains(t, files["pods.yaml"], "name: cache-0-0")
	contains(t, files["events.json"], "of the cluster")
	contains(t, files["check.txt"], "report: you have all that it uses")
	contains(t, files["not-read.txt"], "log") // there is no kubelet
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	if _, err := run(helps, "", "report", "cache", "-n", namespace, "--file="+file); err == nil {
		t.Error("a file that was there is written over")
	}
	for _, right := range checkup.Rights() {
		if strings.HasPrefix(right.Resource, "secrets") {
			t.Errorf("%s reads Secrets", right.Command)
		}
	}
}
