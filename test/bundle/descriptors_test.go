// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	chartv1 "middleware.hc.cn/operator/api/chart/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/config/crd"
)

// The kinds' Go types, which tell our own structs from those of Kubernetes: a schema cannot.
var kinds = map[string]reflect.Type{
	"RedisCluster":        reflect.TypeFor[redisv1alpha1.RedisCluster](),
	"RedisBackupSchedule": reflect.TypeFor[redisv1alpha1.RedisBackupSchedule](),
	"RedisBackup":         reflect.TypeFor[redisv1alpha1.RedisBackup](),
	"App":                 reflect.TypeFor[appv1alpha1.App](),
	"Application":         reflect.TypeFor[applicationv1.Application](),
	"CronTab":             reflect.TypeFor[crontabv1beta1.CronTab](),
	"FooBar":              reflect.TypeFor[foobarv1.FooBar](),
}

// Prefixes of the x-descriptors that consoles understand.
const (
	urnUI         = "urn:alm:descriptor:com.tectonic.ui:"
	urnKubernetes = "urn:alm:descriptor:io.kubernetes:"
	urnSelect     = urnUI + "select:"
	urnDependency = urnUI + "fieldDependency:"
	urnSelector   = urnUI + "selector:"
	urnHidden     = urnUI + "hidden"
)

var (
	specURNs = []string{urnUI + "podCount", urnUI + "resourceRequirements", urnUI + "booleanSwitch", urnUI + "text", urnUI + "number",
		urnUI + "updateStrategy", urnUI + "advanced", urnHidden}
	statusURNs = []string{urnUI + "podCount", "urn:alm:descriptor:text", "urn:alm:descriptor:org.w3:link",
		"urn:alm:descriptor:io.kubernetes.conditions", "urn:alm:descriptor:io.kubernetes.phase",
		"urn:alm:descriptor:io.kubernetes.phase:reason", urnHidden}
	// A URN of a Kubernetes object: its kind, after group and version unless the console knows the kind.
	objectURN = regexp.MustCompile(`^` + urnKubernetes + `([a-z0-9.]+:v[0-9a-z]+:)?[A-Z][A-Za-z]+$`)
	// Title case, small words excepted.
	title = regexp.MustCompile(`^[A-Z][A-Za-z]*( ([A-Z][A-Za-z]*|per|in|of|on|at|for))*$`)
)

// ownedKind is what the CSV says of a kind, and descriptor what it says of one field.
type (
	ownedKind struct {
		Kind, DisplayName, Description     string
		Resources                          []struct{ Kind, Version string }
		SpecDescriptors, StatusDescriptors []descriptor
	}
	descriptor struct {
		Path, DisplayName, Description string
		XDescriptors                   []string `json:"x-descriptors"`
	}
)

// section is the spec or the status of a kind: its descriptors and its schema by path, such as pod[0].labels.
type section struct {
	kind, name  string
	descriptors []descriptor
	fields      map[string]apiextensionsv1.JSONSchemaProps
}

// TestEveryFieldHasADescriptor: people who create and look at objects in a console see each field of ours by name and with a
// text, fields inside types of Kubernetes excepted; and no descriptor is left of a field that is gone.
func TestEveryFieldHasADescriptor(t *testing.T) {
	for _, s := range sections(t) {
		t.Run(s.kind+" "+s.name, func(t *testing.T) {
			var got []string
			for _, d := range s.descriptors {
				got = append(got, d.Path)
			}
			slices.Sort(got)
			if diff := gocmp.Diff(slices.Sorted(maps.Keys(s.fields)), got); diff != "" {
				t.Errorf("fields (-) and descriptors (+) differ:\n%s", diff)
			}
			t.Logf("%d descriptors", len(got))
		})
	}
}

// TestDescriptorsSayWhatTheSchemaSays: texts are those of kubectl explain, and a form offers what the schema allows.
func TestDescriptorsSayWhatTheSchemaSays(t *testing.T) {
	for _, s := range sections(t) {
		t.Run(s.kind+" "+s.name, func(t *testing.T) {
			names := map[string]string{}
			for _, d := range s.descriptors {
				field, known := s.fields[d.Path]
				if !known {
					continue // the test above says so
				}
				if got, want := words(d.Description), words(field.Description); got != want || want == "" {
					t.Errorf("%s is described as %q, in the schema as %q", d.Path, got, want)
				}
				if !title.MatchString(d.DisplayName) || len(d.DisplayName) > 30 {
					t.Errorf("%s: display name %q is not a short title", d.Path, d.DisplayName)
				}
				name := d.Path[:strings.LastIndex(d.Path, ".")+1] + d.DisplayName
				if other, taken := names[name]; taken {
					t.Errorf("%s and %s stand side by side and are both called %q", d.Path, other, d.DisplayName)
				}
				names[name] = d.Path
				checkWidgets(t, s, d, field)
			}
		})
	}
}

// checkWidgets compares how a console shows a field with the field's type.
func checkWidgets(t *testing.T, s section, d descriptor, field apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	var options []string
	for _, urn := range d.XDescriptors {
		option, isOption := strings.CutPrefix(urn, urnSelect)
		dependency, isDependency := strings.CutPrefix(urn, urnDependency)
		switch {
		case objectURN.MatchString(urn):
		case s.name == "status":
			if !slices.Contains(statusURNs, urn) {
				t.Errorf("%s: no console shows a status as %s", d.Path, urn)
			}
		case isOption:
			options = append(options, option)
		case isDependency:
			control, _, _ := strings.Cut(dependency, ":")
			if _, known := s.fields[control]; !known || parent(control) != parent(d.Path) {
				t.Errorf("%s depends on %s, which is not a field beside it", d.Path, control)
			}
		case strings.HasPrefix(urn, urnSelector):
		case !slices.Contains(specURNs, urn):
			t.Errorf("%s: no console has a widget %s", d.Path, urn)
		}
	}
	if s.name == "status" {
		return
	}
	if diff := gocmp.Diff(enum(t, field), options); diff != "" {
		t.Errorf("%s: allowed values (-) and options of the form (+) differ:\n%s", d.Path, diff)
	}
	widgets := map[string][]string{"boolean": {urnUI + "booleanSwitch"}, "integer": {urnUI + "number", urnUI + "podCount"}}[field.Type]
	if field.Type == "string" && len(options) == 0 {
		widgets = []string{urnUI + "text", urnKubernetes, urnHidden}
	}
	fits := func(urn string) bool {
		return slices.ContainsFunc(widgets, func(w string) bool { return strings.HasPrefix(urn, w) })
	}
	if len(widgets) > 0 && !slices.ContainsFunc(d.XDescriptors, fits) {
		t.Errorf("%s is of type %s and shown by %v, want one of %v", d.Path, field.Type, d.XDescriptors, widgets)
	}
}

// TestKindsAreDescribed: name, text, and the objects that belong to one.
func TestKindsAreDescribed(t *testing.T) {
	for kind, owned := range ownedKinds(t) {
		if owned.DisplayName == "" || owned.Description == "" || len(owned.Resources) == 0 {
			t.Errorf("%s lacks a display name, a description or its resources: %q, %q, %v", kind, owned.DisplayName, owned.Description,
				owned.Resources)
		}
	}
}

// sections are the ten of them, in a fixed order.
func sections(t *testing.T) []section {
	t.Helper()
	owned := ownedKinds(t)
	var all []section
	for kind, schema := range schemas(t) {
		description, listed := owned[kind]
		if !listed {
			t.Fatalf("the CSV does not own %s", kind)
		}
		for _, s := range []section{
			{kind: kind, name: "spec", descriptors: description.SpecDescriptors},
			{kind: kind, name: "status", descriptors: description.StatusDescriptors},
		} {
			s.fields = map[string]apiextensionsv1.JSONSchemaProps{}
			collect(t, s.fields, "", schema.Properties[s.name], typeOf(t, kinds[kind], s.name))
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b section) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return all
}

// ofPods are our types that are Kubernetes' own with fewer fields; markers do not reach them.
var ofPods = []reflect.Type{reflect.TypeFor[chartv1.Volume](), reflect.TypeFor[chartv1.VolumeMount]()}

// collect adds the fields of a struct of ours, and of such structs within, to fields.
func collect(t *testing.T, fields map[string]apiextensionsv1.JSONSchemaProps, path string, schema apiextensionsv1.JSONSchemaProps,
	of reflect.Type) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() == reflect.Slice && schema.Items != nil {
		path, schema, of = path+"[0]", *schema.Items.Schema, of.Elem()
	}
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), "middleware.hc.cn/operator/") || slices.Contains(ofPods, of) {
		return
	}
	for name, field := range schema.Properties {
		child := strings.TrimPrefix(path+"."+name, ".")
		fields[child] = field
		collect(t, fields, child, field, typeOf(t, of, name))
	}
}

// typeOf is the type of the field of a struct that JSON calls name.
func typeOf(t *testing.T, of reflect.Type, name string) reflect.Type {
	t.Helper()
	for _, field := range reflect.VisibleFields(of) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			return field.Type
		}
	}
	t.Fatalf("%s has no field %s, but its schema has", of, name)
	return nil
}

// ownedKinds are the descriptions of the kinds in the CSV.
func ownedKinds(t *testing.T) map[string]ownedKind {
	t.Helper()
	owned := map[string]ownedKind{}
	for _, description := range readCSV(t).Spec.CustomResourceDefinitions.Owned {
		owned[description.Kind] = description
	}
	return owned
}

// schemas are those of the CRDs, by kind; every kind has one version.
func schemas(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := fs.Glob(crd.Bases(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		text, err := fs.ReadFile(crd.Bases(), file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		byKind[definition.Spec.Names.Kind] = *definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	if len(byKind) != len(kinds) {
		t.Fatalf("there are CRDs of %v, but Go types of %v", slices.Sorted(maps.Keys(byKind)), slices.Sorted(maps.Keys(kinds)))
	}
	return byKind
}

// enum is the values that the schema allows, in its order.
func enum(t *testing.T, field apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	var values []string
	for _, allowed := range field.Enum {
		var value string
		if err := json.Unmarshal(allowed.Raw, &value); err != nil {
			t.Fatalf("enum value %s: %v", allowed.Raw, err)
		}
		values = append(values, value)
	}
	return values
}

// words is the text without its line breaks.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// parent is the path of the struct that holds the field.
func parent(path string) string {
	end := max(strings.LastIndex(path, "."), 0)
	return path[:end]
}
