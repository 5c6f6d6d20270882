{{/*
The pod template of a shard's instances; the argument is {root, shard}. It must not
depend on how many shards or instances there are: a change of it restarts instances.
*/}}
{{- define "rediscluster.podTemplate" -}}
{{- $root := .root }}
{{- $values := .root.Values }}
{{- $pod := $values.pod }}
metadata:
  labels:
    {{- mustMergeOverwrite (deepCopy ($pod.labels | default dict)) (include "rediscluster.shardLabels" . | fromYaml) | toYaml | nindent 4 }}
  {{- with $pod.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30
  readinessGates:
    - conditionType: redis.middleware.hc.cn/serving
  securityContext:
    runAsNonRoot: true
    runAsUser: 999
    runAsGroup: 999
    fsGroup: 999
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- range $field := list "nodeSelector" "tolerations" "topologySpreadConstraints" "imagePullSecrets" }}
  {{- with get $pod $field }}
  {{ $field }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $pod.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- $affinity := deepCopy ($pod.affinity | default dict) }}
  {{- if not (hasKey $affinity "podAntiAffinity") }}
  {{- $_ := set $affinity "podAntiAffinity" (include "rediscluster.antiAffinity" . | fromYaml) }}
  {{- end }}
  affinity:
    {{- toYaml $affinity | nindent 4 }}
  {{- include "rediscluster.initContainers" $root | nindent 2 }}
  containers:
    {{- include "rediscluster.redisContainer" $root | nindent 4 }}
    {{- if $values.metrics.image }}
    {{- include "rediscluster.exporterContainer" $root | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "rediscluster.volumes" $root | nindent 4 }}
{{- end }}

{{/*
Redis is started without a shell. Its address changes with every restart of the pod, so
it stands behind the file in the command, and its DNS name never does.
An open port is enough for the probe; whether Redis knows the cluster and is in sync is
what the operator asks over the protocol, and says in the pod's readiness gate. Liveness is patient: Redis opens its port before it
loads data, and a minute without accepting a connection is not a slow command.
*/}}
{{- define "rediscluster.redisContainer" -}}
- name: redis
  image: {{ .Values.image | quote }}
  imagePullPolicy: IfNotPresent
  command:
    - redis-server
    - /etc/redis/redis.conf
    - --cluster-announce-ip
    - $(POD_IP)
    - --cluster-announce-hostname
    - {{ printf "$(POD_NAME).%s-nodes.%s.svc" .Release.Name .Release.Namespace | quote }}
  env:
    {{- include "rediscluster.identityEnv" . | nindent 4 }}
    {{- with .Values.pod.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - {name: redis, containerPort: 6379, protocol: TCP}
    - {name: bus, containerPort: 16379, protocol: TCP}
  {{- with .Values.pod.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  readinessProbe:
    tcpSocket: {port: redis}
    periodSeconds: 1
    timeoutSeconds: 1
    failureThreshold: 3
  livenessProbe:
    tcpSocket: {port: redis}
    initialDelaySeconds: 20
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  securityContext:
    {{- include "rediscluster.containerSecurity" . | nindent 4 }}
  volumeMounts:
    {{- include "rediscluster.dataMount" . | nindent 4 }}
    - name: config
      mountPath: /etc/redis
      readOnly: true
{{- end }}

{{- define "rediscluster.exporterContainer" -}}
- name: exporter
  image: {{ .Values.metrics.image | quote }}
  imagePullPolicy: IfNotPresent
  env:
    - name: REDIS_ADDR
      value: redis://localhost:6379
    {{- if .Values.auth.enabled }}
    - name: REDIS_PASSWORD
      valueFrom: {secretKeyRef: {name: {{ printf "%s-auth" .Release.Name | quote }}, key: password}}
    {{- end }}
  ports:
    - {name: metrics, containerPort: 9121, protocol: TCP}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 128Mi}
  securityContext:
    {{- include "rediscluster.containerSecurity" . | nindent 4 }}
{{- end }}

{{/*
A directory of the node belongs to root, and fsGroup does not reach it: it is handed to
Redis first. hostPath is allowed only where the operator was started with it.
*/}}
{{- define "rediscluster.initContainers" -}}
{{- $hostPath := eq .Values.data.type "hostPath" }}
{{- if or $hostPath .Values.init.image }}
initContainers:
  {{- if $hostPath }}
  - name: data-owner
    image: {{ .Values.image | quote }}
    imagePullPolicy: IfNotPresent
    command: [chown, "999:999", /data]
    env:
      {{- include "rediscluster.identityEnv" . | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL], add: [CHOWN]}
      runAsNonRoot: false
      runAsUser: 0
    volumeMounts:
      {{- include "rediscluster.dataMount" . | nindent 6 }}
  {{- end }}
  {{- if .Values.init.image }}
  - name: init
    image: {{ .Values.init.image | quote }}
    imagePullPolicy: IfNotPresent
    env:
      {{- include "rediscluster.identityEnv" . | nindent 6 }}
    {{- with .Values.pod.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      {{- include "rediscluster.containerSecurity" . | nindent 6 }}
    volumeMounts:
      {{- include "rediscluster.dataMount" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Of the Secret only auth.conf is mounted. */}}
{{- define "rediscluster.volumes" -}}
- name: config
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ printf "%s-config" .Release.Name | quote }}
          items: [{key: redis.conf, path: redis.conf}]
      {{- if .Values.auth.enabled }}
      - secret:
          name: {{ printf "%s-auth" .Release.Name | quote }}
          items: [{key: auth.conf, path: auth/auth.conf}]
      {{- end }}
{{- if eq .Values.data.type "emptyDir" }}
- name: data
  emptyDir: {}
{{- else if eq .Values.data.type "hostPath" }}
- name: data
  hostPath:
    path: {{ printf "/var/lib/middleware-operator/redis/%s/%s" .Release.Namespace .Release.Name | quote }}
    type: DirectoryOrCreate
{{- else if eq .Values.data.type "shared" }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .Values.data.claimName | quote }}
{{- end }}
{{- end }}
