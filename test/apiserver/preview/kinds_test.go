// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"middleware.hc.cn/operator/internal/preview"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// TestValidateKnowsTheKindsOfAnAPIServer validates a chart for every kind that this API server lets anyone make, with one object of
// it: each must be known, with its scope and its resource.
func TestValidateKnowsTheKindsOfAnAPIServer(t *testing.T) {
	api, err := discovery.NewDiscoveryClientForConfig(admin)
	shared.Check(t, err)
	lists, err := api.ServerPreferredResources()
	shared.Check(t, err)
	files := map[string]string{}
	clusterScoped, resources := map[string]bool{}, map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(list.GroupVersion, siteKind.Group) || !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "patch") ||
				!slices.Contains(r.Verbs, "delete") {
				continue
			}
			kind := fmt.Sprintf("Watched%d%s", len(clusterScoped), r.Kind)
			files["watches.yaml"] += fmt.Sprintf("- {group: example.com, version: v1, kind: %s, chart: %s}\n", kind, kind)
			files[kind+"/Chart.yaml"] = siteFiles["chart/Chart.yaml"]
			files[kind+"/templates/object.yaml"] = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a}\n", list.GroupVersion, r.Kind)
			clusterScoped[kind], resources[r.Name] = !r.Namespaced, true
		}
	}
	if len(resources) < 40 {
		t.Fatalf("the API server has only %d kinds", len(resources))
	}
	report := preview.Validate(writeProject(t, files), nil)
	refused := map[string]bool{}
	for _, f := range report.Findings {
		switch {
		case strings.Contains(f.Message, "not known") && !strings.Contains(f.Message, "the CRD of Watched"):
			t.Error(f.Error())
		case f.Severity == preview.SeverityError:
			refused[f.Kind] = strings.Contains(f.Remedy, "clusterScoped: true")
		}
	}
	for kind, cluster := range clusterScoped {
		if refused[kind] != cluster {
			t.Errorf("%s: cluster-scoped for the API server: %v, for validate: %v", kind, cluster, refused[kind])
		}
	}
	listed := map[string]bool{}
	for _, rule := range report.Rules() {
		for _, resource := range rule.Resources {
			listed[resource] = true
		}
	}
	for resource := range resources {
		if !listed[resource] {
			t.Errorf("%s is not among the rules", resource)
		}
	}
}
