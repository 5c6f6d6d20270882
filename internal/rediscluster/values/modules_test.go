// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

func TestModuleFile(t *testing.T) {
	const redis, bundle = "docker.io/library/redis:8.0.6", "docker.io/valkey/valkey-bundle:9.0.0"
	for _, tt := range []struct{ image, name, file, problem string }{
		{redis, "json", "/usr/local/lib/redis/modules/rejson.so", ""},
		{redis, "search", "/usr/local/lib/redis/modules/redisearch.so", ""},
		{redis, "bloom", "/usr/local/lib/redis/modules/redisbloom.so", ""},
		{redis, "timeseries", "/usr/local/lib/redis/modules/redistimeseries.so", ""},
		{"mirror.example.com:5000/x/redis@sha256:" + strings.Repeat("0", 64), "json", "/usr/local/lib/redis/modules/rejson.so", ""},
		{bundle, "json", "/usr/lib/valkey/libjson.so", ""},
		{bundle, "search", "/usr/lib/valkey/libsearch.so", ""},
		{bundle, "bloom", "/usr/lib/valkey/libvalkey_bloom.so", ""},
		{bundle, "timeseries", "", "is not known to be in the image " + bundle},
		{"docker.io/valkey/valkey:9.0.0", "json", "", "or the absolute path"},
		{"mine:1", "json", "", "or the absolute path"},
		{redis, "../../data/evil.so", "", "or the absolute path"},
		{redis, "rejson.so", "", "or the absolute path"},
		{"mine:1", "/opt/my-module.so", "/opt/my-module.so", ""},
		{"mine:1", "/data/dump.rdb", "", "is not in the image: /data is written by others"},
		{"mine:1", "/data", "", "is not in the image"},
		{"mine:1", "/etc/redis/redis.conf", "", "is not in the image"},
		{"mine:1", "/proc/self/fd/7", "", "is not in the image"},
		{"mine:1", "/dev/shm/x.so", "", "is not in the image"},
		{"mine:1", "/tmp/x.so", "", "is not in the image"},
		{"mine:1", "/opt/../data/x.so", "", "is not the plain absolute path"},
		{"mine:1", "//data/x.so", "", "is not the plain absolute path"},
		{"mine:1", "/opt/x.so\nport 1", "", "is not the plain absolute path"},
		{"mine:1", "/opt/x.so ", "", "is not the plain absolute path"},
	} {
		file, problem := redisconf.ModuleFile(tt.image, tt.name)
		if file != tt.file || (problem == "") != (tt.problem == "") || !strings.Contains(problem, tt.problem) {
			t.Errorf("%s in %s: %q, %q, want %q, %q", tt.name, tt.image, file, problem, tt.file, tt.problem)
		}
	}
}

// withModules is a cluster of an image with modules.
func withModules(modules ...v1alpha1.Module) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{Spec: v1alpha1.RedisClusterSpec{Repository: "redis", Version: "8.0.6", Modules: modules}}
}

// TestModulesInRedisConf: in the spec's order, each on one line whatever its arguments hold, and none that is not a file of the image.
func TestModulesInRedisConf(t *testing.T) {
	cr := withModules(
		v1alpha1.Module{Name: "search", Args: []string{"WORKERS", "4"}},
		v1alpha1.Module{Name: "json", Args: []string{"a b", "\nrequirepass x", `"`}},
		v1alpha1.Module{Name: "/data/evil.so"})
	var got []any
	for _, entry := range Build(cr, v1alpha1.Topology{1}, redisconf.AskedFor(cr, nil), redisconf.TLS{})["config"].([]any) {
		if entry.([]any)[0] == "loadmodule" {
			got = append(got, entry)
		} else if len(got) > 0 {
			t.Errorf("%s stands behind the modules", entry)
		}
	}
	want := []any{
		[]any{"loadmodule", "/usr/local/lib/redis/modules/redisearch.so", "WORKERS", "4"},
		[]any{"loadmodule", "/usr/local/lib/redis/modules/rejson.so", "a b", `\x0arequirepass x`, `\x22`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAChangeOfModulesRestartsInstances, and nothing else of the spec does because of them: a cluster without modules keeps the pod
// template that it had before there were any.
func TestAChangeOfModulesRestartsInstances(t *testing.T) {
	annotation := func(cr *v1alpha1.RedisCluster) string {
		pod, _ := Build(cr, v1alpha1.Topology{1}, redisconf.AskedFor(cr, nil), redisconf.TLS{})["pod"].(map[string]any)
		annotations, _ := pod["annotations"].(map[string]any)
		text, _ := annotations[AnnotationModules].(string)
		return text
	}
	json := v1alpha1.Module{Name: "json"}
	if got := annotation(withModules()); got != "" {
		t.Errorf("without modules the annotation is %q", got)
	}
	seen := map[string]string{"": "none"}
	for name, cr := range map[string]*v1alpha1.RedisCluster{
		"one":               withModules(json),
		"another":           withModules(v1alpha1.Module{Name: "bloom"}),
		"with an argument":  withModules(v1alpha1.Module{Name: "json", Args: []string{"a"}}),
		"with two":          withModules(v1alpha1.Module{Name: "json", Args: []string{"a", "b"}}),
		"with one of both":  withModules(v1alpha1.Module{Name: "json", Args: []string{"a b"}}),
		"two modules":       withModules(json, v1alpha1.Module{Name: "bloom"}),
		"in the other way":  withModules(v1alpha1.Module{Name: "bloom"}, json),
		"with a line break": withModules(v1alpha1.Module{Name: "json", Args: []string{"\nloadmodule \"bloom\""}}),
	} {
		got := annotation(cr)
		if other, taken := seen[got]; taken || got != redisconf.ModulesDigest(&cr.Spec) {
			t.Errorf("%s has the annotation of %s: %q", name, other, got)
		}
		seen[got] = name
	}
	kept := withModules(json)
	kept.Spec.Pod = []v1alpha1.PodTemplate{{Annotations: map[string]string{"team": "a", AnnotationModules: "forged"}}}
	annotations := Build(kept, v1alpha1.Topology{1}, redisconf.AskedFor(kept, nil), redisconf.TLS{})["pod"].(map[string]any)["annotations"]
	if diff := cmp.Diff(map[string]any{"team": "a", AnnotationModules: redisconf.ModulesDigest(&kept.Spec)}, annotations); diff != "" {
		t.Error(diff)
	}
}
