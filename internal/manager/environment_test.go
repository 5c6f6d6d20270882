// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestMemoryLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		variables map[string]string
		want      int64
	}{
		"in the Deployment":     {map[string]string{"MEMORY_LIMIT": "536870912"}, 483183819},
		"outside of a cluster":  {nil, 0},
		"said by somebody":      {map[string]string{"MEMORY_LIMIT": "536870912", "GOMEMLIMIT": "100MiB"}, 0},
		"not understood":        {map[string]string{"MEMORY_LIMIT": "512Mi"}, 0},
		"no limit in container": {map[string]string{"MEMORY_LIMIT": "0"}, 0},
	} {
		env := Environment(func(name string) (string, bool) { value, set := tt.variables[name]; return value, set })
		if got := env.MemoryLimit(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// The container's limit reaches the process.
func TestDeploymentTellsTheMemoryLimit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	told := slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool {
		return e.Name == "MEMORY_LIMIT" && e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil && e.ValueFrom.ResourceFieldRef.Resource ==
			"limits.memory" &&
			e.ValueFrom.ResourceFieldRef.ContainerName == container.Name
	})
	if !told || container.Resources.Limits.Memory().IsZero() {
		t.Errorf("container %s is not told its limit: %+v", container.Name, container.Env)
	}
}
