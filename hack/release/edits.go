// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// The values that objects are made for; every other object of the default installation is always made.
var conditions = map[string]string{
	"NetworkPolicy middleware-operator":              "$.Values.networkPolicy.enabled",
	"Service middleware-operator-metrics":            "$.Values.metrics.enabled",
	"ClusterRole middleware-operator-metrics-reader": "$.Values.metrics.enabled",
	"ClusterRole middleware-operator-cluster":        "$.Values.metrics.enabled",
	"ClusterRoleBinding middleware-operator-cluster": "$.Values.metrics.enabled",
	"ServiceMonitor middleware-operator":             "$.Values.metrics.serviceMonitor.enabled",
	"PrometheusRule middleware-operator":             "$.Values.metrics.prometheusRule.enabled",
}

// namespaced are the ClusterRoleBindings whose rights are about objects of namespaces: with watchNamespaces they are granted there, and
// nowhere else.
var namespaced = []string{"middleware-operator-manager", "middleware-operator-host-path"}

// Steps of a path besides names of fields and indexes of lists.
type (
	named string   // the item of a list with this name
	added struct{} // another field or item
	items struct{} // all items of a list
)

// edit replaces a field of an object by template text. In the text @N is the number of spaces before the field, and N more.
type edit struct {
	object string
	path   []any
	text   string
}

func container(path ...any) []any {
	return append([]any{"spec", "template", "spec", "containers", 0}, path...)
}

// eachOperator goes through the operators of a release; the first has no name.
const eachOperator = `range $operator := include "middleware-operator.operators" $ | fromYamlArray`

// component tells the pods of one operator from those of another.
var component = lines(
	`{{- with $operator.name }}`,
	`app.kubernetes.io/component: {{ . | quote }}`,
	`{{- end }}`)

const deployment, networkPolicy = "Deployment middleware-operator", "NetworkPolicy middleware-operator"

// edits are where the objects of config/ depend on values. The labels that all have, the namespace and the conditions come on top.
var edits = []edit{
	{deployment, []any{"metadata", "name"}, `name: middleware-operator{{ with $operator.name }}-{{ . }}{{ end }}`},
	{deployment, []any{"spec", "replicas"}, `replicas: {{ $operator.replicas }}`},
	{deployment, []any{"spec", "selector", "matchLabels", added{}}, component},
	{deployment, []any{"spec", "template", "metadata", "labels", added{}}, component},
	{deployment, []any{"spec", "template", "spec", added{}}, lines(
		`{{- with $.Values.image.pullSecrets }}`,
		`imagePullSecrets:`,
		`  {{- range . }}`,
		`  - name: {{ . | quote }}`,
		`  {{- end }}`,
		`{{- end }}`,
		`{{- with $.Values.priorityClassName }}`,
		`priorityClassName: {{ . | quote }}`,
		`{{- end }}`,
		`{{- range $field := list "nodeSelector" "tolerations" "affinity" }}`,
		`{{- with index $.Values $field }}`,
		`{{ $field }}:`,
		`  {{- toYaml . | nindent @2 }}`,
		`{{- end }}`,
		`{{- end }}`,
		`{{- if $.Values.webhooks.certManager }}`,
		`volumes:`,
		`- name: webhook-certificate`,
		`  secret:`,
		`    secretName: middleware-operator-webhook-tls`,
		`{{- end }}`)},
	{deployment, container("image"), `image: {{ include "middleware-operator.image" $ | quote }}`},
	{deployment, container("args", added{}), lines(
		`{{- with $operator.selector }}`,
		`- {{ printf "--selector=%s" . | quote }}`,
		`{{- end }}`,
		`{{- with $.Values.shards }}`,
		`- --shards={{ int . }}`,
		`{{- end }}`,
		`{{- with $.Values.watchNamespaces }}`,
		`- --watch-namespaces={{ join "," . }}`,
		`{{- end }}`,
		`{{- if $.Values.allowHostPath }}`,
		`- --allow-host-path`,
		`{{- end }}`,
		`{{- with $.Values.clusterIssuers }}`,
		`- --cluster-issuers={{ join "," . }}`,
		`{{- end }}`,
		`{{- if not $.Values.metrics.enabled }}`,
		`- --metrics-bind-address=0`,
		`{{- end }}`,
		`{{- if ne $.Values.log.level "info" }}`,
		`- --zap-log-level={{ $.Values.log.level }}`,
		`{{- end }}`,
		`{{- if ne $.Values.log.format "json" }}`,
		`- --zap-encoder={{ $.Values.log.format }}`,
		`{{- end }}`,
		`{{- range $.Values.extraArgs }}`,
		`- {{ . | quote }}`,
		`{{- end }}`)},
	{deployment, container("env", named("RELATED_IMAGE_REDIS"), "value"), `value: {{ $.Values.relatedImages.redis | quote }}`},
	{deployment, container("env", named("RELATED_IMAGE_FOOBAR_SHELL"), "value"), `value: {{ $.Values.relatedImages.foobarShell | quote }}`},
	{deployment, container("env", added{}), lines(
		`{{- with $.Values.extraEnv }}`,
		`{{- toYaml . | nindent @0 }}`,
		`{{- end }}`)},
	{deployment, container("resources"), lines(
		`resources:`,
		`  {{- toYaml $.Values.resources | nindent @2 }}`)},
	{deployment, container(added{}), lines(
		`{{- if $.Values.webhooks.certManager }}`,
		`volumeMounts:`,
		`- mountPath: /tmp/k8s-webhook-server/serving-certs`,
		`  name: webhook-certificate`,
		`  readOnly: true`,
		`{{- end }}`)},
	{"Role middleware-operator", []any{"rules", 1, "resourceNames", items{}}, lines(
		`{{- `+eachOperator+` }}`,
		`- {{ include "middleware-operator.lease" $operator }}`,
		`{{- if $.Values.shards }}`,
		`- {{ include "middleware-operator.lease" $operator }}-turns`,
		`{{- end }}`,
		`{{- range $k := until (int $.Values.shards) }}`,
		`- {{ include "middleware-operator.lease" $operator }}-member-{{ $k }}`,
		`- {{ include "middleware-operator.lease" $operator }}-shard-{{ $k }}`,
		`{{- end }}`,
		`{{- end }}`)},
	{networkPolicy, []any{"spec", "egress", 3, "ports", items{}}, lines(
		`{{- range $.Values.networkPolicy.apiServerPorts }}`,
		`- port: {{ int . }}`,
		`  protocol: TCP`,
		`{{- end }}`)},
	{"MutatingWebhookConfiguration middleware-operator", []any{"metadata", added{}}, injected},
	{"ValidatingWebhookConfiguration middleware-operator", []any{"metadata", added{}}, injected},
	{"ServiceMonitor middleware-operator", []any{"metadata", "labels", added{}}, moreLabels("serviceMonitor")},
	{"PrometheusRule middleware-operator", []any{"metadata", "labels", added{}}, moreLabels("prometheusRule")},
	// Of several operators each is missed, and by name.
	{"PrometheusRule middleware-operator", []any{"spec", "groups", 0, "rules", 0, "expr"},
		`expr: {{ include "middleware-operator.down" $ | quote }}`},
	{"RoleBinding middleware-operator", []any{"metadata", "namespace"}, `namespace: {{ . | quote }}`},
}

var injected = lines(
	`{{- if $.Values.webhooks.certManager }}`,
	`annotations:`,
	`  cert-manager.io/inject-ca-from: {{ $.Release.Namespace }}/middleware-operator-webhook`,
	`{{- end }}`)

func moreLabels(object string) string {
	return lines(
		`{{- with $.Values.metrics.`+object+`.labels }}`,
		`{{- toYaml . | nindent @0 }}`,
		`{{- end }}`)
}

func lines(all ...string) string { return strings.Join(all, "\n") }
