// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"maps"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/test/fields"
)

// No field of the chart kinds is accepted and ignored: each changes what the chart renders.
func TestEveryFieldHasAnEffect(t *testing.T) {
	with := func(text string) fields.Example { return fields.Example{With: text} }
	ingress, port := "ingress: {enabled: true, host: a.example.com}, ports: [{name: http, containerPort: 80}]",
		"ports: [{name: http, containerPort: 80}]"
	gateway := "ingress: {enabled: true, host: a.example.com, gateway: {name: g}}, ports: [{name: http, containerPort: 80}]"
	on := func(base, text string) fields.Example { return fields.Example{Base: "{" + base + "}", With: text} }
	placement := map[string]fields.Example{
		"spec.imagePullSecrets":  with("imagePullSecrets: [{name: registry}]"),
		"spec.nodeSelector":      with("nodeSelector: {disk: ssd}"),
		"spec.priorityClassName": with("priorityClassName: high"),
		"spec.tolerations":       with("tolerations: [{key: a, operator: Exists}]"),
		"spec.affinity": with("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
			"{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}"),
		"spec.volumes":      with("volumes: [{name: a, secret: {secretName: b}}]"),
		"spec.volumeMounts": on("volumes: [{name: a, emptyDir: {}}]", "volumeMounts: [{name: a, mountPath: /a}]"),
	}
	for name, tt := range map[string]struct {
		whole    []string
		examples map[string]fields.Example
	}{
		"App": {[]string{"spec.env", "spec.envFrom", "spec.resources", "spec.topologySpreadConstraints"}, map[string]fields.Example{
			"spec.args":                             with("args: [a]"),
			"spec.autoscaling.maxReplicas":          with("autoscaling: {maxReplicas: 3}"),
			"spec.autoscaling.minReplicas":          on("autoscaling: {maxReplicas: 3}", "autoscaling: {minReplicas: 2}"),
			"spec.autoscaling.targetCPUUtilization": on("autoscaling: {maxReplicas: 3}", "autoscaling: {targetCPUUtilization: 50}"),
			"spec.canary.header":                    on(ingress+", canary: {image: 'a:1'}", "canary: {header: h}"),
			"spec.canary.headerValue":               on(ingress+", canary: {image: 'a:1', header: h}", "canary: {headerValue: v}"),
			"spec.canary.image":                     with("canary: {image: 'a:1'}"),
			"spec.canary.weight":                    on(ingress+", canary: {image: 'a:1'}", "canary: {weight: 20}"),
			"spec.command":                          with("command: [a]"),
			"spec.env":                              with("env: [{name: a, value: b}]"),
			"spec.envFrom":                          with("envFrom: [{configMapRef: {name: a}}]"),
			"spec.image":                            with("image: 'b:2'"),
			"spec.ingress.annotations":              on(ingress, "ingress: {annotations: {a: b}}"),
			"spec.ingress.className":                on(ingress, "ingress: {className: c}"),
			"spec.ingress.enabled":                  on(ingress, "ingress: {enabled: false}"),
			"spec.ingress.gateway.name":             on(ingress, "ingress: {gateway: {name: g}}"),
			"spec.ingress.gateway.namespace":        on(gateway, "ingress: {gateway: {namespace: other}}"),
			"spec.ingress.gateway.sectionName":      on(gateway, "ingress: {gateway: {sectionName: s}}"),
			"spec.ingress.host":                     on(ingress, "ingress: {host: b.example.com}"),
			"spec.ingress.path":                     on(ingress, "ingress: {path: /b}"),
			"spec.ingress.pathType":                 on(ingress, "ingress: {pathType: Exact}"),
			"spec.ingress.tlsSecretName":            on(ingress, "ingress: {tlsSecretName: s}"),
			"spec.ports[].containerPort":            on(port, "ports: [{name: http, containerPort: 81}]"),
			"spec.ports[].name":                     on(port, "ports: [{name: web, containerPort: 80}]"),
			"spec.ports[].protocol":                 on(port, "ports: [{name: http, containerPort: 80, protocol: UDP}]"),
			"spec.ports[].servicePort":              on(port, "ports: [{name: http, containerPort: 80, servicePort: 8080}]"),
			"spec.probes.path":                      on(port, "probes: {path: /healthz}"),
			"spec.probes.port":                      on(port+", probes: {path: /healthz}", "probes: {port: 8081}"),
			"spec.replicas":                         with("replicas: 3"),
			"spec.resources":                        with("resources: {limits: {memory: 1Gi}}"),
			"spec.service.annotations":              on(port, "service: {annotations: {a: b}}"),
			"spec.service.enabled":                  on(port, "service: {enabled: false}"),
			"spec.service.type":                     on(port, "service: {type: NodePort}"),
			"spec.topologySpreadConstraints": with("topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, " +
				"whenUnsatisfiable: DoNotSchedule}]"),
		}},
		"CronTab": {[]string{"spec.env", "spec.envFrom"}, map[string]fields.Example{
			"spec.args":              with("args: [a]"),
			"spec.command":           with("command: [a]"),
			"spec.concurrencyPolicy": with("concurrencyPolicy: Forbid"),
			"spec.env":               with("env: [{name: a, value: b}]"),
			"spec.envFrom":           with("envFrom: [{secretRef: {name: a}}]"),
			"spec.cronSpec":          with("cronSpec: '1 2 * * *'"),
			"spec.historyLimit":      with("historyLimit: 7"),
			"spec.image":             with("image: 'b:2'"),
			"spec.replicas":          with("replicas: 3"),
			"spec.suspend":           with("suspend: true"),
			"spec.timeZone":          with("timeZone: Asia/Shanghai"),
		}},
		"FooBar": {nil, map[string]fields.Example{
			"spec.barz":    with("barz: 'true'"),
			"spec.command": with("command: date"),
			"spec.foo":     with("foo: baz"),
			"spec.image":   with("image: 'b:2'"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := testKinds[name]
			maps.Copy(tt.examples, placement)
			tt.whole = append(tt.whole, "spec.imagePullSecrets", "spec.tolerations", "spec.affinity", "spec.volumes", "spec.volumeMounts")
			fields.Check(t, filepath.Join("..", "..", "config", "crd", "bases", k.crd), tt.whole, fields.JSON(t, k.minimal), tt.examples,
				func(t *testing.T, text []byte) string {
					var spec map[string]any
					if err := yaml.Unmarshal(text, &spec); err != nil {
						t.Fatal(err)
					}
					object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
					object.SetGroupVersionKind(gvks[name])
					object.SetName("a")
					object.SetNamespace("n")
					object = k.setDefaults(t, object)
					values, _, _ := unstructured.NestedMap(object.Object, "spec")
					rendered, err := loadChart(t, k.chart).Render(values, chart.Release{Name: "a", Namespace: "n", Revision: 1, IsInstall: true},
						chart.Capabilities{KubeVersion: "v1.37.2", APIVersions: []string{"gateway.networking.k8s.io/v1/HTTPRoute"}})
					if err != nil {
						t.Fatal(err)
					}
					return fields.JSON(t, rendered.Objects)
				})
		})
	}
}
