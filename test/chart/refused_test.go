// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
)

func TestValuesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ values, want string }{
		"an unknown value":          {"replicaCount: 2", "additional properties 'replicaCount' not allowed"},
		"an unknown value below":    {"image: {name: a}", "additional properties 'name' not allowed"},
		"an image with a tag":       {"image: {repository: a b}", "/image/repository"},
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
		"Secrets where it is not": {"watchNamespaces: [shop]",
			"secretNamespaces: the operator does not work in default: name it in watchNamespaces too, or take it out here (secretNamespaces: [])"},
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
