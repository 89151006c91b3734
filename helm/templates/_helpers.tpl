{{- define "gatehouse.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "gatehouse.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}{{ .Values.image.repository }}:{{ $tag }}{{- end -}}
{{- end }}

{{- define "gatehouse.serviceAccount" -}}
{{- default (include "gatehouse.name" .) .Values.serviceAccount.name -}}
{{- end }}

{{/* Of one part: {root, part}. */}}
{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gatehouse.metadata" -}}
name: {{ include "gatehouse.name" .root }}-{{ .part }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "gatehouse.labels" . | nindent 2 }}
{{- end }}

{{- define "gatehouse.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gatehouse.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where Pods of a part are placed: {root, part, values}. */}}
{{- define "gatehouse.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "gatehouse.selector" $ | nindent 8 }}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "gatehouse.probes" -}}
startupProbe:
  httpGet: {path: /health/live, port: manage}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /health/live, port: manage}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /health/ready, port: manage}
  periodSeconds: 2
  timeoutSeconds: 2
{{- end }}

{{/* Settings of the bus for one of its users: {root, user}. */}}
{{- define "gatehouse.busConfig" -}}
{{- with .root.Values.bus }}
url: {{ .url | quote }}
name: {{ .name }}
{{- if .existingSecret }}
user: {{ $.user }}
password_file: /etc/gatehouse-bus/password
{{- end }}
{{- if .caConfigMap }}
ca_file: /etc/gatehouse-bus-ca/ca.crt
{{- end }}
{{- if eq $.user "manage" }}
replicas: {{ .replicas }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gatehouse.busVolumes" -}}
{{- with .root.Values.bus.existingSecret }}
- name: bus
  secret:
    secretName: {{ . }}
    defaultMode: 288
    items: [{key: {{ $.user }}-password, path: password}]
{{- end }}
{{- with .root.Values.bus.caConfigMap }}
- name: bus-ca
  configMap: {name: {{ . }}}
{{- end }}
{{- end }}

{{- define "gatehouse.busMounts" -}}
{{- if .root.Values.bus.existingSecret }}
- {name: bus, mountPath: /etc/gatehouse-bus, readOnly: true}
{{- end }}
{{- if .root.Values.bus.caConfigMap }}
- {name: bus-ca, mountPath: /etc/gatehouse-bus-ca, readOnly: true}
{{- end }}
{{- end }}

{{/*
A sidecar for a Pod of another chart, for `initContainers`. It takes
{root, upstream, configMap, certificateSecret, listenPort, resources}; the Pod needs the volumes of
"gatehouse.sidecarVolumes" with the same.
*/}}
{{- define "gatehouse.sidecar" -}}
- name: gatehouse
  image: {{ include "gatehouse.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  restartPolicy: Always
  args: [proxy{{ if .configMap }}, --config, /etc/gatehouse/gatehouse.yaml{{ end }}]
  env:
    - {name: GATEHOUSE_PROXY_UPSTREAM, value: {{ required "the sidecar needs an upstream" .upstream | quote }}}
    - {name: GATEHOUSE_PROXY_LISTEN, value: "0.0.0.0:{{ default 8443 .listenPort }}"}
    - {name: GATEHOUSE_MANAGE_LISTEN, value: "0.0.0.0:9080"}
    - {name: GATEHOUSE_DATA_DIR, value: /var/lib/gatehouse}
    {{- if .certificateSecret }}
    - {name: GATEHOUSE_PROXY_TLS_CERT_FILE, value: /etc/gatehouse-tls/tls.crt}
    - {name: GATEHOUSE_PROXY_TLS_KEY_FILE, value: /etc/gatehouse-tls/tls.key}
    {{- end }}
    {{- with .root.Values.bus }}
    {{- if .url }}
    - {name: GATEHOUSE_BUS_URL, value: {{ .url | quote }}}
    - {name: GATEHOUSE_BUS_NAME, value: {{ .name }}}
    {{- if .existingSecret }}
    - {name: GATEHOUSE_BUS_USER, value: proxy}
    - {name: GATEHOUSE_BUS_PASSWORD_FILE, value: /etc/gatehouse-bus/password}
    {{- end }}
    {{- if .caConfigMap }}
    - {name: GATEHOUSE_BUS_CA_FILE, value: /etc/gatehouse-bus-ca/ca.crt}
    {{- end }}
    {{- end }}
    {{- end }}
  ports:
    - {name: gatehouse, containerPort: {{ default 8443 .listenPort }}}
    - {name: manage, containerPort: 9080}
  startupProbe:
    httpGet: {path: /health/live, port: manage}
    periodSeconds: 1
    failureThreshold: 60
  readinessProbe:
    httpGet: {path: /health/ready, port: manage}
    periodSeconds: 2
  resources:
    {{- toYaml (default .root.Values.gateway.resources .resources) | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
    {{- include "gatehouse.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: gatehouse-data, mountPath: /var/lib/gatehouse}
    {{- if .configMap }}
    - {name: gatehouse-config, mountPath: /etc/gatehouse, readOnly: true}
    {{- end }}
    {{- if .certificateSecret }}
    - {name: gatehouse-tls, mountPath: /etc/gatehouse-tls, readOnly: true}
    {{- end }}
    {{- if .root.Values.bus.url }}
    {{- include "gatehouse.busMounts" (dict "root" .root) | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "gatehouse.sidecarVolumes" -}}
- name: gatehouse-data
  emptyDir: {}
{{- with .configMap }}
- name: gatehouse-config
  configMap: {name: {{ . }}}
{{- end }}
{{- with .certificateSecret }}
- name: gatehouse-tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- if .root.Values.bus.url }}
{{ include "gatehouse.busVolumes" (dict "root" .root "user" "proxy") }}
{{- end }}
{{- end }}
