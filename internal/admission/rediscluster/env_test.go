// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEnvMaxMemory: what MAXMEMORY holds becomes a setting, or is refused where it stands.
func TestEnvMaxMemory(t *testing.T) {
	const size = "must be a memory size as in redis.conf, digits and b, k, kb, m, mb, g or gb, such as 2gb; it is taken for the setting maxmemory where spec.config and the ConfigMap have none"
	for variable, want := range map[string]string{
		`{name: MAXMEMORY, value: 2gb}`:  "",
		`{name: MAXMEMORY, value: "0"}`:  "",
		`{name: MAXMEMORY, value: 2Gi}`:  `spec.pod[0].env[0].value: Invalid value: "2Gi": ` + size,
		`{name: MAXMEMORY, value: -1gb}`: `spec.pod[0].env[0].value: Invalid value: "-1gb": ` + size,
		`{name: MAXMEMORY}`:              `spec.pod[0].env[0].value: Invalid value: "": ` + size,
		`{name: MAXMEMORY, value: $(SIZE)}`: `spec.pod[0].env[0].value: Invalid value: "$(SIZE)": ` +
			size,
		`{name: MAXMEMORY, value: "1\nb 2"}`: `spec.pod[0].env[0].value: Invalid value: "1 b 2": ` +
			size,
		`{name: MAXMEMORY, value: ` + strings.Repeat("9", 5000) + `}`: `spec.pod[0].env[0].value: Invalid value: "` +
			strings.Repeat("9", 61) + `…": ` + size,
		`{name: MAXMEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory}}}`: "spec.pod[0].env[0].valueFrom: Forbidden: cannot come from a field of the pod: the operator does not know it; write a memory size such as 2gb, or use another name",
		`{name: maxmemory, value: any}`:                                               "",
	} {
		got := strings.Join(sentences(Validate(cluster(t, `{pod: [{env: [`+variable+`]}]}`), Options{})), "\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.60s (-want +got):\n%s", variable, diff)
		}
	}
}

// TestEnvWarnings: a variable that looks like a setting is told with the field that is one.
func TestEnvWarnings(t *testing.T) {
	for name, instead := range map[string]string{
		"MAXMEMORY": "", "TZ": "", "TIMEOUT": "", "REDIS_MODE_OF_MINE": "", "REDIS_PORT": "", "VALKEY_": "",
		"MAXMEMORY_POLICY": "spec.config[maxmemory-policy]", "ALLOW_EMPTY_PASSWORD": "spec.auth.enabled",
		"REDIS_REPLICATION_MODE": "spec.replicas and spec.shards", "REDIS_MAXMEMORY": "spec.config[maxmemory]",
		"VALKEY_SLAVE_PRIORITY": "spec.config[replica-priority]", "REDIS_TIMEOUT": "spec.config[timeout]", "VALKEY_EXTRA_FLAGS": "spec.config",
	} {
		var want []string
		if instead != "" {
			want = []string{"spec.pod[0].env[1].name: " + name + " changes nothing in Redis, which reads no settings from its environment; use " +
				instead}
		}
		cr := cluster(t, `{pod: [{env: [{name: FIRST, value: x}, {name: `+name+`, value: 1gb}]}]}`)
		if refused := Validate(cr, Options{}); len(refused) > 0 {
			t.Errorf("%s is refused: %v", name, refused)
		}
		if diff := cmp.Diff(want, Warnings(cr)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPipelineWarnings: a number of keys is told to do nothing where no MIGRATE carries keys.
func TestPipelineWarnings(t *testing.T) {
	for spec, engine := range map[string]string{
		`{version: 8.0.6, updateStrategy: {pipeline: "7"}}`:                                                                   "",
		`{version: "8.4", updateStrategy: {pipeline: "7"}}`:                                                                   "redis 8.4",
		`{repository: valkey/valkey, version: 8.1.1, updateStrategy: {pipeline: "7"}}`:                                        "",
		`{repository: valkey/valkey, version: 9.1.2, updateStrategy: {pipeline: "7"}}`:                                        "valkey 9.1",
		`{repository: valkey/valkey, version: 9.1.2}`:                                                                         "",
		`{repository: valkey/valkey, version: 9.1.2, updateStrategy: {pipeline: "7", keysPerSecond: 10}}`:                     "",
		`{version: 8.0.6, updateStrategy: {pipeline: "7"}, pod: [{middlewareImage: "docker.io/valkey/valkey:9.0.0-alpine"}]}`: "valkey 9.0",
		`{repository: example.com/cache, version: 9.1.2, updateStrategy: {pipeline: "7"}}`:                                    "",
	} {
		var want []string
		if engine != "" {
			want = []string{
				"spec.updateStrategy.pipeline: " + engine +
					" moves whole slots by itself, and no MIGRATE carries keys; remove it, or set spec.updateStrategy.keysPerSecond to have the operator move keys"}
		}
		if diff := cmp.Diff(want, Warnings(cluster(t, spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}
