// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// manifest is a custom resource of which only the spec matters.
func manifest(t *testing.T, apiVersion, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "spec": object,
		"metadata": map[string]any{"name": "wrong", "namespace": "default"},
	}}
}

const (
	redis       = "redis.middleware.hc.cn/v1alpha1"
	app         = "appcontroller.middleware.hc.cn/v1alpha1"
	application = "controller.controller.daocloud.io/v1"
	crontab     = "stable.example.com/v1beta1"
	foobar      = "k8s.io/v1"
)

// The sentences that a user sees, whoever says them: the schema, its CEL rules, or the webhooks.
func TestWrongManifestsGetSentencesWithFieldPaths(t *testing.T) {
	tests := []struct {
		name, apiVersion, kind, spec string
		want                         []string
	}{
		{"a module from the data", redis, "RedisCluster", `{modules: [{name: /data/dump.rdb}]}`,
			[]string{`spec.modules[0].name`, `is not in the image: /data is written by others`}},
		{"a module without a name", redis, "RedisCluster", `{modules: [{args: [a]}]}`, []string{`spec.modules[0].name: Required value`}},
		{"cron out of range", crontab, "CronTab", `{cronSpec: "61 * * * *", image: busybox:1.36}`,
			[]string{`spec.cronSpec`, `position 1: minute "61"`}},
		{"cron of words", crontab, "CronTab", `{cronSpec: "every day", image: busybox:1.36}`, []string{`spec.cronSpec`, `must have five fields`}},
		{"no image", crontab, "CronTab", `{cronSpec: "* * * * *"}`, []string{`spec.image: Required value`}},
		{"unknown time zone", crontab, "CronTab", `{cronSpec: "* * * * *", image: busybox:1.36, timeZone: Mars/Olympus}`,
			[]string{`spec.timeZone`, `write an IANA name, such as Asia/Shanghai`}},
		{"barz is no boolean", foobar, "FooBar", `{command: "echo", barz: "maybe"}`, []string{`spec.barz`, `supported values: "true", "false"`}},
		{"zero image", app, "App", `{image: ""}`, []string{`spec.image`, `at least 1 chars long`}},
		{"image that is none", app, "App", `{image: "Not An Image"}`, []string{`spec.image`, `write registry/repository:tag`}},
		{"fewer at most than at least", app, "App", `{image: busybox:1.36, autoscaling: {minReplicas: 5, maxReplicas: 2}}`,
			[]string{`spec.autoscaling.minReplicas`, `must not exceed maxReplicas`}},
		{"canary of 200 percent", app, "App", `{image: busybox:1.36, canary: {image: busybox:1.37, weight: 200}}`,
			[]string{`spec.canary.weight`, `less than or equal to 100`}},
		{"replicas that are a word", app, "App", `{image: busybox:1.36, replicas: six}`, []string{`spec.replicas`, `must be of type integer`}},
		{"selector beside the labels", application, "Application",
			`{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: b}}, spec: {selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}, spec: {containers: [{name: c, image: busybox}]}}}}}`, []string{`spec.template.metadata.labels`, `must match spec.selector (app=a)`}},
		{"network of the node", application, "Application",
			`{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {hostNetwork: true, containers: [{name: c, image: busybox}]}}}}}`, []string{`spec.template.spec.template.spec: Forbidden`, `hostNetwork=true`}},
		{"two instances", redis, "RedisCluster", `{replicas: 2}`,
			[]string{`spec.replicas: Invalid value`, `must be at least 3 unless shards says how many masters there are`}},
		{"no shard", redis, "RedisCluster", `{replicas: 2, shards: 0}`, []string{`spec.shards: Invalid value: 0`, `greater than or equal to 1`}},
		{"AssignReceive without strategies", redis, "RedisCluster", `{updateStrategy: {type: AssignReceive}}`,
			[]string{`spec.updateStrategy.assignStrategies`, `needs assignStrategies, one entry for each new master`}},
		{"strategies without AssignReceive", redis, "RedisCluster", `{updateStrategy: {assignStrategies: [{slots: 5, fromReplicas: nodeId1}]}}`,
			[]string{`spec.updateStrategy.assignStrategies`, `remove them, or set type to AssignReceive`}},
		{"unknown deletion policy", redis, "RedisCluster", `{finalizers: sometimes}`,
			[]string{`spec.finalizers`, `supported values: "foreground", "background", "orphan"`}},
		{"nfs without a claim", redis, "RedisCluster", `{pod: [{volumes: {type: nfs}}]}`,
			[]string{`spec.pod[0].volumes.persistentVolumeClaimName`, `type nfs needs persistentVolumeClaimName`}},
		{"storage beside an existing claim", redis, "RedisCluster",
			`{storage: {size: 5Gi}, pod: [{volumes: {type: pvc, persistentVolumeClaimName: data}}]}`,
			[]string{`spec.storage`, `both say where data is kept: set one of them`}},
		{"a limit that is no memory size", redis, "RedisCluster", `{pod: [{env: [{name: MAXMEMORY, value: 2Gi}]}]}`,
			[]string{`spec.pod[0].env[0].value: Invalid value: "2Gi"`, `such as 2gb`}},
		{"directory of a node", redis, "RedisCluster", `{pod: [{volumes: {type: hostPath}}]}`,
			[]string{`spec.pod[0].volumes.type: Forbidden`, `--allow-host-path`}},
		{"setting the operator owns", redis, "RedisCluster", `{config: {requirepass: secret}}`,
			[]string{`spec.config[requirepass]: Forbidden`, `the password is set with spec.auth`}},
		{"setting that begins another line", redis, "RedisCluster", `{config: {maxmemory-policy: "noeviction\nloadmodule /tmp/x.so"}}`,
			[]string{`spec.config[maxmemory-policy]`, `cannot hold line breaks`}},
		{"old engine", redis, "RedisCluster", `{repository: redis, version: 3.2.8}`, []string{`spec.version`, `use Redis 7.0 or later`}},
		{"reserved variable", redis, "RedisCluster", `{pod: [{env: [{name: REDISCLI_AUTH, value: x}]}]}`,
			[]string{`spec.pod[0].env[0].name: Forbidden`, `set the password with spec.auth`}},
		{"variable that the operator sets", redis, "RedisCluster", `{pod: [{env: [{name: POD_IP, value: x}]}]}`,
			[]string{`spec.pod[0].env[0].name: Forbidden`, `use another name`}},
		{"a quantity that takes for ever to read", redis, "RedisCluster", `{storage: {size: "1e2147483647"}}`,
			[]string{`spec.storage.size: Invalid value: "1e2147483647"`, `write one such as 500m or 10Gi`}},
		{"such a quantity in a template", application, "Application",
			`{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {overhead: {cpu: "1e2147483647"}, containers: [{name: c, image: busybox}]}}}}}`,
			[]string{`spec.template.spec.template.spec.overhead[cpu]`, `write one such as 500m or 10Gi`}},
		{"such a quantity of an App", app, "App", `{image: busybox:1.36, resources: {limits: {cpu: "1e2147483647"}}}`,
			[]string{`spec.resources.limits[cpu]`, `write one such as 500m or 10Gi`}},
		{"size that is a word", redis, "RedisCluster", `{storage: {size: big}}`, []string{`spec.storage.size`, `should match`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := kube.Create(t.Context(), manifest(t, test.apiVersion, test.kind, test.spec), client.DryRunAll)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
		})
	}
}
