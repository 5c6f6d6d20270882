// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi has the CRDs of the Gateway API, of the version that hack/tools/gateway implements.
package gatewayapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// CRDs returns the standard channel. Root is the directory of the project. The module that holds them is fetched as Go fetches
// modules, and checked against go.sum.
func CRDs(root string) ([]*unstructured.Unstructured, error) {
	const module = "sigs.k8s.io/gateway-api"
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = filepath.Join(root, "hack", "tools", "gateway")
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	answer, err := command.Output()
	var found struct{ Dir, Error string }
	if problem := json.Unmarshal(answer, &found); problem != nil || found.Error != "" {
		return nil, fmt.Errorf("go mod download %s: %w, %s", module, err, found.Error)
	}
	files, err := filepath.Glob(filepath.Join(found.Dir, "config", "crd", "standard", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of the module that go.mod names
		if err != nil {
			return nil, err
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if object.GetKind() == "CustomResourceDefinition" {
				crds = append(crds, object)
			}
		}
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("%s holds no CRDs", found.Dir)
	}
	return crds, nil
}
