// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

func TestVariablesSetTheDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]string
		want Defaults
		// image is what a RedisCluster with the default runs.
		image string
	}{
		"none": {nil, BuiltIn(), "docker.io/library/redis:8.0.6"},
		"empty": {map[string]string{VariableRedis: "", VariableFooBar: ""}, BuiltIn(),
			"docker.io/library/redis:8.0.6"},
		"a tag of a mirror with a port": {map[string]string{VariableRedis: "mirror.example.com:5000/library/redis:8.2.1"},
			Defaults{Redis{"mirror.example.com:5000/library/redis", "8.2.1"}, FooBar}, "mirror.example.com:5000/library/redis:8.2.1"},
		"a digest": {map[string]string{VariableRedis: "mirror.example.com/redis@" + digest},
			Defaults{Redis{"mirror.example.com/redis", digest}, FooBar}, "mirror.example.com/redis@" + digest},
		"both": {map[string]string{VariableRedis: "mirror.example.com/redis:8.2.1@" + digest, VariableFooBar: "mirror.example.com/busybox@" +
			digest},
			Defaults{Redis{"mirror.example.com/redis", "8.2.1@" + digest}, "mirror.example.com/busybox@" + digest},
			"mirror.example.com/redis:8.2.1@" + digest},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FromEnvironment(func(variable string) string { return c.set[variable] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			spec := v1alpha1.RedisClusterSpec{Repository: got.Redis.Repository, Version: got.Redis.Version}
			if spec.Image() != c.image {
				t.Errorf("the image is %s, want %s", spec.Image(), c.image)
			}
		})
	}
}

func TestVariablesThatNameNoCertainImageAreRefused(t *testing.T) {
	for _, variable := range []string{VariableRedis, VariableFooBar} {
		for _, image := range []string{"redis", "mirror.example.com:5000/redis", "not an image", "redis@sha256:12", "redis@sha512:" +
			strings.Repeat("a", 128)} {
			_, err := FromEnvironment(func(name string) string { return map[string]string{variable: image}[name] })
			if err == nil || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), "write registry/repository:tag") {
				t.Errorf("%s=%s: %v", variable, image, err)
			}
		}
	}
}
