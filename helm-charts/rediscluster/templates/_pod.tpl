{{/*
The pod template of a shard's instances; the argument is {root, shard}. It must not
depend on how many shards or instances there are: a change of it restarts instances.
*/}}
{{- define "rediscluster.podTemplate" -}}
{{- $root := .root }}
{{- $values := .root.Values }}
{{- $pod := $values.pod }}
{{- $overlay := $values.overlay }}
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
  # 40 s for switching over (switchover.sh), 10 s for replicas to catch up (shutdown-timeout), and time to write.
  terminationGracePeriodSeconds: {{ $overlay.terminationGracePeriodSeconds | default 60 | int }}
  readinessGates:
    - conditionType: redis.middleware.hc.cn/serving
  {{- if eq $values.data.type "hostPath" }}
  # An instance starts where its data is, which the operator knows.
  schedulingGates:
    - name: redis.middleware.hc.cn/node
  {{- end }}
  securityContext:
    {{- $ids := ternary dict (dict "runAsUser" 999 "runAsGroup" 999 "fsGroup" 999) (($values.global | default dict).platformUserIDs | default false) }}
    {{- $own := dict "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") "runAsNonRoot" true }}
    {{- mustMergeOverwrite $ids $own ($overlay.securityContext | default dict) | toYaml | nindent 4 }}
  {{- with $overlay.spec }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- range $field := list "nodeSelector" "tolerations" "imagePullSecrets" }}
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
  {{- $_ := set $affinity "podAntiAffinity" (include "rediscluster.preferApart" . | fromYaml) }}
  {{- end }}
  affinity:
    {{- toYaml $affinity | nindent 4 }}
  topologySpreadConstraints:
    {{- if $pod.topologySpreadConstraints }}
    {{- toYaml $pod.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- include "rediscluster.spread" $root | nindent 4 }}
    {{- end }}
    {{- if eq $values.antiAffinity "Required" }}
    {{- include "rediscluster.requireApart" . | nindent 4 }}
    {{- end }}
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
A shell starts Redis, and gives its place to it (start.sh). The address of Redis changes with every restart of the pod, so
it stands behind the file in the command, and its DNS name never does.
An open port is enough for the probe; whether Redis knows the cluster and is in sync is what the operator asks over the protocol,
and says in the pod's readiness gate. Liveness is patient: Redis opens its port before it loads data, and a minute without
accepting a connection is not a slow command. Where clients' ports come and go while TLS is switched, readiness looks at that of
the bus, which takes nobody while a master loads: so liveness does not (alive.sh).
*/}}
{{- define "rediscluster.redisContainer" -}}
- name: redis
  image: {{ .Values.image | quote }}
  imagePullPolicy: IfNotPresent
  # A server that does not start says why; so the operator can.
  terminationMessagePolicy: FallbackToLogsOnError
  command:
    - sh
    - /etc/redis/start.sh
    {{- if .Values.tls.twoPorts }}
    - --two-ports
    {{- end }}
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
    {{- if .Values.tls.twoPorts }}
    - {name: plain, containerPort: 6379, protocol: TCP}
    - {name: redis, containerPort: 6380, protocol: TCP}
    {{- else }}
    - {name: redis, containerPort: 6379, protocol: TCP}
    {{- end }}
    - {name: bus, containerPort: 16379, protocol: TCP}
  {{- with .Values.pod.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $both := default false .Values.tls.twoPorts }}
  {{- $ready := dict "tcpSocket" (dict "port" (ternary "bus" "redis" $both)) "periodSeconds" 1 "timeoutSeconds" 1 "failureThreshold" 3 }}
  readinessProbe:
    {{- mustMergeOverwrite $ready (.Values.overlay.readinessProbe | default dict) | toYaml | nindent 4 }}
  lifecycle:
    preStop:
      exec: {command: [sh, /etc/redis/switchover.sh]}
  {{- $open := ternary (dict "exec" (dict "command" (list "sh" "/etc/redis/alive.sh"))) (dict "tcpSocket" (dict "port" "redis")) $both }}
  {{- $alive := merge $open (dict "initialDelaySeconds" 20 "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6) }}
  livenessProbe:
    {{- mustMergeOverwrite $alive (.Values.overlay.livenessProbe | default dict) | toYaml | nindent 4 }}
  securityContext:
    {{- include "rediscluster.containerSecurity" . | nindent 4 }}
  volumeMounts:
    {{- include "rediscluster.dataMount" . | nindent 4 }}
    - name: config
      mountPath: /etc/redis
      readOnly: true
    {{- with .Values.overlay.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/*
Pods with two ports take plain connections in all stages but one, on the way back from TLS alone; TLS they do not take while they
are rolled out at first and at last.
*/}}
{{- define "rediscluster.exporterContainer" -}}
{{- $tls := and .Values.tls.enabled (not .Values.tls.twoPorts) }}
- name: exporter
  image: {{ .Values.metrics.image | quote }}
  imagePullPolicy: IfNotPresent
  {{- with .Values.metrics.args }}
  args:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  env:
    - name: REDIS_ADDR
      value: {{ ternary "rediss" "redis" $tls }}://localhost:6379
    {{- if $tls }}
    # The certificate is for DNS names of pods, and the exporter asks within its own.
    - {name: REDIS_EXPORTER_SKIP_TLS_VERIFICATION, value: "true"}
    {{- end }}
    {{- if and $tls .Values.tls.showCertificate }}
    - {name: REDIS_EXPORTER_TLS_CLIENT_CERT_FILE, value: /etc/exporter/tls/tls.crt}
    - {name: REDIS_EXPORTER_TLS_CLIENT_KEY_FILE, value: /etc/exporter/tls/tls.key}
    {{- end }}
    {{- if .Values.auth.enabled }}
    # A user of its own: it may read figures only, and its password stays when clients' changes. Settings hold a password,
    # so it is not to ask for them.
    - {name: REDIS_USER, value: exporter}
    - name: REDIS_PASSWORD
      valueFrom: {secretKeyRef: {name: {{ printf "%s-auth" .Release.Name | quote }}, key: exporter-password}}
    - {name: REDIS_EXPORTER_CONFIG_COMMAND, value: "-"}
    {{- end }}
  ports:
    - {name: metrics, containerPort: 9121, protocol: TCP}
  resources:
    {{- if .Values.metrics.resources }}
    {{- toYaml .Values.metrics.resources | nindent 4 }}
    {{- else }}
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 128Mi}
    {{- end }}
  securityContext:
    {{- include "rediscluster.containerSecurity" . | nindent 4 }}
  {{- if and $tls .Values.tls.showCertificate }}
  volumeMounts:
    - {name: redis-certificate, mountPath: /etc/exporter/tls, readOnly: true}
  {{- end }}
{{- end }}

{{/*
A directory of the node belongs to root, and fsGroup does not reach it: it is handed to
Redis first. hostPath is allowed only where the operator was started with it.
*/}}
{{- define "rediscluster.initContainers" -}}
{{- $hostPath := eq .Values.data.type "hostPath" }}
{{- if or $hostPath .Values.init.image .Values.overlay.initContainers }}
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
  {{- with .Values.overlay.initContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .Values.init.image }}
  - name: init
    image: {{ .Values.init.image | quote }}
    imagePullPolicy: IfNotPresent
    {{- with .Values.init.args }}
    args:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    env:
      {{- include "rediscluster.identityEnv" . | nindent 6 }}
      {{- if .Values.init.configured }}
      {{- with .Values.pod.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- end }}
    {{- with .Values.pod.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      {{- include "rediscluster.containerSecurity" . | nindent 6 }}
    volumeMounts:
      {{- include "rediscluster.dataMount" . | nindent 6 }}
      {{- if .Values.init.configured }}
      # Alone: beside it are the password and the private key.
      - name: config
        mountPath: /etc/redis/redis.conf
        subPath: redis.conf
        readOnly: true
      {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Of the Secret, what Redis reads (auth.conf) and what switchover.sh does (password) is mounted. */}}
{{- define "rediscluster.volumes" -}}
- name: config
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ printf "%s-config" .Release.Name | quote }}
          items: [{key: redis.conf, path: redis.conf}, {key: switchover.sh, path: switchover.sh}, {key: start.sh, path: start.sh}{{ if .Values.tls.twoPorts }}, {key: alive.sh, path: alive.sh}{{ end }}]
      {{- if .Values.auth.enabled }}
      - secret:
          name: {{ printf "%s-auth" .Release.Name | quote }}
          items: [{key: auth.conf, path: auth/auth.conf}, {key: password, path: auth/password}]
      {{- end }}
      {{- if .Values.tls.enabled }}
      - secret:
          name: {{ .Values.tls.secretName | quote }}
          items: [{key: tls.crt, path: tls/tls.crt}, {key: tls.key, path: tls/tls.key}]
      - secret:
          name: {{ .Values.tls.caSecretName | quote }}
          items: [{key: ca.crt, path: tls/ca.crt}]
      {{- end }}
{{- if and .Values.metrics.image .Values.tls.enabled .Values.tls.showCertificate (not .Values.tls.twoPorts) }}
# What the exporter shows; beside it in the other volume is the password.
- name: redis-certificate
  secret:
    secretName: {{ .Values.tls.secretName | quote }}
    defaultMode: 0440
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
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
{{- with .Values.overlay.volumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
