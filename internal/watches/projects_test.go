// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

// Watches files in the manner of projects that were made with operator-sdk.
const (
	scaffolded = `# Use the 'create api' subcommand to add watches to this file.
- group: cache.example.com
  version: v1alpha1
  kind: Nginx
  chart: helm-charts/nginx
#+kubebuilder:scaffold:watch
`
	withProxies = `---
- version: v1alpha1
  group: charts.example.com
  kind: Tomcat
  chart: /opt/helm/helm-charts/tomcat
  overrideValues:
    image.repository: "${RELATED_IMAGE_TOMCAT}"
    proxy.http: $HTTP_PROXY
    tag: '{{ ("$RELATED_IMAGE_TOMCAT" | split ":")._1 }}'
    replicas: 3
    upper: '{{ upper "abc" }}'
- version: v1alpha1
  group: charts.example.com
  kind: Search
  chart: packed/search-1.0.0.tgz
  watchDependentResources: false
  reconcilePeriod: 0s
  maxConcurrentReconciles: 10
  dryRunOption: server
  selector:
    matchLabels: &tier
      tier: gold
    matchExpressions:
    - {key: environment, operator: In, values: [test, stage]}
    - {key: frozen, operator: DoesNotExist}
  allow:
    clusterScoped: true
    structuredValues: true
    namespaces: ["*"]
    kinds: [Widget]
- version: v1
  kind: CoreThing
  chart: helm-charts/nginx
  selector: {matchLabels: *tier}
  reconcilePeriod:
`
)

func TestProjectsOfHelmOperator(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"opt/helm/helm-charts/nginx/Chart.yaml": "name: nginx\n", "opt/helm/helm-charts/tomcat/Chart.yaml": "name: tomcat\n",
		"opt/helm/packed/search-1.0.0.tgz": "packed", "opt/helm/watches.yaml": scaffolded,
		"opt/helm/config/watches.yaml": strings.ReplaceAll(withProxies, "/opt/helm", root+"/opt/helm"),
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "opt/helm")) // as WORKDIR of their images
	env := func(name string) (string, bool) {
		if name == "RELATED_IMAGE_TOMCAT" {
			return "registry.example.com/tomcat:9.1", true
		}
		return "", false
	}
	list, err := Load("watches.yaml", env)
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Chart != filepath.Join(root, "opt/helm/helm-charts/nginx") || list[0].Kind != "Nginx" {
		t.Errorf("got %+v", list[0])
	}
	list, err = Load("config/watches.yaml", env)
	if err != nil {
		t.Fatal(err)
	}
	var charts []string
	for _, w := range list {
		charts = append(charts, strings.TrimPrefix(w.Chart, root))
	}
	if diff := cmp.Diff([]string{"/opt/helm/helm-charts/tomcat", "/opt/helm/packed/search-1.0.0.tgz", "/opt/helm/helm-charts/nginx"},
		charts); diff != "" {
		t.Errorf("charts: %s", diff)
	}
	overrides := map[string]string{"image.repository": "registry.example.com/tomcat:9.1", "proxy.http": "", "tag": "9.1", "replicas": "3",
		"upper": "ABC"}
	if diff := cmp.Diff(overrides, list[0].OverrideValues); diff != "" {
		t.Errorf("overrideValues: %s", diff)
	}
	if diff := cmp.Diff(Allow{ClusterScoped: true, StructuredValues: true, Namespaces: []string{"*"}, Kinds: []string{"Widget"}},
		list[1].Allow); diff != "" {
		t.Errorf("allow: %s", diff)
	}
	chosen := labels.Set{"tier": "gold", "environment": "test"}
	if list[1].ReconcilePeriod != 0 || list[1].MaxConcurrentReconciles != 10 || list[1].WatchDependentResources ||
		list[1].DryRunOption != "server" ||
		!list[1].Selector.Matches(chosen) || list[1].Selector.Matches(labels.Set{"tier": "gold"}) {
		t.Errorf("got %+v", list[1])
	}
	if list[2].Group != "" || list[2].ReconcilePeriod != time.Duration(0) || !list[2].Selector.Matches(labels.Set{"tier": "gold"}) {
		t.Errorf("got %+v", list[2])
	}
	if _, err := Load("nope.yaml", env); err == nil ||
		err.Error() != "nope.yaml: cannot be read: no such file or directory; check the path given with --watches-file" {
		t.Errorf("a file that is not there: %v", err)
	}
}
