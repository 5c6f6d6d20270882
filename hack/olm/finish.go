// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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
// the operator's image, the images that it uses unless a resource names others, and the resource to begin with.
func finish(bundle, base, icon string) error {
	c, err := readCSV(bundle)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return setCreatedAt(c, base) },
		func() error { return setIcon(c, icon) },
		func() error { return setImages(c, bundle) },
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

func setImages(c *csv, bundle string) error {
	manager, err := c.manager()
	if err != nil {
		return err
	}
	operator, _ := manager["image"].(string)
	c.annotate(containerImage, operator)
	related := []any{map[string]any{"name": "operator", "image": operator}}
	defaults, err := defaultImages(bundle)
	if err != nil {
		return err
	}
	for _, d := range defaults {
		related = append(related, map[string]any{"name": d.name, "image": d.image})
	}
	return unstructured.SetNestedSlice(c.object.Object, related, "spec", "relatedImages")
}

type namedImage struct{ name, image string }

// defaultImages are the images that pods get when a custom resource names none: the defaults of the CRDs' schemas.
func defaultImages(bundle string) ([]namedImage, error) {
	redis, err := specDefaults(filepath.Join(bundle, "manifests", "redis.middleware.hc.cn_redisclusters.yaml"), "repository", "version")
	if err != nil {
		return nil, err
	}
	foobar, err := specDefaults(filepath.Join(bundle, "manifests", "k8s.io_foobars.yaml"), "image")
	if err != nil {
		return nil, err
	}
	return []namedImage{{"redis", redis[0] + ":" + redis[1]}, {"foobar-shell", foobar[0]}}, nil
}

// specDefaults are the defaults that a CRD's storage version has for string fields of the spec.
func specDefaults(file string, fields ...string) ([]string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of this checkout
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var defaults []string
	for _, version := range crd.Spec.Versions {
		if !version.Storage {
			continue
		}
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		for _, field := range fields {
			value := ""
			if d := spec.Properties[field].Default; d != nil {
				if err := json.Unmarshal(d.Raw, &value); err != nil {
					return nil, fmt.Errorf("%s: default of spec.%s: %w", file, field, err)
				}
			}
			if value == "" {
				return nil, fmt.Errorf("%s: spec.%s has no default", file, field)
			}
			defaults = append(defaults, value)
		}
	}
	return defaults, nil
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
