// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

func clusterOf(t *testing.T, spec string) *v1alpha1.RedisCluster {
	t.Helper()
	cr := &v1alpha1.RedisCluster{}
	if err := yaml.UnmarshalStrict([]byte("{spec: "+spec+"}"), cr); err != nil {
		t.Fatal(err)
	}
	return cr
}

// TestMaxMemory: spec.config, the ConfigMap, the variable MAXMEMORY, three quarters of the
// build are the values of a cluster with the settings that it asks for.
func build(cr *v1alpha1.RedisCluster) map[string]any {
	return values.Build(cr, nil, redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr))
}

// memory limit; and none of them.
func TestMaxMemory(t *testing.T) {
	for _, tc := range []struct {
		spec, configMap, want string
		source                redisconf.Source
	}{
		{spec: `{}`},
		{spec: `{pod: [{resources: {requests: {memory: 1Gi}}}]}`},
		{spec: `{pod: [{resources: {limits: {memory: 1Gi}}}]}`, want: "805306350", source: redisconf.FromLimit},
		{spec: `{pod: [{resources: {limits: {memory: "1000"}}}]}`, want: "750", source: redisconf.FromLimit},
		{spec: `{config: {maxmemory: "0"}, pod: [{resources: {limits: {memory: 1Gi}}}]}`, want: "0", source: redisconf.FromSpec},
		{spec: `{pod: [{resources: {limits: {memory: 1Gi}}}]}`, configMap: "maxmemory 12mb", want: "12mb", source: redisconf.FromConfigMap},
		{spec: `{pod: [{env: [{name: MAXMEMORY, value: 2gb}]}]}`, want: "2147483648", source: redisconf.FromEnv},
		{spec: `{pod: [{env: [{name: MAXMEMORY, value: 2GB}], resources: {limits: {memory: 4Gi}}}]}`, want: "2147483648",
			source: redisconf.FromEnv},
		{spec: `{pod: [{env: [{name: MAXMEMORY, value: "0"}], resources: {limits: {memory: 4Gi}}}]}`, want: "0", source: redisconf.FromEnv},
		{spec: `{pod: [{env: [{name: MAXMEMORY, value: 2gb}]}]}`, configMap: "maxmemory 12mb", want: "12mb", source: redisconf.FromConfigMap},
		{spec: `{config: {maxmemory: 1gb}, pod: [{env: [{name: MAXMEMORY, value: 2gb}]}]}`, configMap: "maxmemory 12mb", want: "1gb",
			source: redisconf.FromSpec},
		// What admission refuses counts as absent.
		{spec: `{pod: [{env: [{name: MAXMEMORY, value: "2gb\nloadmodule x"}], resources: {limits: {memory: 1Gi}}}]}`, want: "805306350",
			source: redisconf.FromLimit},
		{spec: `{pod: [{env: [{name: MAXMEMORY, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`},
	} {
		configMap, err := redisconf.ParseConfig(tc.configMap)
		if err != nil {
			t.Fatal(err)
		}
		var got redisconf.Setting
		last := ""
		for _, s := range redisconf.AskedFor(clusterOf(t, tc.spec), configMap) {
			if s.Name <= last {
				t.Errorf("%s: %s stands behind %s", tc.spec, s.Name, last)
			}
			last = s.Name
			if s.Name == "maxmemory" {
				got = s
			}
		}
		if got.Value() != tc.want || got.Source != tc.source {
			t.Errorf("%s, %q: maxmemory %q of source %d, want %q of %d", tc.spec, tc.configMap, got.Value(), got.Source, tc.want, tc.source)
		}
	}
}

// TestSettingsForTheStart: the pod template changes with settings that instances take only when
// they start, and with no others; the user's annotations stay.
func TestSettingsForTheStart(t *testing.T) {
	digest := func(spec string) string {
		t.Helper()
		annotations, _ := build(clusterOf(t, spec))["pod"].(map[string]any)["annotations"].(map[string]any)
		text, _ := annotations[values.AnnotationSettings].(string)
		return text
	}
	for _, spec := range []string{`{}`, `{config: {maxmemory: 1gb, hz: "20"}}`, `{config: {tcp-backlog: "511", set-proc-title: "YES"}}`,
		`{pod: [{resources: {limits: {memory: 1Gi}}}]}`} {
		if got := digest(spec); got != "" {
			t.Errorf("%s: digest %s, want none", spec, got)
		}
	}
	seen := map[string]string{}
	for _, spec := range []string{`{config: {tcp-backlog: "512"}}`, `{config: {tcp-backlog: "513"}}`, `{config: {io-threads: "4"}}`,
		`{config: {brand-new: "1"}}`, `{config: {io-threads: "4", tcp-backlog: "512"}}`} {
		got := digest(spec)
		if got == "" || seen[got] != "" {
			t.Errorf("%s: digest %q, as of %s", spec, got, seen[got])
		}
		seen[got] = spec
	}
	if digest(`{config: {io-threads: "4"}}`) != digest(`{config: {io-threads: "4", maxmemory: 1gb}}`) {
		t.Error("a setting that is changed live changes the template")
	}
	pod := build(clusterOf(t, `{config: {io-threads: "4"}, pod: [{annotations: {team: shop}}]}`))["pod"].(map[string]any)
	if annotations := pod["annotations"].(map[string]any); annotations["team"] != "shop" || len(annotations) != 2 {
		t.Errorf("annotations %v", annotations)
	}
	pod = build(clusterOf(t,
		`{pod: [{annotations: {redis.middleware.hc.cn/modules: x, redis.middleware.hc.cn/settings-at-start: y}}]}`))["pod"].(map[string]any)
	if annotations, set := pod["annotations"]; set {
		t.Errorf("a user says what stands for settings and modules: %v", annotations)
	}
}

// TestSettingText: what the status holds of a setting is the setting again.
func TestSettingText(t *testing.T) {
	for _, value := range []string{"1gb", "900 1 300 10", "", `"{title} x"`, `"a\x0ab" 'c d'`} {
		s := redisconf.Setting{Name: "x", Args: redisconf.Arguments(value)}
		if again := (redisconf.Setting{Name: "x", Args: redisconf.Arguments(s.Text())}); again.Line() != s.Line() {
			t.Errorf("%q: %s, and from its text %s", value, s.Line(), again.Line())
		}
	}
}

// TestStartSettingsAreChecked: no running instance could be asked about them.
func TestStartSettingsAreChecked(t *testing.T) {
	for name, cases := range map[string]map[string]bool{
		"io-threads":     {"4": true, "0": false, "129": false, "many": false, "1 2": false},
		"databases":      {"1": true, "0": false},
		"tcp-backlog":    {"1024": true, "-1": false},
		"rdbchecksum":    {"no": true, "YES": true, "maybe": false, "": false},
		"server-cpulist": {"0-3,8:2": true, "0-": false, "a": false},
		"hash-seed":      {"abc": true, "a b": false, `"a b"`: true},
	} {
		for value, ok := range cases {
			if err := redisconf.CheckSetting(name, value); (err == nil) != ok {
				t.Errorf("%s %q: %v, want good: %t", name, value, err, ok)
			}
		}
	}
}
