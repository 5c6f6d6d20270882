// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
	"sigs.k8s.io/yaml"
)

const (
	basesDir     = "../../config/crd/bases"
	releasedDir  = "../../config/crd/released"
	rediscluster = "redis.middleware.hc.cn_redisclusters.yaml"
)

// TestCRDsAreASafeUpgradeOfTheNewestRelease asks what OLM v1 asks before it upgrades an operator: does every object that the release
// accepted stay valid, and mean the same?
func TestCRDsAreASafeUpgradeOfTheNewestRelease(t *testing.T) {
	release := newestRelease(t)
	files, err := filepath.Glob(filepath.Join(releasedDir, release, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("release %s has no CRDs: %v", release, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			for _, danger := range dangers(t, readCRD(t, file), readCRD(t, filepath.Join(basesDir, name))) {
				t.Errorf("upgrade from %s: %s", release, danger)
			}
		})
	}
}

// TestEachKindHasOneVersion: nothing is converted, and nothing is stored that has to be migrated.
func TestEachKindHasOneVersion(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(basesDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no CRDs: %v", err)
	}
	for _, file := range files {
		crd := readCRD(t, file)
		if v := crd.Spec.Versions; len(v) != 1 || !v[0].Served || !v[0].Storage || crd.Spec.Conversion != nil {
			t.Errorf("%s has %d versions", crd.Name, len(v))
		}
	}
}

// TestDangerousCRDChangesAreFound shows that the test above would fail.
func TestDangerousCRDChangesAreFound(t *testing.T) {
	type schema = apiextensionsv1.JSONSchemaProps
	for name, c := range map[string]struct {
		change func(spec *schema)
		want   string
	}{
		"removed field": {
			func(spec *schema) { delete(spec.Properties, "pause") }, "existingFieldRemoval"},
		"new required field": {
			func(spec *schema) { spec.Required = append(spec.Required, "storage") }, "required"},
		"tighter limit": {
			func(spec *schema) { edit(spec, "replicas", func(p *schema) { p.Maximum = ptr.To(10.0) }) }, "maximum"},
		"new limit": {
			func(spec *schema) { edit(spec, "repository", func(p *schema) { p.MinLength = ptr.To[int64](20) }) }, "minLength"},
		"changed default": {
			func(spec *schema) { edit(spec, "replicas", func(p *schema) { p.Default.Raw = []byte(`9`) }) }, "default"},
		"changed type": {
			func(spec *schema) { edit(spec, "pause", func(p *schema) { p.Type = "string" }) }, "type"},
		"removed value": {
			func(spec *schema) { edit(spec, "finalizers", func(p *schema) { p.Enum = p.Enum[:1] }) }, "enum"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := readCRD(t, filepath.Join(basesDir, rediscluster)), readCRD(t, filepath.Join(basesDir, rediscluster))
			root := after.Spec.Versions[0].Schema.OpenAPIV3Schema
			edit(root, "spec", c.change)
			found := dangers(t, before, after)
			if !slices.ContainsFunc(found, func(danger string) bool { return strings.Contains(danger, c.want) }) {
				t.Errorf("found %q, want one of %s", found, c.want)
			}
		})
	}
}

// TestHarmlessCRDChangesAreAllowed shows that a new version may still add something.
func TestHarmlessCRDChangesAreAllowed(t *testing.T) {
	before, after := readCRD(t, filepath.Join(basesDir, rediscluster)), readCRD(t, filepath.Join(basesDir, rediscluster))
	edit(after.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", func(spec *apiextensionsv1.JSONSchemaProps) {
		spec.Description = "said better"
		spec.Properties["added"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		edit(spec, "replicas", func(p *apiextensionsv1.JSONSchemaProps) { p.Maximum = ptr.To(2000.0) })
		edit(spec, "finalizers", func(p *apiextensionsv1.JSONSchemaProps) {
			p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"other"`)})
		})
	})
	if found := dangers(t, before, after); len(found) > 0 {
		t.Errorf("%q", found)
	}
}

// edit changes a property of a schema, which a map holds by value.
func edit(schema *apiextensionsv1.JSONSchemaProps, name string, change func(*apiextensionsv1.JSONSchemaProps)) {
	p := schema.Properties[name]
	change(&p)
	schema.Properties[name] = p
}

// dangers are what speaks against an upgrade. The rules are those of OLM v1's operator-controller (crdupgradesafety): what it
// cannot judge is refused, values may be added to an enumeration, descriptions may change. Of a maximum or minimum crdify sees
// only that it tightened.
func dangers(t *testing.T, before, after *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	rules := &config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError,
				Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}},
		},
	}
	if err := config.ValidateConfig(rules); err != nil {
		t.Fatal(err)
	}
	run, err := runner.New(rules, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	results := run.Run(before, after)
	var found []string
	for _, result := range results.CRDValidation {
		for _, message := range result.Errors {
			found = append(found, result.Name+": "+message)
		}
	}
	for _, versions := range [][]version.VersionedPropertyComparisonResult{results.SameVersionValidation, results.ServedVersionValidation} {
		for _, v := range versions {
			for _, field := range v.PropertyComparisons {
				for _, result := range field.ComparisonResults {
					for _, message := range result.Errors {
						found = append(found, fmt.Sprintf("%s, %s: %s: %s", v.Version, field.Property, result.Name, message))
					}
				}
			}
		}
	}
	return found
}

// newestRelease is the last of the versions whose CRDs are kept.
func newestRelease(t *testing.T) string {
	t.Helper()
	folders, err := os.ReadDir(releasedDir)
	if err != nil {
		t.Fatal(err)
	}
	var versions []semver.Version
	for _, folder := range folders {
		v, err := semver.Parse(folder.Name())
		if err != nil {
			t.Fatalf("%s/%s is not a version: %v", releasedDir, folder.Name(), err)
		}
		versions = append(versions, v)
	}
	semver.Sort(versions)
	return versions[len(versions)-1].String()
}

func readCRD(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &crd
}
