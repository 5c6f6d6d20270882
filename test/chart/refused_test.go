// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
)

func TestValuesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ values, want string }{
		"an unknown value":          {"replicaCount: 2", "additional properties 'replicaCount' not allowed"},
		"an unknown value below":    {"image: {name: a}", "additional properties 'name' not allowed"},
		"an image that is none":     {"image: {repository: a b}", "/image/repository"},
		"an image with a tag":       {"image: {repository: 'reg.example.com:5000/op:1.0'}", "/image/repository"},
		"an image with a digest":    {"image: {repository: 'op@sha256:" + digest + "'}", "/image/repository"},
		"a digest that is none":     {"image: {digest: latest}", "/image/digest"},
		"replicas in words":         {"replicas: two", "/replicas"},
		"no memory limit":           {"resources: {limits: {memory: null}}", "missing property 'memory'"},
		"a quantity that is none":   {"resources: {limits: {memory: 1 GB}}", "/resources/limits/memory"},
		"a namespace that is none":  {"watchNamespaces: [Shop]", "/watchNamespaces/0"},
		"a namespace twice":         {"{watchNamespaces: [a, a], secretNamespaces: []}", "/watchNamespaces"},
		"an unknown level":          {"log: {level: trace}", "/log/level"},
		"an image that changes":     {"relatedImages: {redis: docker.io/library/redis}", "/relatedImages/redis"},
		"no port of the API server": {"networkPolicy: {apiServerPorts: []}", "/networkPolicy/apiServerPorts"},
		"a flag without dashes":     {"extraArgs: [v=4]", "/extraArgs/0"},
		"metrics for everybody": {"extraArgs: [--metrics-secure=false]",
			"extraArgs[0]: --metrics-secure is the chart's: metrics are served over TLS"},
		"another cluster": {"extraArgs: [--kubeconfig=/a]",
			"extraArgs[0]: --kubeconfig is the chart's: the operator works in the cluster that it is installed in"},
		"another API server":      {"extraArgs: ['--master=https://a']", "extraArgs[0]: --master is the chart's"},
		"some of the kinds":       {"extraArgs: ['--controllers=*,-foobar']", "extraArgs[0]: --controllers is the chart's"},
		"a cluster as a variable": {"extraEnv: [{name: KUBECONFIG, value: /a}]", "extraEnv[0]: KUBECONFIG is the chart's"},
		"Secrets where it is not": {"watchNamespaces: [shop]",
			"secretNamespaces: the operator does not work in default: name it in watchNamespaces too, or take it out here (secretNamespaces: [])"},
		"operators beside one for everything": {"operators: [{name: gold, selector: tier=gold, replicas: 1}]",
			"selector: the operators work on what they select, and this one on everything"},
		"an operator for everything": {"{selector: a=b, operators: [{name: gold, selector: '', replicas: 1}]}", "/operators/0/selector"},
		"a selector twice": {"{selector: a=b, operators: [{name: gold, selector: a=b, replicas: 1}]}",
			"operators[0].selector: \"a=b\" is another one's"},
		"a name twice": {"{selector: a=b, operators: [{name: x, selector: a=c, replicas: 1}, {name: x, selector: a=d, replicas: 1}]}",
			"operators[1].name: \"x\" is another one's"},
		"a selector of several lines": {"selector: \"a=b\\nc\"", "/selector"},
		"one shard":                   {"shards: 1", "/shards"},
		"shards as a flag":            {"extraArgs: [--shards=4]", "extraArgs[0]: --shards is the chart's: set shards"},
		"a selector as a flag":        {"extraArgs: [--selector=a=b]", "extraArgs[0]: --selector is the chart's: set selector"},
		"a monitor without metrics": {"metrics: {enabled: false, serviceMonitor: {enabled: true}}",
			"metrics.serviceMonitor.enabled: there are no metrics to look at: set metrics.enabled"},
		"a rule without metrics": {"metrics: {enabled: false, prometheusRule: {enabled: true}}",
			"metrics.prometheusRule.enabled: there are no metrics to look at"},
		"a flag that is a value": {"extraArgs: [--v=4, --watch-namespaces=shop]",
			"extraArgs[1]: --watch-namespaces is the chart's: set watchNamespaces"},
		"the same, as helm-operator": {"extraArgs: ['--enable_leader_election=false']",
			"extraArgs[0]: --enable-leader-election is the chart's: more than one pod would act"},
		"a flag alone": {"extraArgs: [--install-crds]",
			"--install-crds is the chart's: the chart installs them (crds.install)"},
		"a variable of the Deployment": {"extraEnv: [{name: MEMORY_LIMIT, value: '1'}]", "extraEnv[0]: MEMORY_LIMIT is the chart's"},
		"an image as a variable": {"extraEnv: [{name: RELATED_IMAGE_REDIS, value: 'a:1'}]",
			"extraEnv[0]: RELATED_IMAGE_REDIS is the chart's: see relatedImages"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, tt.values); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// null deletes a default of a chart. Each default is needed, but for quantities other than the memory limit: null is how Helm leaves
// one out.
func TestNoDefaultCanBeDeleted(t *testing.T) {
	var values map[string]any
	read(t, "values.yaml", &values)
	optional := []string{"resources.requests.cpu", "resources.requests.memory", "resources.limits.cpu"}
	for _, path := range keys("", values) {
		t.Run(path, func(t *testing.T) {
			names := strings.Split(path, ".")
			text := "{" + strings.Join(names, ": {") + ": null" + strings.Repeat("}", len(names))
			_, err := render(t, text)
			if slices.Contains(optional, path) {
				if err != nil {
					t.Errorf("%s: %v", text, err)
				}
				return
			}
			want := "missing property '" + names[len(names)-1] + "'"
			if err == nil || !strings.Contains(err.Error(), "don't meet the specifications of the schema") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q of the schema", text, err, want)
			}
		})
	}
}

// keys are the paths of all values, sections among them.
func keys(prefix string, values map[string]any) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, prefix+name)
		if below, is := values[name].(map[string]any); is {
			all = append(all, keys(prefix+name+".", below)...)
		}
	}
	return all
}

// A rule without ports would allow every one, so the templates refuse it too.
func TestNoPortOfTheAPIServerUnchecked(t *testing.T) {
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for name, ports := range map[string]any{"none": []any{}, "null": nil} {
		given := map[string]any{"networkPolicy": map[string]any{"apiServerPorts": ports}}
		values, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, given, chartutil.ReleaseOptions{}, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		const want = "networkPolicy.apiServerPorts: name the ports"
		if _, err := engine.Render(loaded, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// Labels of the chart's own would be there twice.
func TestOwnLabelsAreRefused(t *testing.T) {
	for kind, section := range map[string]string{"ServiceMonitor": "serviceMonitor", "PrometheusRule": "prometheusRule"} {
		o := rendered(t, "metrics: {"+section+": {enabled: true}}")[kind+" middleware-operator system"]
		if len(o.GetLabels()) == 0 {
			t.Fatalf("the %s has no labels", kind)
		}
		for label := range o.GetLabels() {
			_, err := render(t, "metrics: {"+section+": {enabled: true, labels: {"+label+": a}}}")
			if want := "metrics." + section + ".labels: " + label + " is the chart's"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", label, err, want)
			}
		}
	}
}

// A chart that has this one as a part gives it `global`.
func TestGlobalValuesAreTaken(t *testing.T) {
	rendered(t, "global: {imageRegistry: registry.example.com}")
}

// The flags that the chart keeps for itself are flags of the operator.
func TestOwnFlagsAreFlags(t *testing.T) {
	text, err := os.ReadFile(folder + "/templates/_helpers.tpl")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?s)"middleware-operator.ownFlags" -}}\n(.*?)\n{{- end }}`).FindSubmatch(text)
	var own map[string]string
	if match == nil || yaml.UnmarshalStrict(match[1], &own) != nil || len(own) == 0 {
		t.Fatalf("the helpers list no flags: %s", match)
	}
	options := manager.DefaultOptions()
	for name := range own {
		found := false
		for _, group := range options.Flags(func(string) (string, bool) { return "", false }) {
			found = found || group.Lookup(name) != nil
		}
		if !found {
			t.Errorf("the operator has no flag --%s", name)
		}
	}
}
