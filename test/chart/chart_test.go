// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the operator's own Helm chart, deploy/middleware-operator, by Helm's library: what its values do, and which it
// refuses. That it is the installation of config/ is shown by test/apiserver/operatorchart.
package chart

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
)

const folder = "../../deploy/middleware-operator"

var load = sync.OnceValues(func() (*helmchart.Chart, error) { return loader.LoadDir(folder) })

// render renders the chart with values, given as YAML, as the release op of the namespace system.
func render(t *testing.T, text string) (map[string]unstructured.Unstructured, error) {
	t.Helper()
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	release := chartutil.ReleaseOptions{Name: "op", Namespace: "system", IsInstall: true}
	values, err := chartutil.ToRenderValues(loaded, given, release, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		return nil, err
	}
	objects := map[string]unstructured.Unstructured{}
	for name, file := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq("\n"+file, "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, document)
			}
			if len(o.Object) == 0 {
				continue
			}
			at := strings.TrimRight(o.GetKind()+" "+o.GetName()+" "+o.GetNamespace(), " ")
			if _, twice := objects[at]; twice {
				t.Errorf("%s is rendered twice", at)
			}
			objects[at] = o
		}
	}
	return objects, nil
}

func rendered(t *testing.T, text string) map[string]unstructured.Unstructured {
	t.Helper()
	objects, err := render(t, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return objects
}

// arguments are those of the operator's container.
func arguments(t *testing.T, objects map[string]unstructured.Unstructured) []string {
	t.Helper()
	deployment := objects["Deployment middleware-operator system"].Object
	containers, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("the Deployment has the containers %v (%v)", containers, err)
	}
	list, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// examples are for each value what changes something.
var examples = map[string]string{
	"image.repository":               "image: {repository: mirror.example.com:5000/operator}",
	"image.tag":                      "image: {tag: 1.2.3}",
	"image.digest":                   "image: {digest: 'sha256:" + digest + "'}",
	"image.pullSecrets":              "image: {pullSecrets: [registry]}",
	"replicas":                       "replicas: 2",
	"resources":                      "resources: {limits: {memory: 1Gi, cpu: 1.5}, requests: {cpu: 100m}}",
	"watchNamespaces":                "watchNamespaces: [default, shop]",
	"shards":                         "{shards: 4, replicas: 2}",
	"selector":                       "selector: tier=gold",
	"operators":                      "{selector: tier!=gold, operators: [{name: gold, selector: tier=gold, replicas: 2}]}",
	"secretNamespaces":               "secretNamespaces: [shop]",
	"log.level":                      "log: {level: debug}",
	"log.format":                     "log: {format: console}",
	"relatedImages.redis":            "relatedImages: {redis: 'mirror.example.com/redis:8.0.6@sha256:" + digest + "'}",
	"relatedImages.foobarShell":      "relatedImages: {foobarShell: 'busybox@sha256:" + digest + "'}",
	"allowHostPath":                  "allowHostPath: true",
	"clusterIssuers":                 "clusterIssuers: [company]",
	"crds.install":                   "crds: {install: false}",
	"webhooks.certManager":           "webhooks: {certManager: true}",
	"metrics.enabled":                "metrics: {enabled: false}",
	"metrics.serviceMonitor.enabled": "metrics: {serviceMonitor: {enabled: true}}",
	"metrics.serviceMonitor.labels":  "metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}}}",
	"metrics.prometheusRule.enabled": "metrics: {prometheusRule: {enabled: true}}",
	"metrics.prometheusRule.labels":  "metrics: {prometheusRule: {enabled: true, labels: {release: prometheus}}}",
	"networkPolicy.enabled":          "networkPolicy: {enabled: false}",
	"networkPolicy.apiServerPorts":   "networkPolicy: {apiServerPorts: [12345]}",
	"nodeSelector":                   "nodeSelector: {kubernetes.io/arch: arm64}",
	"tolerations":                    "tolerations: [{key: a, operator: Exists, effect: NoSchedule}]",
	"affinity":                       "affinity: {nodeAffinity: {}}",
	"priorityClassName":              "priorityClassName: system-cluster-critical",
	"extraArgs":                      "extraArgs: [--redis-poll-interval=20s, '--v=4']",
	"extraEnv":                       "extraEnv: [{name: HTTPS_PROXY, value: 'http://proxy:3128'}]",
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// Every value of values.yaml has an effect, the schema knows it, and the operator takes the flags that follow from it.
func TestEveryValueHasAnEffect(t *testing.T) {
	byDefault := rendered(t, "{}")
	withObject := rendered(t, "metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}}")
	var values, properties map[string]any
	read(t, "values.yaml", &values)
	read(t, "values.schema.json", &properties)
	names := leaves("", values)
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(examples))); diff != "" {
		t.Errorf("values.yaml (-) and the examples of this test (+) differ:\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{"global"}, names...), schemaLeaves(t, properties, values), sorted); diff != "" {
		t.Errorf("values.yaml (-) and values.schema.json (+) differ:\n%s", diff)
	}
	for name, text := range examples {
		before := byDefault
		if strings.HasSuffix(name, ".labels") {
			before = withObject
		}
		after := rendered(t, text)
		if cmp.Equal(before, after) {
			t.Errorf("%s changes nothing with %s", name, text)
		}
		options := manager.DefaultOptions()
		for _, argument := range arguments(t, after) {
			if err := parse(&options, argument); err != nil {
				t.Errorf("%s: the operator says of %s: %v", name, argument, err)
			}
		}
		if err := options.Validate(); err != nil {
			t.Errorf("%s: the operator says: %v", name, err)
		}
	}
}

// Operators beside the first one have pods, a selector, and the right to a Lease of their own; all of them answer webhooks.
func TestOperatorsBesideEachOther(t *testing.T) {
	objects := rendered(t, examples["operators"])
	role := objects["Role middleware-operator system"].Object
	rules, _, _ := unstructured.NestedSlice(role, "rules")
	leases, _, _ := unstructured.NestedStringSlice(rules[1].(map[string]any), "resourceNames")
	for i, want := range []struct{ deployment, selector string }{
		{"middleware-operator", "tier!=gold"}, {"middleware-operator-gold", "tier=gold"},
	} {
		o, there := objects["Deployment "+want.deployment+" system"]
		if !there {
			t.Fatalf("there is no Deployment %s", want.deployment)
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if args := fmt.Sprint(containers[0].(map[string]any)["args"]); !strings.Contains(args, "--selector="+want.selector) {
			t.Errorf("%s has the arguments %s", want.deployment, args)
		}
		// internal/manager names the Lease in this way.
		lease := fmt.Sprintf("middleware-operator-%x", sha256.Sum256([]byte(want.selector)))[:len("middleware-operator-")+8]
		if i >= len(leases) || leases[i] != lease {
			t.Errorf("the Role allows the Leases %v, not %s", leases, lease)
		}
		selects, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
		labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		if !cmp.Equal(selects, labels) || labels["app.kubernetes.io/name"] != "middleware-operator" ||
			(labels["app.kubernetes.io/component"] == "gold") != (i == 1) {
			t.Errorf("%s selects %v of pods with %v", want.deployment, selects, labels)
		}
	}
}

// parse has the operator read one flag.
func parse(options *manager.Options, argument string) error {
	name, value, given := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
	for _, group := range options.Flags(func(string) (string, bool) { return "", false }) {
		if flag := group.Lookup(name); flag != nil {
			if !given {
				value = flag.NoOptDefVal
			}
			return group.Set(name, value)
		}
	}
	return fmt.Errorf("no flag %s", name)
}

// With namespaces to watch, what the operator may do to objects of namespaces it may do there, and nowhere else.
func TestWatchedNamespacesAreTheLimit(t *testing.T) {
	objects := rendered(t, "{watchNamespaces: [shop, bank], secretNamespaces: [shop], allowHostPath: true}")
	var bound []string
	for name, o := range objects {
		if strings.HasSuffix(o.GetKind(), "Binding") {
			role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
			bound = append(bound, fmt.Sprintf("%s: %s", name, role))
		}
	}
	want := []string{
		"ClusterRoleBinding middleware-operator-certificate: middleware-operator-certificate", // its webhook configurations, by name
		"ClusterRoleBinding middleware-operator-cluster: middleware-operator-cluster",         // token and access reviews
		"RoleBinding middleware-operator shop: middleware-operator-namespace",
		"RoleBinding middleware-operator-certificate system: middleware-operator-certificate",
		"RoleBinding middleware-operator-host-path bank: middleware-operator-host-path",
		"RoleBinding middleware-operator-host-path shop: middleware-operator-host-path",
		"RoleBinding middleware-operator-manager bank: middleware-operator-manager",
		"RoleBinding middleware-operator-manager shop: middleware-operator-manager",
		"RoleBinding middleware-operator-own system: middleware-operator",
	}
	if diff := cmp.Diff(want, bound, sorted); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
	if list := arguments(t, objects); !slices.Contains(list, "--watch-namespaces=shop,bank") {
		t.Errorf("it is told %v", list)
	}
}

var sorted = cmp.Transformer("sorted", func(list []string) map[string]int {
	all := map[string]int{}
	for _, item := range list {
		all[item]++
	}
	return all
})

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(folder + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), into); err != nil {
		t.Fatal(err)
	}
}

// leaves are the paths of values, where lists, empty objects and resources are one value.
func leaves(prefix string, values map[string]any) []string {
	var all []string
	for name, value := range values {
		if below, is := value.(map[string]any); is && len(below) > 0 && name != "resources" {
			all = append(all, leaves(prefix+name+".", below)...)
			continue
		}
		all = append(all, prefix+name)
	}
	slices.Sort(all)
	return all
}

// schemaLeaves are the paths of a schema, as deep as values go. Each object on the way must refuse what it does not know.
func schemaLeaves(t *testing.T, root map[string]any, values map[string]any) []string {
	t.Helper()
	var walk func(prefix string, schema map[string]any, values map[string]any) []string
	walk = func(prefix string, schema, values map[string]any) (all []string) {
		if reference, is := schema["$ref"].(string); is {
			schema = root["definitions"].(map[string]any)[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
		}
		if schema["additionalProperties"] != false {
			t.Errorf("the schema takes unknown keys of %q", prefix)
		}
		for name, property := range schema["properties"].(map[string]any) {
			if below, is := values[name].(map[string]any); is && len(below) > 0 && name != "resources" {
				all = append(all, walk(prefix+name+".", property.(map[string]any), below)...)
				continue
			}
			all = append(all, prefix+name)
		}
		return all
	}
	return walk("", root, values)
}
