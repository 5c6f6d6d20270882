// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// release keeps the CRDs of a version without their descriptions, which no upgrade can break and which are most of their size.
func release(bases, output string) error {
	if output == "" {
		return errors.New("release: --output is missing, such as --output=config/crd/released/0.1.0")
	}
	files, err := filepath.Glob(filepath.Join(bases, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("release: no CRDs in %s", bases)
	}
	if err := os.MkdirAll(output, 0o755); err != nil { //nolint:gosec // a folder of the checkout
		return err
	}
	for _, file := range files {
		object, err := readObject(file)
		if err != nil {
			return err
		}
		versions, err := maps(object.Object, "spec", "versions")
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range versions {
			if schema, ok := version["schema"].(map[string]any); ok {
				undescribe(schema["openAPIV3Schema"])
			}
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(output, filepath.Base(file)), text, 0o644); err != nil { //nolint:gosec // a file of the checkout
			return err
		}
	}
	return nil
}

// undescribe removes the descriptions of a schema and of the schemas inside of it; a property that is called description stays.
func undescribe(schema any) {
	object, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(object, "description")
	for _, field := range []string{"properties", "patternProperties"} {
		properties, _ := object[field].(map[string]any)
		for _, property := range properties {
			undescribe(property)
		}
	}
	for _, field := range []string{"items", "additionalProperties", "not"} {
		undescribe(object[field])
	}
	for _, field := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := object[field].([]any)
		for _, item := range list {
			undescribe(item)
		}
	}
}
