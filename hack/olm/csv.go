// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// csv is the ClusterServiceVersion of a bundle. It is kept as data, so that a field which this program does not know stays.
type csv struct {
	path   string
	object unstructured.Unstructured
}

// readCSV reads the one ClusterServiceVersion of a bundle's folder.
func readCSV(bundle string) (*csv, error) {
	paths, err := filepath.Glob(filepath.Join(bundle, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil {
		return nil, err
	}
	if len(paths) != 1 {
		return nil, fmt.Errorf("%s/manifests has %d files *.clusterserviceversion.yaml; a bundle has one", bundle, len(paths))
	}
	object, err := readObject(paths[0])
	if err != nil {
		return nil, err
	}
	return &csv{path: paths[0], object: object}, nil
}

func readObject(path string) (unstructured.Unstructured, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of this checkout
	if err != nil {
		return unstructured.Unstructured{}, err
	}
	var object unstructured.Unstructured
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}

func (c *csv) write() error {
	text, err := yaml.Marshal(c.object.Object)
	if err != nil {
		return err
	}
	return os.WriteFile(c.path, text, 0o644) //nolint:gosec // everybody may read a bundle
}

func (c *csv) annotate(name, value string) {
	annotations := c.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	c.object.SetAnnotations(annotations)
}

// containers are all containers of the CSV's deployments, to be read or changed in place.
func (c *csv) containers() ([]map[string]any, error) {
	deployments, err := maps(c.object.Object, "spec", "install", "spec", "deployments")
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	for _, deployment := range deployments {
		for _, field := range []string{"initContainers", "containers"} {
			containers, err := maps(deployment, "spec", "template", "spec", field)
			if err != nil {
				return nil, err
			}
			all = append(all, containers...)
		}
	}
	return all, nil
}

// manager is the operator's own container.
func (c *csv) manager() (map[string]any, error) {
	containers, err := c.containers()
	if err != nil {
		return nil, err
	}
	for _, container := range containers {
		if container["name"] == "manager" {
			return container, nil
		}
	}
	return nil, fmt.Errorf("%s has no container named manager", c.path)
}

// maps is a list of objects inside of another one, not copied; it is empty where the list is missing.
func maps(object map[string]any, fields ...string) ([]map[string]any, error) {
	value, found, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil || !found || value == nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%v is %T, not a list", fields, value)
	}
	all := make([]map[string]any, len(list))
	for i := range list {
		if all[i], ok = list[i].(map[string]any); !ok {
			return nil, fmt.Errorf("%v[%d] is %T, not an object", fields, i, list[i])
		}
	}
	return all, nil
}
