// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What users would miss of an object although its condition says Ready.
func TestLacks(t *testing.T) {
	const node = `{name: c-0-0, status: "True"}`
	tests := map[string]struct {
		test, object string
		services     addresses
		want         []string
	}{
		"a whole RedisCluster": {"rediscluster-ready",
			`{spec: {replicas: 3, shards: 3}, status: {slots: 16384, secretName: c-auth, nodes: [` + node + `, ` + node + `, ` + node + `]}}`,
			addresses{"c": 3}, nil},
		"a RedisCluster with holes": {"rediscluster-ready",
			`{spec: {replicas: 3, shards: 3}, status: {slots: 16383, nodes: [` + node +
				`, {name: c-1-0, status: Unknown, reason: NoAnswer, message: timeout}]}}`, addresses{"c": 1, "d": 3},
			[]string{"16383 of 16384 slots are served", "2 instances exist, spec.replicas asks for 3",
				"instance c-1-0 does not serve: NoAnswer timeout",
				"Service c leads to 1 of 3 instances", "status.secretName does not say where the password is"}},
		"a RedisCluster without a password": {"rediscluster-ready",
			`{spec: {replicas: 3, shards: 3, auth: {enabled: false}}, status: {slots: 16384, nodes: [` + node + `, ` + node + `, ` + node + `]}}`,
			addresses{"c": 3}, nil},
		"an App that answers": {"app-ready",
			`{spec: {image: i}, status: {replicas: 1, readyReplicas: 1, inventory: [{version: v1, kind: Deployment, name: c}, {version: v1, kind: Service, name: c}]}}`, addresses{"c": 1}, nil},
		"an App that does not": {"app-ready",
			`{spec: {image: i}, status: {replicas: 2, readyReplicas: 1, inventory: [{version: v1, kind: Service, name: c}]}}`, nil,
			[]string{"1 of 2 pods are ready", "Service c leads to no pod"}},
		"an App of nothing": {"app-ready", `{spec: {image: i}}`, nil, []string{"0 of 0 pods are ready", "there is no Service"}},
		"an Application":    {"application-ready", `{spec: {template: {spec: {}}}, status: {readyReplicas: 1}}`, nil, nil},
		"an Application half there": {"application-ready", `{spec: {template: {spec: {replicas: 2}}}, status: {readyReplicas: 1}}`, nil,
			[]string{"1 of 2 pods are ready"}},
		"a CronTab": {
			"crontab-ready", `{status: {nextRunTime: "2026-11-21T00:00:00Z", inventory: [{version: v1, kind: CronJob, name: c}]}}`, nil, nil},
		"a suspended CronTab": {
			"crontab-ready", `{spec: {suspend: true}, status: {inventory: [{version: v1, kind: CronJob, name: c}]}}`, nil, nil},
		"a CronTab that never runs": {"crontab-ready", `{status: {}}`, nil,
			[]string{"there is no CronJob", "status.nextRunTime does not say when it runs next"}},
		"a FooBar that is done": {"foobar-ready", `{status: {conditions: [{type: Complete, status: "True"}]}}`, nil, nil},
		"a FooBar that has not run yet": {"foobar-ready", `{status: {completions: 0/1, conditions: [{type: Complete, status: "False"}]}}`, nil,
			[]string{"the command has not succeeded (0/1 completions)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := object(t, `{apiVersion: v1, kind: X, metadata: {name: c}, `+test.object[1:])
			got, err := named(t, test.test).lacks(o, test.services)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two runs, or a run beside the sample itself, must not take each other's Deployment.
func TestApplicationsAreDistinguished(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"small": {
			`{selector: {matchLabels: {app: a}}, template: {spec: {template: {metadata: {labels: {app: a}}}}}}`,
			`{selector: {matchLabels: {app: a, scorecard.middleware.hc.cn/run: run-1}}, template: {spec: {template: {metadata: {labels: {app: a, scorecard.middleware.hc.cn/run: run-1}}}}}}`,
		},
		"full": {
			`{selector: {matchLabels: {app: a}}, template: {metadata: {name: b, labels: {app: a}}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}}}}`,
			`{selector: {matchLabels: {app: a, scorecard.middleware.hc.cn/run: run-1}}, template: {metadata: {name: run-1, labels: {app: a, scorecard.middleware.hc.cn/run: run-1}},
			  spec: {selector: {matchLabels: {app: a, scorecard.middleware.hc.cn/run: run-1}},
			  template: {metadata: {labels: {app: a, scorecard.middleware.hc.cn/run: run-1}}}}}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			with := func(spec string) *unstructured.Unstructured {
				return object(t, `{apiVersion: v1, kind: Application, metadata: {name: run-1}, spec: `+spec+`}`)
			}
			got := with(test.spec)
			if err := distinguishApplication(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(with(test.want).Object, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}
