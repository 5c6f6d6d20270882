// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/admission/images"
)

// relatedImages are the images of the bundle but for the operator's own: what a mirror copies for a cluster without the Internet.
func relatedImages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, related := range readCSV(t).Spec.RelatedImages[1:] {
		all = append(all, related.Image)
	}
	return all
}

// TestVariablesAndRelatedImagesAreWhatTheOperatorChooses: each image has a variable, and each variable is an image of the bundle.
func TestVariablesAndRelatedImagesAreWhatTheOperatorChooses(t *testing.T) {
	variables := map[string]string{}
	var values []string
	for _, e := range readCSV(t).manager(t).Env {
		if strings.HasPrefix(e.Name, "RELATED_IMAGE_") {
			variables[e.Name] = e.Value
			values = append(values, e.Value)
		}
	}
	if diff := gocmp.Diff(values, relatedImages(t)); diff != "" {
		t.Errorf("variables (-) and relatedImages (+) differ:\n%s", diff)
	}
	asked := map[string]string{}
	got, err := images.FromEnvironment(func(name string) string {
		asked[name] = variables[name]
		return variables[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(variables, asked); diff != "" {
		t.Errorf("variables of the Deployment (-) and those that the operator reads (+) differ:\n%s", diff)
	}
	if diff := gocmp.Diff(images.BuiltIn(), got); diff != "" {
		t.Errorf("what is built in (-) and what the Deployment says (+) differ:\n%s", diff)
	}
}

// TestSchemasHaveNoImages: a default of a schema could not be changed by a variable, nor by any later release.
func TestSchemasHaveNoImages(t *testing.T) {
	for file, kind := range kindsOf(t) {
		if kind != "CustomResourceDefinition" {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		read(t, filepath.Join(manifestsDir, file), &crd)
		for _, version := range crd.Spec.Versions {
			defaultsIn(version.Name, version.Schema.OpenAPIV3Schema, func(path, value string) {
				if isImage(value) || strings.HasSuffix(strings.ToLower(path), "image") || strings.HasSuffix(path, ".repository") {
					t.Errorf("%s: %s has the default %s", file, path, value)
				}
			})
		}
	}
}

func defaultsIn(path string, schema *apiextensionsv1.JSONSchemaProps, found func(path, value string)) {
	if schema.Default != nil {
		found(path, string(schema.Default.Raw))
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		defaultsIn(path+"."+name, &property, found)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		defaultsIn(path+"[]", schema.Items.Schema, found)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		defaultsIn(path+".*", schema.AdditionalProperties.Schema, found)
	}
}

// registries are those that projects publish images in.
var registries = []string{"docker.io/", "quay.io/", "ghcr.io/", "gcr.io/", "registry.k8s.io/", "registry.redhat.io/", "mcr.microsoft.com/",
	"public.ecr.aws/"}

func isImage(text string) bool {
	text = strings.Trim(text, `"`)
	return slices.ContainsFunc(registries, func(registry string) bool { return strings.HasPrefix(text, registry) })
}

// TestEveryImageOfChartsAndCodeIsRelated: what is named anywhere can run somewhere.
func TestEveryImageOfChartsAndCodeIsRelated(t *testing.T) {
	related := relatedImages(t)
	check := func(where, image string) {
		if isImage(image) && !slices.ContainsFunc(related, func(r string) bool { return r == image || strings.HasPrefix(r, image+":") }) {
			t.Errorf("%s: %s is not in relatedImages %v", where, image, related)
		}
	}
	seen := 0
	err := fs.WalkDir(helmcharts.FS, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".tpl") {
			return err
		}
		text, err := fs.ReadFile(helmcharts.FS, path)
		if err != nil {
			return err
		}
		for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'{}(),", r) }) {
			check(path, word)
		}
		var values map[string]any
		if filepath.Base(path) == "values.yaml" && yaml.Unmarshal(text, &values) == nil {
			if image, _ := values["image"].(string); image != "" {
				seen++
				if !slices.Contains(related, image) {
					t.Errorf("%s: the image %s is not in relatedImages %v", path, image, related)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(related) {
		t.Errorf("%d charts have a default image, and the bundle has %v", seen, related)
	}
	for _, dir := range []string{"api", "cmd", "internal"} {
		literals(t, filepath.Join("../..", dir), check)
	}
}

// literals calls found with every string of the Go code below a directory, tests left out.
func literals(t *testing.T, dir string, found func(where, text string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found(path, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestArchitectures: the bundle offers what `make image-index` builds.
func TestArchitectures(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "ARCHITECTURES ?="); ok {
			built = strings.Fields(list)
		}
	}
	var offered []string
	for label, value := range readCSV(t).Labels {
		if arch, ok := strings.CutPrefix(label, "operatorframework.io/arch."); ok && value == "supported" {
			offered = append(offered, arch)
		}
	}
	slices.Sort(built)
	slices.Sort(offered)
	if diff := gocmp.Diff([]string{"amd64", "arm64"}, offered); diff != "" {
		t.Errorf("labels of the bundle: %s", diff)
	}
	if diff := gocmp.Diff(built, offered); diff != "" {
		t.Errorf("the Makefile builds (-) other architectures than the bundle offers (+):\n%s", diff)
	}
	for _, deployment := range readCSV(t).Spec.Install.Spec.Deployments {
		if pod := deployment.Spec.Template.Spec; pod.NodeSelector != nil || pod.Affinity != nil && pod.Affinity.NodeAffinity != nil {
			t.Errorf("the Deployment chooses nodes: %v %v", pod.NodeSelector, pod.Affinity)
		}
	}
}
