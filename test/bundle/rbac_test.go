// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const rbacDir = "../../config/rbac"

// TestOLMGrantsWhatThePlainInstallationGrants: nothing is lost on the way, and nothing gained. The right to make the webhooks'
// certificate is not among it (OLM makes that), and namespaces are enabled in the same way.
func TestOLMGrantsWhatThePlainInstallationGrants(t *testing.T) {
	strategy := readCSV(t).Spec.Install.Spec
	for name, c := range map[string]struct {
		files []string
		got   []permissions
	}{
		"permissions":        {[]string{"manager_role.yaml", "own_namespace_role.yaml"}, strategy.Permissions},
		"clusterPermissions": {[]string{"cluster_role.yaml"}, strategy.ClusterPermissions},
	} {
		t.Run(name, func(t *testing.T) {
			var want []rbacv1.PolicyRule
			for _, file := range c.files {
				want = append(want, rules(t, filepath.Join(rbacDir, file))...)
			}
			if len(c.got) != 1 || c.got[0].ServiceAccountName != "middleware-operator" {
				t.Fatalf("want the rights of one service account, got %v", c.got)
			}
			if diff := gocmp.Diff(rights(want), rights(c.got[0].Rules)); diff != "" {
				t.Errorf("config/rbac (-) and the CSV (+) differ:\n%s", diff)
			}
		})
	}
}

// TestClusterPermissionsAreOfNoNamespace: OLM grants them in every namespace, whatever the OperatorGroup selects.
func TestClusterPermissionsAreOfNoNamespace(t *testing.T) {
	want := []string{"authentication.k8s.io/tokenreviews: create", "authorization.k8s.io/subjectaccessreviews: create"}
	got := rights(readCSV(t).Spec.Install.Spec.ClusterPermissions[0].Rules)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOLMGrantsNoSecretAndNoEscalation: OLM lifts `permissions` to the whole cluster when it installs for all namespaces.
func TestOLMGrantsNoSecretAndNoEscalation(t *testing.T) {
	strategy := readCSV(t).Spec.Install.Spec
	for _, granted := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		for _, right := range rights(granted.Rules) {
			for _, part := range []string{"*", "secrets", "pods/exec", "rbac.authorization.k8s.io", "customresourcedefinitions",
				"webhookconfigurations", "serviceaccounts", ": bind", ": escalate", ": impersonate"} {
				if strings.Contains(right, part) {
					t.Errorf("the CSV grants %s", right)
				}
			}
		}
	}
}

// TestTheBundleBindsNothing: it brings the role that enables a namespace, and leaves to the cluster's administrator where.
func TestTheBundleBindsNothing(t *testing.T) {
	kinds := kindsOf(t)
	if kinds["middleware-operator-namespace_rbac.authorization.k8s.io_v1_clusterrole.yaml"] != "ClusterRole" {
		t.Error("the ClusterRole middleware-operator-namespace is missing")
	}
	for file, kind := range kinds {
		if strings.HasSuffix(kind, "Binding") {
			t.Errorf("%s binds a role", file)
		}
	}
}

// rights are all triples of resource, verb and name that rules grant, in a fixed order.
func rights(rules []rbacv1.PolicyRule) []string {
	all := map[string]bool{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all[strings.TrimSpace(fmt.Sprintf("%s/%s: %s %s", group, resource, verb, name))] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// rules are those of every role in a file.
func rules(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []rbacv1.PolicyRule
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var role struct {
			Kind  string
			Rules []rbacv1.PolicyRule
		}
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, role.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", file)
	}
	return all
}
