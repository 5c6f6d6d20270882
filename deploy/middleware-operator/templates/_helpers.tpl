{{- /* Labels that every object has besides those of config/. Selectors use none of them: an installation by kubectl can be taken over. */}}
{{- define "middleware-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version) | trunc 63 | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ replace "+" "_" .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}

{{- define "middleware-operator.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* The operators of the release: that of its own values first, which has no name. */}}
{{- define "middleware-operator.operators" -}}
{{- concat (list (dict "name" "" "replicas" .Values.replicas "selector" .Values.selector)) (.Values.operators | default list) | toYaml }}
{{- end }}

{{- /* The Lease of an operator, as it makes the name itself. */}}
{{- define "middleware-operator.lease" -}}
middleware-operator{{ with .selector }}-{{ sha256sum . | trunc 8 }}{{ end }}
{{- end }}

{{- /* What Prometheus misses when an operator does not answer. */}}
{{- define "middleware-operator.down" -}}
{{- range $index, $operator := include "middleware-operator.operators" . | fromYamlArray }}
{{- if $index }} or {{ end }}absent(middleware_operator_build_info{{ with $operator.selector }}{selector={{ quote . }}}{{ end }})
{{- end }}
{{- end }}

{{- /* Flags that objects of the chart must agree with, and the value that says so, or why there is none. */}}
{{- define "middleware-operator.ownFlags" -}}
watch-namespaces: set watchNamespaces
selector: set selector
shards: set shards
allow-host-path: set allowHostPath
install-crds: the chart installs them (crds.install)
metrics-bind-address: set metrics.enabled
metrics-addr: set metrics.enabled
metrics-secure: metrics are served over TLS, to clients with a right to them
kubeconfig: the operator works in the cluster that it is installed in, with the rights that it is given there
master: the operator works in the cluster that it is installed in, with the rights that it is given there
controllers: the webhook configurations and the rights are those of all kinds
health-probe-bind-address: the probes ask port 8081
webhook-port: the Service leads to port 9443
webhook-cert-dir: set webhooks.certManager
webhooks: the webhook configurations are installed
leader-elect: more than one pod would act
enable-leader-election: more than one pod would act
leader-election-id: the Role allows middleware-operator, and the Leases of selectors
leader-election-namespace: the Role is in the namespace of the release
zap-log-level: set log.level
zap-encoder: set log.format
{{- end }}
