// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/config/crd"
)

// With --install-crds the operator may write the CRDs that it has, and no others: without the right on one, it does not start.
func TestCRDsThatTheOperatorInstalls(t *testing.T) {
	var want []string
	files, err := fs.Glob(crd.Bases(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(crd.Bases(), file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		want = append(want, definition.Name)
	}
	text, err := os.ReadFile("../components/install-crds/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(bytes.Split(text, []byte("\n---\n"))[0], &role); err != nil {
		t.Fatal(err)
	}
	got := role.Rules[0].ResourceNames
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CRDs (-) and rights (+) differ:\n%s", diff)
	}
}
