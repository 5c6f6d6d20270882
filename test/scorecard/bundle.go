// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// almExamples is the annotation of a ClusterServiceVersion that holds an example of each kind, as a JSON list. Consoles fill their
// forms with them.
const almExamples = "alm-examples"

// examples returns the examples in the ClusterServiceVersion of an unpacked bundle.
func examples(bundle string) ([]unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(bundle, "manifests", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the bundle is what the caller points at
		if err != nil {
			return nil, err
		}
		var manifest unstructured.Unstructured
		if err := yaml.Unmarshal(text, &manifest.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if manifest.GetKind() == "ClusterServiceVersion" {
			return parseExamples(file, manifest.GetAnnotations()[almExamples])
		}
	}
	return nil, fmt.Errorf("%s has no ClusterServiceVersion among its %d manifests; give the directory that holds manifests/ and metadata/",
		bundle, len(files))
}

func parseExamples(file, text string) ([]unstructured.Unstructured, error) {
	if text == "" {
		return nil, fmt.Errorf("%s: metadata.annotations[%s] is empty; `make bundle` fills it from config/samples", file, almExamples)
	}
	var contents []map[string]any
	if err := json.Unmarshal([]byte(text), &contents); err != nil {
		return nil, fmt.Errorf("%s: metadata.annotations[%s] is no JSON list of objects: %w", file, almExamples, err)
	}
	list := make([]unstructured.Unstructured, len(contents))
	for i, content := range contents {
		list[i].Object = content
	}
	return list, nil
}

// exampleOf returns the first example of a kind.
func exampleOf(kind schema.GroupVersionKind, list []unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for i := range list {
		if list[i].GroupVersionKind() == kind {
			return list[i].DeepCopy(), nil
		}
	}
	return nil, errors.New("the bundle has no example of " + kind.String())
}
