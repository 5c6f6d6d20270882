{{/*
Every value goes through quote, int or toJson, so that text stays data.

The stable and the canary version differ in a track. Each define below takes
(dict "root" $ "track" "stable" or "canary").
*/}}

{{- define "app.name" -}}
{{- if eq .track "canary" }}{{ .root.Release.Name }}-canary{{ else }}{{ .root.Release.Name }}{{ end -}}
{{- end -}}

{{- define "app.selector" -}}
app.kubernetes.io/name: app
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
appcontroller.middleware.hc.cn/track: {{ .track }}
{{- end -}}

{{- define "app.metadata" -}}
name: {{ include "app.name" . | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "app.selector" . | nindent 2 }}
{{- end -}}

{{/* Canary pods are as many as weight percent of the pods, rounded up, and at least one. */}}
{{- define "app.canaryReplicas" -}}
{{- $all := .Values.replicas | int -}}
{{- with .Values.autoscaling }}{{ $all = .minReplicas | default 1 | int }}{{ end -}}
{{- max 1 (div (add (mul $all (.Values.canary.weight | default 0 | int)) 99) 100) -}}
{{- end -}}

{{- define "app.deployment" -}}
{{- $values := .root.Values -}}
{{- $own := dict "matchLabels" (include "app.selector" . | fromYaml) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "app.metadata" . | nindent 2 }}
spec:
  {{- if eq .track "canary" }}
  replicas: {{ include "app.canaryReplicas" .root }}
  {{- else if not $values.autoscaling }}
  replicas: {{ $values.replicas | int }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "app.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "app.selector" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- range $field := list "nodeSelector" "tolerations" "imagePullSecrets" "priorityClassName" "affinity" }}
      {{- with get $values $field }}
      {{ $field }}: {{ toJson . }}
      {{- end }}
      {{- end }}
      {{- with $values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range . }}
        {{- if kindIs "map" .labelSelector }}
        - {{ toJson . }}
        {{- else }}
        - {{ toJson (merge (dict "labelSelector" $own) .) }}
        {{- end }}
        {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        {{- if not ($values.global | default dict).platformUserIDs }}
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        {{- end }}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: app
          {{- if eq .track "canary" }}
          image: {{ $values.canary.image | quote }}
          {{- else }}
          image: {{ $values.image | quote }}
          {{- end }}
          imagePullPolicy: IfNotPresent
          {{- with $values.command }}
          command: {{ toJson . }}
          {{- end }}
          {{- with $values.args }}
          args: {{ toJson . }}
          {{- end }}
          {{- with $values.env }}
          env: {{ toJson . }}
          {{- end }}
          {{- with $values.envFrom }}
          envFrom: {{ toJson . }}
          {{- end }}
          {{- with $values.resources }}
          resources: {{ toJson . }}
          {{- end }}
          {{- with $values.ports }}
          ports:
            {{- range . }}
            - name: {{ .name | quote }}
              containerPort: {{ .containerPort | int }}
              protocol: {{ .protocol | default "TCP" | quote }}
            {{- end }}
          {{- end }}
          {{- include "app.probes" .root | nindent 10 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- range $values.volumeMounts }}
            - {{ toJson . }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- range $values.volumes }}
        - {{ toJson . }}
        {{- end }}
{{- end -}}

{{/*
With an HTTP path: started within five minutes, then taken out of the traffic when
it fails, and restarted when it fails for a minute. Without: the first TCP port must
accept connections.
*/}}
{{- define "app.probes" -}}
{{- $port := .Values.probes.port -}}
{{- if and (not $port) .Values.ports }}{{ $port = (first .Values.ports).name }}{{ end -}}
{{- $tcp := true -}}
{{- range .Values.ports -}}
{{- if and (eq .name ($port | toString)) (ne (.protocol | default "TCP") "TCP") }}{{ $tcp = false }}{{ end -}}
{{- end -}}
{{- if kindIs "string" $port }}{{ $port = $port | quote }}{{ else }}{{ $port = $port | int }}{{ end -}}
{{- if .Values.probes.path -}}
{{- $get := printf "httpGet:\n    path: %s\n    port: %v" (.Values.probes.path | quote) $port -}}
startupProbe:
  {{ $get }}
  periodSeconds: 2
  failureThreshold: 150
readinessProbe:
  {{ $get }}
  periodSeconds: 5
livenessProbe:
  {{ $get }}
  periodSeconds: 10
  failureThreshold: 6
{{- else if and .Values.ports $tcp -}}
readinessProbe:
  tcpSocket:
    port: {{ $port }}
  periodSeconds: 5
{{- end -}}
{{- end -}}

{{- define "app.service" -}}
{{- $values := .root.Values -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "app.metadata" . | nindent 2 }}
  {{- with $values.service.annotations }}
  annotations: {{ toJson . }}
  {{- end }}
spec:
  {{- if eq .track "canary" }}
  type: ClusterIP
  {{- else }}
  type: {{ $values.service.type | quote }}
  {{- end }}
  selector:
    {{- include "app.selector" . | nindent 4 }}
  ports:
    {{- range $values.ports }}
    - name: {{ .name | quote }}
      port: {{ .servicePort | default .containerPort | int }}
      targetPort: {{ .name | quote }}
      protocol: {{ .protocol | default "TCP" | quote }}
    {{- end }}
{{- end -}}

{{/* What leads to the Service from outside: nothing, an Ingress, or an HTTPRoute. */}}
{{- define "app.entrance" -}}
{{- if not .Values.ingress.enabled -}}
{{- else if and .Values.ingress.gateway (.Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/HTTPRoute") -}}
HTTPRoute
{{- else -}}
Ingress
{{- end -}}
{{- end -}}

{{/* Requests with the canary's header first, then all by weight. */}}
{{- define "app.httproute" -}}
{{- $values := .root.Values -}}
{{- $weight := ($values.canary | default dict).weight | default 0 | int -}}
{{- $stable := dict "root" .root "track" "stable" "weight" 100 -}}
{{- $canary := dict "root" .root "track" "canary" "weight" 100 -}}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "app.metadata" . | nindent 2 }}
spec:
  parentRefs:
    - name: {{ $values.ingress.gateway.name | quote }}
      {{- with $values.ingress.gateway.namespace }}
      namespace: {{ . | quote }}
      {{- end }}
      {{- with $values.ingress.gateway.sectionName }}
      sectionName: {{ . | quote }}
      {{- end }}
  hostnames: [{{ $values.ingress.host | quote }}]
  rules:
    {{- with $values.canary }}
    {{- if .header }}
    - matches:
        - {{- include "app.path" $values.ingress | nindent 10 }}
          headers:
            - name: {{ .header | quote }}
              value: {{ .headerValue | default "always" | quote }}
      backendRefs:
        - {{- include "app.backend" $canary | nindent 10 }}
    {{- if not .headerValue }}
    - matches:
        - {{- include "app.path" $values.ingress | nindent 10 }}
          headers:
            - name: {{ .header | quote }}
              value: never
      backendRefs:
        - {{- include "app.backend" $stable | nindent 10 }}
    {{- end }}
    {{- end }}
    {{- end }}
    - matches:
        - {{- include "app.path" $values.ingress | nindent 10 }}
      backendRefs:
        - {{- include "app.backend" (set $stable "weight" (sub 100 $weight)) | nindent 10 }}
        {{- if $values.canary }}
        - {{- include "app.backend" (set $canary "weight" $weight) | nindent 10 }}
        {{- end }}
{{- end -}}

{{- define "app.path" -}}
path:
  type: {{ if eq .pathType "Exact" }}Exact{{ else }}PathPrefix{{ end }}
  value: {{ .path | quote }}
{{- end -}}

{{- define "app.backend" -}}
{{- $port := first .root.Values.ports -}}
name: {{ include "app.name" . | quote }}
port: {{ $port.servicePort | default $port.containerPort | int }}
weight: {{ .weight }}
{{- end -}}

{{- define "app.ingress" -}}
{{- $ingress := .root.Values.ingress -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "app.metadata" . | nindent 2 }}
  {{- with .annotations }}
  annotations: {{ toJson . }}
  {{- end }}
spec:
  {{- with $ingress.className }}
  ingressClassName: {{ . | quote }}
  {{- end }}
  {{- with $ingress.tlsSecretName }}
  tls:
    - hosts: [{{ $ingress.host | quote }}]
      secretName: {{ . | quote }}
  {{- end }}
  rules:
    - host: {{ $ingress.host | quote }}
      http:
        paths:
          - path: {{ $ingress.path | quote }}
            pathType: {{ $ingress.pathType | quote }}
            backend:
              service:
                name: {{ include "app.name" . | quote }}
                port:
                  name: {{ (first .root.Values.ports).name | quote }}
{{- end -}}
