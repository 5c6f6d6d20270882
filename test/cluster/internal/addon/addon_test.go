// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestManifestsAreComplete(t *testing.T) {
	for name, manifests := range map[string]string{"base": Base(), "metrics-server": MetricsServer()} {
		if strings.Contains(manifests, "${") {
			t.Errorf("%s: a placeholder was not replaced", name)
		}
		for _, document := range strings.Split(manifests, "\n---\n") {
			var object struct {
				Kind     string                `json:"kind"`
				Metadata struct{ Name string } `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind == "" || object.Metadata.Name == "" {
				t.Errorf("%s: not an object (%v): %.60q", name, err, document)
			}
		}
	}
}
