// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac tests the roles of this directory: what no role of the operator may ever grant.
package rbac

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of this directory.
type manifests struct {
	clusterRoles        map[string]rbacv1.ClusterRole
	roles               map[string]rbacv1.Role
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	roleBindings        []rbacv1.RoleBinding
}

func load(t *testing.T) manifests {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	m := manifests{clusterRoles: map[string]rbacv1.ClusterRole{}, roles: map[string]rbacv1.Role{}}
	for _, document := range documents(t) {
		object, _, err := decoder.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			continue // the service account
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			m.clusterRoles[o.Name] = *o
		case *rbacv1.Role:
			m.roles[o.Name] = *o
		case *rbacv1.ClusterRoleBinding:
			m.clusterRoleBindings = append(m.clusterRoleBindings, *o)
		case *rbacv1.RoleBinding:
			m.roleBindings = append(m.roleBindings, *o)
		default:
			t.Fatalf("unexpected %T", o)
		}
	}
	return m
}

// documents are those of the files that the kustomization lists, which must be all files but role.yaml: that one is empty until
// operator-sdk scaffolds a chart kind.
func documents(t *testing.T) [][]byte {
	t.Helper()
	var kustomization struct{ Resources []string }
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(kustomization.Resources), "kustomization.yaml")
	if !slices.Contains(want, "role.yaml") {
		want = append(want, "role.yaml")
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, files); diff != "" {
		t.Fatalf("kustomization.yaml and the directory differ:\n%s", diff)
	}
	var all [][]byte
	for _, file := range kustomization.Resources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Split(text, []byte("\n---\n"))...)
	}
	return all
}

// rules returns every rule, named by its role.
func (m manifests) rules() map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for name, role := range m.clusterRoles {
		rules["ClusterRole "+name] = role.Rules
	}
	for name, role := range m.roles {
		rules["Role "+name] = role.Rules
	}
	return rules
}

func TestNoRoleGrantsMoreThanItsAuthorCanSay(t *testing.T) {
	forbiddenVerbs := []string{"*", "escalate", "bind", "impersonate", "deletecollection", "approve", "sign"}
	forbiddenResources := []string{"*", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "nodes/proxy",
		"services/proxy",
		"serviceaccounts/token", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "customresourcedefinitions"}
	for role, rules := range load(t).rules() {
		for i, rule := range rules {
			at := fmt.Sprintf("%s, rule %d", role, i)
			if slices.Contains(rule.APIGroups, "*") {
				t.Errorf("%s grants every API group", at)
			}
			for _, verb := range rule.Verbs {
				if slices.Contains(forbiddenVerbs, verb) {
					t.Errorf("%s grants the verb %s", at, verb)
				}
			}
			for _, resource := range rule.Resources {
				if resource == "serviceaccounts" && !cmp.Equal(rule.Verbs, []string{"get"}) {
					t.Errorf("%s grants more than to see whether a ServiceAccount bears a label: %v", at, rule.Verbs)
				}
				if slices.Contains(forbiddenResources, resource) || strings.HasPrefix(resource, "*/") || strings.HasSuffix(resource, "/*") {
					t.Errorf("%s grants %s", at, resource)
				}
			}
			for _, url := range rule.NonResourceURLs {
				if strings.Contains(url, "*") {
					t.Errorf("%s grants the URLs %s", at, url)
				}
			}
		}
	}
}

func TestSecretsAreNeverReadableInTheWholeCluster(t *testing.T) {
	m := load(t)
	boundEverywhere := map[string]bool{}
	for _, binding := range m.clusterRoleBindings {
		boundEverywhere[binding.RoleRef.Name] = true
	}
	for name, role := range m.clusterRoles {
		aggregated :=
			slices.ContainsFunc(slices.Collect(maps.Keys(role.Labels)), func(l string) bool { return strings.Contains(l, "aggregate-to-") })
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "secrets") {
				continue
			}
			if boundEverywhere[name] || aggregated {
				t.Errorf("ClusterRole %s grants secrets and takes effect in every namespace", name)
			}
			lists := slices.Contains(rule.Verbs, "list") || slices.Contains(rule.Verbs, "watch")
			if lists && "ClusterRole "+name != namespaceRole {
				t.Errorf("ClusterRole %s lists secrets; only the one does that is bound namespace by namespace", name)
			}
		}
	}
	for name, role := range m.roles {
		for _, rule := range role.Rules {
			named := len(rule.ResourceNames) > 0
			if slices.Contains(rule.Resources, "secrets") && !named && !cmp.Equal(rule.Verbs, []string{"create"}) {
				t.Errorf("Role %s grants %v on secrets of any name", name, rule.Verbs)
			}
		}
	}
}

func TestOnlyTheOperatorIsBound(t *testing.T) {
	m := load(t)
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "middleware-operator", Namespace: "middleware-operator-system"}}
	bound := map[string][]rbacv1.Subject{}
	for _, b := range m.clusterRoleBindings {
		bound["everywhere: "+b.RoleRef.Name] = b.Subjects
	}
	for _, b := range m.roleBindings {
		bound[b.Namespace+": "+b.RoleRef.Name] = b.Subjects
	}
	expected := map[string][]rbacv1.Subject{
		"everywhere: middleware-operator-manager":                     want,
		"everywhere: middleware-operator-cluster":                     want,
		"everywhere: middleware-operator-certificate":                 want,
		"middleware-operator-system: middleware-operator":             want,
		"middleware-operator-system: middleware-operator-certificate": want,
		"default: middleware-operator-namespace":                      want,
	}
	if diff := cmp.Diff(expected, bound); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}
