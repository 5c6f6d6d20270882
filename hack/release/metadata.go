// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// csv is what the ClusterServiceVersion's base says about the operator.
type csv struct {
	Metadata struct{ Annotations map[string]string }
	Spec     struct {
		Description string
		DisplayName string
		Keywords    []string
		Links       []struct{ Name, URL string }
		Maintainers []struct{ Name, Email string }
		Maturity    string

		MinKubeVersion            string
		CustomResourceDefinitions struct {
			Owned []struct{ Name, Kind, Version, DisplayName, Description string }
		}
	}
}

// writeMetadata writes Chart.yaml, with the annotations that Artifact Hub reads.
func (c chart) writeMetadata(objects []object) error {
	text, err := os.ReadFile(c.csv)
	if err != nil {
		return err
	}
	var about csv
	if err := yaml.Unmarshal(text, &about); err != nil {
		return fmt.Errorf("%s: %w", c.csv, err)
	}
	annotations, err := c.artifactHub(about, objects)
	if err != nil {
		return err
	}
	var maintainers []map[string]string
	for _, m := range about.Spec.Maintainers {
		maintainers = append(maintainers, map[string]string{"name": m.Name, "email": m.Email})
	}
	home := about.Metadata.Annotations["repository"]
	metadata, err := yaml.Marshal(map[string]any{
		"apiVersion":  "v2",
		"name":        "middleware-operator",
		"type":        "application",
		"version":     c.version,
		"appVersion":  c.version,
		"kubeVersion": ">=" + about.Spec.MinKubeVersion + "-0",
		"description": about.Metadata.Annotations["description"],
		"home":        home,
		"sources":     []string{home},
		"icon":        home + "/config/manifests/icon.svg",
		"keywords":    about.Spec.Keywords,
		"maintainers": maintainers,
		"annotations": annotations,
	})
	if err != nil {
		return err
	}
	const head = "# Made by `make chart` from config/manifests/bases.\n"
	return writeFile(filepath.Join(c.output, "Chart.yaml"), append([]byte(head), metadata...))
}

func (c chart) artifactHub(about csv, objects []object) (map[string]string, error) {
	crds := []map[string]string{}
	for _, owned := range about.Spec.CustomResourceDefinitions.Owned {
		if !hasCRD(objects, owned.Name) {
			return nil, fmt.Errorf("%s owns %s, which is not in config/crd", c.csv, owned.Name)
		}
		crds = append(crds, map[string]string{"kind": owned.Kind, "version": owned.Version, "name": owned.Name,
			"displayName": owned.DisplayName, "description": strings.Join(strings.Fields(owned.Description), " ")})
	}
	links := []map[string]string{}
	for _, link := range about.Spec.Links {
		links = append(links, map[string]string{"name": link.Name, "url": link.URL})
	}
	image, _, err := c.imageValues()
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		"artifacthub.io/category":             "database",
		"artifacthub.io/license":              "Apache-2.0",
		"artifacthub.io/operator":             "true",
		"artifacthub.io/operatorCapabilities": strings.ToLower(about.Metadata.Annotations["capabilities"]),
		"artifacthub.io/prerelease":           fmt.Sprint(strings.Contains(c.version, "-")),
	}
	lists := map[string]any{"crds": crds, "links": links,
		"images": []map[string]any{{"name": "operator", "image": image + ":" + c.version, "platforms": []string{"linux/amd64", "linux/arm64"}}}}
	if c.changelog != "" {
		part, err := readChanges(c.changelog, c.version, true)
		if err != nil {
			return nil, err
		}
		if lists["changes"] = part.changes(); part.has("Security") {
			annotations["artifacthub.io/containsSecurityUpdates"] = "true"
		}
	}
	for name, list := range lists {
		text, err := yaml.Marshal(list)
		if err != nil {
			return nil, err
		}
		annotations["artifacthub.io/"+name] = string(text)
	}
	return annotations, nil
}

func hasCRD(objects []object, name string) bool {
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" && o.GetName() == name {
			return true
		}
	}
	return false
}

var imageForm = regexp.MustCompile(`^([^@]+?)(?:@(sha256:[0-9a-f]{64}))?$`)

// imageValues are the repository and the digest of the operator's image: those of --image, else those of values.yaml.
func (c chart) imageValues() (repository, digest string, err error) {
	if c.image != "" {
		match := imageForm.FindStringSubmatch(c.image)
		if match == nil || strings.Contains(match[1][strings.LastIndex(match[1], "/")+1:], ":") {
			return "", "", fmt.Errorf("--image: %q is not NAME or NAME@sha256:DIGEST; the tag is the version", c.image)
		}
		return match[1], match[2], nil
	}
	text, err := os.ReadFile(c.values())
	if err != nil {
		return "", "", err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return "", "", fmt.Errorf("%s: %w", c.values(), err)
	}
	repository, _, err = unstructured.NestedString(values, "image", "repository")
	return repository, "", err
}

func (c chart) values() string { return filepath.Join(c.output, "values.yaml") }

// writeImage writes the image of --image into values.yaml.
func (c chart) writeImage() error {
	if c.image == "" {
		return nil
	}
	repository, digest, err := c.imageValues()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.values())
	if err != nil {
		return err
	}
	for field, value := range map[string]string{"repository": repository, "digest": `"` + digest + `"`} {
		line := regexp.MustCompile(`(?m)^  ` + field + `: .*$`)
		if found := line.FindAll(text, -1); len(found) != 1 {
			return fmt.Errorf("%s has %d lines of image.%s", c.values(), len(found), field)
		}
		text = line.ReplaceAllLiteral(text, bytes.TrimRight([]byte("  "+field+": "+value), " "))
	}
	return writeFile(c.values(), text)
}
