{{/*
Labels. "selector" never changes during a cluster's life; "labels" are those of every
object. Names of the API's labels: api/rediscluster/v1alpha1/topology.go.
*/}}
{{- define "rediscluster.selector" -}}
redis.middleware.hc.cn/cluster: {{ .Release.Name | quote }}
{{- end }}

{{/* The pod that writes the archive. */}}
{{- define "rediscluster.archiveSelector" -}}
redis.middleware.hc.cn/archive: {{ .Release.Name | quote }}
{{- end }}

{{/* The pods that lead clients outside to instances. */}}
{{- define "rediscluster.gatewaySelector" -}}
redis.middleware.hc.cn/gateway: {{ .Release.Name | quote }}
{{- end }}

{{- define "rediscluster.labels" -}}
app.kubernetes.io/name: rediscluster
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: redis
app.kubernetes.io/managed-by: middleware-operator
{{ include "rediscluster.selector" . }}
{{- end }}

{{/* Labels of a shard; the argument is {root, shard}. */}}
{{- define "rediscluster.shardSelector" -}}
{{ include "rediscluster.selector" .root }}
redis.middleware.hc.cn/shard: {{ .shard.index | quote }}
{{- end }}

{{- define "rediscluster.shardLabels" -}}
{{ include "rediscluster.labels" .root }}
redis.middleware.hc.cn/shard: {{ .shard.index | quote }}
{{- end }}

{{/* The IP families of a Service. */}}
{{- define "rediscluster.families" -}}
{{- with .Values.service.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . | quote }}
{{- end }}
{{- end }}

{{/* What the kubelet tells a container about its pod, for $(…) in commands and paths. */}}
{{- define "rediscluster.identityEnv" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}
{{- end }}

{{/* What the restricted pod security standard asks of a container. */}}
{{- define "rediscluster.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The data directory. In a volume that instances share each has a directory of its own. */}}
{{- define "rediscluster.dataMount" -}}
- name: data
  mountPath: /data
  {{- if has .Values.data.type (list "shared" "hostPath") }}
  subPathExpr: $(POD_NAME)
  {{- end }}
{{- end }}

{{/* Instances of a shard prefer different nodes and zones; the argument is {root, shard}. */}}
{{- define "rediscluster.preferApart" -}}
preferredDuringSchedulingIgnoredDuringExecution:
  {{- range list (dict "weight" 100 "key" "kubernetes.io/hostname") (dict "weight" 50 "key" "topology.kubernetes.io/zone") }}
  - weight: {{ .weight }}
    podAffinityTerm:
      topologyKey: {{ .key }}
      labelSelector:
        matchLabels:
          {{- include "rediscluster.shardSelector" $ | nindent 10 }}
  {{- end }}
{{- end }}

{{/*
Instances of a shard never share a node; the argument is {root, shard}. As long as there are
fewer nodes than minDomains, a node without an instance counts as the least loaded one, and
maxSkew is what every node may hold. A required podAntiAffinity would say the same of the pods
that exist, too, and keep the first pod without it from starting beside them: nothing could be
relaxed any more.
*/}}
{{- define "rediscluster.requireApart" -}}
- topologyKey: kubernetes.io/hostname
  maxSkew: 1
  minDomains: 100000
  whenUnsatisfiable: DoNotSchedule
  labelSelector:
    matchLabels:
      {{- include "rediscluster.shardSelector" . | nindent 6 }}
{{- end }}

{{/*
Instances of the cluster are spread evenly over zones, and over nodes, where that can be: what
keeps those of a shard apart would let the others gather.
*/}}
{{- define "rediscluster.spread" -}}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- topologyKey: {{ $key }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "rediscluster.selector" $ | nindent 6 }}
{{- end }}
{{- end }}

{{/*
Where Services lead to from port 6379. The port of instances that is called redis takes TLS where any does: 6380 while 6379
takes plain connections, which is told by its number then, because a pod that is to restart for it has no other name for it.
*/}}
{{- define "rediscluster.firstPort" -}}
{{ ternary "6379" "redis" (default false .Values.tls.plain) }}
{{- end }}
