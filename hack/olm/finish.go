// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations of a CSV.
const (
	createdAt              = "createdAt"
	containerImage         = "containerImage"
	almExamples            = "alm-examples"
	initializationResource = "operatorframework.io/initialization-resource"
)

// firstKind is what a console proposes to make after the installation.
const firstKind = "RedisCluster"

// finish completes the CSV with what follows from other files, so that it is written down once:
// the date of the release (operator-sdk writes that of the run, which would make every bundle differ), the icon,
// the operator's image, the images that its variables name, and the resource to begin with.
func finish(bundle, base, icon string) error {
	c, err := readCSV(bundle)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return setCreatedAt(c, base) },
		func() error { return setIcon(c, icon) },
		func() error { return setImages(c) },
		func() error { return setInitializationResource(c) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("finishing %s: %w", c.path, err)
		}
	}
	return c.write()
}

func setCreatedAt(c *csv, base string) error {
	object, err := readObject(base)
	if err != nil {
		return err
	}
	date := object.GetAnnotations()[createdAt]
	if _, err := time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("%s: metadata.annotations.%s must be the release date, such as 2026-11-21T00:00:00Z: %w", base, createdAt, err)
	}
	c.annotate(createdAt, date)
	return nil
}

func setIcon(c *csv, file string) error {
	data, err := iconData(file)
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(c.object.Object, []any{map[string]any{"base64data": data, "mediatype": iconType}}, "spec", "icon")
}

const iconType = "image/svg+xml"

func iconData(file string) (string, error) {
	picture, err := os.ReadFile(file) //nolint:gosec // a file of this checkout
	if err != nil {
		return "", fmt.Errorf("icon: %w", err)
	}
	return base64.StdEncoding.EncodeToString(picture), nil
}

func setImages(c *csv) error {
	manager, err := c.manager()
	if err != nil {
		return err
	}
	operator, _ := manager["image"].(string)
	c.annotate(containerImage, operator)
	related := []any{map[string]any{"name": "operator", "image": operator}}
	variables, err := imageVariables(manager)
	if err != nil {
		return err
	}
	for _, variable := range variables {
		name := strings.TrimPrefix(variable["name"].(string), imageVariable)
		related = append(related, map[string]any{"name": strings.ReplaceAll(strings.ToLower(name), "_", "-"), "image": variable["value"]})
	}
	return unstructured.SetNestedSlice(c.object.Object, related, "spec", "relatedImages")
}

// imageVariable begins the names of the manager's variables that hold the images of resources that name none.
const imageVariable = "RELATED_IMAGE_"

// imageVariables are these variables, to be read or changed in place.
func imageVariables(manager map[string]any) ([]map[string]any, error) {
	env, err := maps(manager, "env")
	if err != nil {
		return nil, err
	}
	var found []map[string]any
	for _, variable := range env {
		name, _ := variable["name"].(string)
		if !strings.HasPrefix(name, imageVariable) {
			continue
		}
		if value, _ := variable["value"].(string); value == "" {
			return nil, fmt.Errorf("variable %s of the manager has no value", name)
		}
		found = append(found, variable)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the manager has no variable %s…", imageVariable)
	}
	return found, nil
}

func setInitializationResource(c *csv) error {
	var examples []map[string]any
	if err := json.Unmarshal([]byte(c.object.GetAnnotations()[almExamples]), &examples); err != nil {
		return fmt.Errorf("annotation %s: %w", almExamples, err)
	}
	for _, example := range examples {
		if example["kind"] != firstKind {
			continue
		}
		text, err := json.Marshal(example)
		if err != nil {
			return err
		}
		c.annotate(initializationResource, string(text))
		return nil
	}
	return fmt.Errorf("annotation %s has no %s", almExamples, firstKind)
}
