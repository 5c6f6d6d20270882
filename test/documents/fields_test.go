// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ofOthers are fields that pages name of kinds of others, the one that CONTRIBUTING.md adds as an example, and those that are refused
// because there are none.
var ofOthers = []string{"spec.targetNamespaces", "spec.terminationGracePeriodSeconds",
	"spec.volumes[0].hostPath", "spec.volumes[0].csi", "spec.volumes[0].nfs"}

// Each field that a page names (`spec.…` or `status.…`, and the paths of its `-o jsonpath`) is one of its kind, or of any of the five
// on a page about several; and the table of fields of a kind's page has the fields of its spec.
func TestFieldsAreThoseOfTheSchemas(t *testing.T) {
	all := kinds(t)
	byPage := map[string]*kind{}
	for _, k := range all {
		byPage[k.page] = k
	}
	named := regexp.MustCompile("[`.]((?:spec|status)(?:\\.[a-z][A-Za-z0-9]*(?:\\[[^\\]`]*\\])?)+)")
	found := 0
	for _, page := range pagesOf(t) {
		if executed[page] != "" { // of a kind of its own
			continue
		}
		for _, l := range linesOf(t, page) {
			if l.language == "yaml" || l.language == "" && l.fenced || strings.Contains(l.text, "get httproute") {
				continue
			}
			for _, match := range named.FindAllStringSubmatch(l.text, -1) {
				found++
				path := strings.Split(regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(match[1], ""), ".")
				known := slices.Contains(ofOthers, match[1])
				for _, k := range all {
					of := byPage[page] == nil || byPage[page] == k ||
						strings.Contains(l.text, "kubectl get rec ") && k.crd.Spec.Names.Kind == "RedisCluster"
					known = known || of && k.has(path)
				}
				if !known {
					t.Errorf("%s:%d: no kind has the field %s", page, l.number, match[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d fields are named", found)
	}
	for page, k := range byPage {
		table(t, page, k)
	}
}

// has reports whether the schema of a kind has a field.
func (k *kind) has(path []string) bool { return k.at(path) != nil }

// at is the schema of a field, nil when there is none; below a field that keeps what it does not know, that of this field.
func (k *kind) at(path []string) *apiextensionsv1.JSONSchemaProps {
	at := k.crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		if at.Items != nil {
			at = at.Items.Schema
		}
		if at.XPreserveUnknownFields != nil || at.AdditionalProperties != nil {
			return at
		}
		property, is := at.Properties[name]
		if !is {
			return nil
		}
		at = &property
	}
	return at
}

// table compares the first column of the table of fields with the spec.
func table(t *testing.T, page string, k *kind) {
	t.Helper()
	heading := "| field | default | meaning |"
	if !strings.Contains(read(t, page), heading) {
		heading = "| field | meaning |"
	}
	var said []string
	for _, row := range rowsOf(t, page, heading) {
		parent := ""
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			path := match[1]
			if strings.HasPrefix(path, ".") { // `storage.size`, `.storageClassName`
				path = parent + path
			}
			parent = path[:max(0, strings.LastIndex(path, "."))]
			steps := strings.Split(regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(path, ""), ".")
			if !k.has(append([]string{"spec"}, steps...)) && !k.has(append([]string{"status"}, steps...)) {
				t.Errorf("%s: there is no field %s", page, path)
			}
			said = append(said, steps[0])
			if at := k.at(append([]string{"spec"}, steps...)); at != nil && at.Default != nil {
				// The zero value goes without saying; objects and lists are said in other words; a row may refer to a section.
				byDefault, text := strings.Trim(string(at.Default.Raw), `"`), strings.Join(row[1:], " ")
				elsewhere := byDefault == "false" || strings.ContainsAny(byDefault, "{[") || strings.Contains(text, "see above") ||
					strings.Contains(text, "](#")
				if !elsewhere && !strings.Contains(text, byDefault) {
					t.Errorf("%s: the row of %s does not say its default, %s", page, path, byDefault)
				}
			}
		}
	}
	for name := range specOf(k).Properties {
		if !slices.Contains(said, name) {
			t.Errorf("%s: the table of fields has no row for %s", page, name)
		}
	}
}

func specOf(k *kind) apiextensionsv1.JSONSchemaProps {
	return k.crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// The columns that a page says `kubectl get` shows are those of the CRD.
func TestColumnsAreThoseOfTheSchemas(t *testing.T) {
	for _, k := range kinds(t) {
		var columns []string
		for _, column := range k.crd.Spec.Versions[0].AdditionalPrinterColumns {
			if column.Priority == 0 {
				columns = append(columns, strings.ToUpper(column.Name))
			}
		}
		_, said, found := strings.Cut(read(t, k.page), "\nColumns: ")
		said, _, _ = strings.Cut(said, ".")
		names := []string{}
		for _, match := range regexp.MustCompile("`([A-Z ]+)`").FindAllStringSubmatch(said, -1) {
			names = append(names, match[1])
		}
		if !found { // rediscluster.md shows the output
			_, said, _ = strings.Cut(read(t, k.page), "\nNAME ")
			said, _, _ = strings.Cut(said, "\n")
			names = strings.Fields(said)
		}
		if diff := cmp.Diff(columns, names); diff != "" {
			t.Errorf("%s: the columns of kubectl get are others (-schema +page):\n%s", k.page, diff)
		}
	}
}

// Each annotation, label and finalizer of the operator's domains that a page names is known to the code, a chart, or config.
func TestNamedAnnotationsExist(t *testing.T) {
	var code strings.Builder
	for _, file := range slices.Concat(goFiles(t, "api"), goFiles(t, "internal"), filesOf(t, "helm-charts"), filesOf(t, "config")) {
		code.WriteString(read(t, file))
	}
	name := regexp.MustCompile(`((?:[a-z]+\.)*(?:middleware\.hc\.cn|operatorframework\.io)/)([a-z][a-z-]*[a-z])([:/.]?)`)
	found := 0
	for _, page := range pagesOf(t) {
		for _, match := range name.FindAllStringSubmatch(read(t, page), -1) {
			image := match[1] == "middleware.hc.cn/" && strings.HasPrefix(match[2], "operator")
			if image || match[3] == "/" || regexp.MustCompile(`^v\d`).MatchString(match[2]) {
				continue // or a Go package, or a version of an API
			}
			found++
			if match[2] == "rollback-force" { // helm-operator's; the page says that it does nothing here
				continue
			}
			if !strings.Contains(code.String(), match[1]+match[2]) && !strings.Contains(code.String(), `"`+match[2]) {
				t.Errorf("%s names %s%s, which nothing knows", page, match[1], match[2])
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d annotations and labels are named", found)
	}
}
