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

{{/* Labels that select the Pods of one part: {root, part}. */}}
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

{{/* Metadata of the Pods of a part: {root, part, values, config, secrets, configMaps}. */}}
{{- define "gatehouse.podMetadata" -}}
labels:
  {{- include "gatehouse.labels" . | nindent 2 }}
annotations:
  checksum/config: {{ toJson .config | sha256sum }}
  checksum/secrets: {{ include "gatehouse.versions" . | sha256sum }}
  {{- if .root.Values.monitoring.annotations.enabled }}
  prometheus.io/scrape: "true"
  prometheus.io/port: "9080"
  prometheus.io/path: /metrics
  prometheus.io/scheme: {{ include "gatehouse.manageScheme" . | lower }}
  {{- end }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/*
What changes when a Secret or ConfigMap that exists before the release has changed: its version in the cluster, and
never a hash of its content. Without a cluster (helm template) there are no versions.
*/}}
{{- define "gatehouse.versions" -}}
{{- $root := .root -}}
{{- $versions := list $root.Values.secretsVersion -}}
{{- range $kind, $names := dict "Secret" .secrets "ConfigMap" .configMaps -}}
{{- range $name := compact $names | uniq | sortAlpha -}}
{{- $found := lookup "v1" $kind $root.Release.Namespace $name -}}
{{- $versions = append $versions (printf "%s/%s=%s" $kind $name (dig "metadata" "resourceVersion" "" $found)) -}}
{{- end -}}
{{- end -}}
{{- join " " $versions -}}
{{- end }}

{{/* The first lines of the spec of a Pod: {root, values}. */}}
{{- define "gatehouse.podCommon" -}}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- end }}

{{/* Fails if settings have a secret in them, which would be readable in a ConfigMap: {value, at}. */}}
{{- define "gatehouse.refuseSecrets" -}}
{{- $secrets := list "password" "token" "signature_key" "admin_key" "key_passphrase" "registration_token" "client_secret" "encryption_key" "encryption_keys" "access_key" "secret_key" "session_token" "keys" -}}
{{- if kindIs "map" .value -}}
{{- range $name, $value := .value -}}
{{- $at := printf "%s.%s" $.at $name -}}
{{- if and (has $name $secrets) $value -}}
{{- fail (printf "%s would be readable in a ConfigMap: put it into a Secret, and give it as a variable (extraEnv) or as a file (extraVolumes and %s_file)" $at $name) -}}
{{- end -}}
{{- include "gatehouse.refuseSecrets" (dict "value" $value "at" $at) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "gatehouse.refuseSecrets" (dict "value" $value "at" (printf "%s[%d]" $.at $index)) -}}
{{- end -}}
{{- end -}}
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
{{- if ne .part "migrate" }}
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
{{- end }}

{{/* HTTPS if the settings or the variables of a part give its management port a certificate: {config, values}. */}}
{{- define "gatehouse.manageScheme" -}}
{{- $isSecure := dig "manage" "tls" "cert_file" "" .config -}}
{{- range .values.extraEnv -}}
{{- if eq .name "GATEHOUSE_MANAGE_TLS_CERT_FILE" -}}{{- $isSecure = "yes" -}}{{- end -}}
{{- end -}}
{{- if $isSecure -}}HTTPS{{- else -}}HTTP{{- end -}}
{{- end }}

{{/* The scheme of managers, for templates that do not have their settings. */}}
{{- define "gatehouse.managersScheme" -}}
{{- $config := dict "manage" (dict "tls" (dict "cert_file" .Values.manage.certificateSecret)) -}}
{{- $config = mergeOverwrite $config (deepCopy .Values.manage.config) -}}
{{- include "gatehouse.manageScheme" (dict "config" $config "values" .Values.manage) -}}
{{- end }}

{{/* {config, values} */}}
{{- define "gatehouse.probes" -}}
{{- $scheme := include "gatehouse.manageScheme" . -}}
startupProbe:
  httpGet: {path: /health/live, port: manage, scheme: {{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /health/live, port: manage, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /health/ready, port: manage, scheme: {{ $scheme }}}
  periodSeconds: 2
  timeoutSeconds: 2
{{- end }}

{{- define "gatehouse.podDisruptionBudget" -}}
{{- if .values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "gatehouse.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  # A Pod that is not ready does not hold up the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "gatehouse.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* Whole seconds of a duration of the settings, rounded up: 500ms, 30s, 2m. */}}
{{- define "gatehouse.seconds" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9]+" $text | int -}}
{{- $unit := regexFind "[a-z]+$" $text -}}
{{- if eq $unit "ms" -}}{{ div (add $number 999) 1000 }}
{{- else -}}{{ mul $number (get (dict "m" 60 "h" 3600 "d" 86400) $unit | default 1) }}{{- end -}}
{{- end }}

{{/* The port in a URL: {url, port}, where port is the default. */}}
{{- define "gatehouse.port" -}}
{{- regexFind ":[0-9]+(/|[?]|$)" .url | regexFind "[0-9]+" | default (toString .port) -}}
{{- end }}

{{/* Settings of the bus for managers or proxies: {root, user}. */}}
{{- define "gatehouse.busConfig" -}}
{{- with .root.Values.bus -}}
url: {{ .url | quote }}
name: {{ .name }}
{{- if .existingSecret }}
{{- if eq .login "credentials" }}
credentials_file: /etc/gatehouse-bus/nats.creds
{{- else }}
user: {{ $.user }}
password_file: /etc/gatehouse-bus/password
{{- end }}
{{- end }}
{{- if include "gatehouse.busCertificate" $ }}
certificate_file: /etc/gatehouse-bus-tls/tls.crt
key_file: /etc/gatehouse-bus-tls/tls.key
{{- end }}
{{- if .caConfigMap }}
ca_file: /etc/gatehouse-bus-ca/ca.crt
{{- end }}
{{- if eq $.user "manage" }}
replicas: {{ .replicas }}
{{- else }}
first_snapshot: {{ .firstSnapshot }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gatehouse.busCertificate" -}}
{{- get .root.Values.bus (printf "%sCertificateSecret" .user) -}}
{{- end }}

{{- define "gatehouse.busVolumes" -}}
{{- $isByFile := eq .root.Values.bus.login "credentials" }}
{{- /* Only the group of the Pod can read them: a Pod of another chart may have no such group. */}}
{{- $mode := ternary 292 288 (default false .isForeignPod) }}
{{- with .root.Values.bus.existingSecret }}
- name: bus
  secret:
    secretName: {{ . }}
    defaultMode: {{ $mode }}
    items:
      {{- if $isByFile }}
      - {key: {{ $.user }}.creds, path: nats.creds}
      {{- else }}
      - {key: {{ $.user }}-password, path: password}
      {{- end }}
{{- end }}
{{- with include "gatehouse.busCertificate" . }}
- name: bus-tls
  secret: {secretName: {{ . }}, defaultMode: {{ $mode }}}
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
{{- if include "gatehouse.busCertificate" . }}
- {name: bus-tls, mountPath: /etc/gatehouse-bus-tls, readOnly: true}
{{- end }}
{{- if .root.Values.bus.caConfigMap }}
- {name: bus-ca, mountPath: /etc/gatehouse-bus-ca, readOnly: true}
{{- end }}
{{- end }}

{{/*
A sidecar for a Pod of another chart, for `initContainers`. It takes
{root, upstream, configMap, certificateSecret, listenPort, resources}; the Pod needs the volumes of
"gatehouse.sidecarVolumes" with the same arguments.
*/}}
{{- define "gatehouse.sidecar" -}}
{{- $bus := dict "root" .root "user" "proxy" -}}
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
    {{- if .root.Values.bus.url }}
    {{- range $name, $value := include "gatehouse.busConfig" $bus | fromYaml }}
    - {name: GATEHOUSE_BUS_{{ upper $name }}, value: {{ $value | quote }}}
    {{- end }}
    {{- end }}
  ports:
    - {name: gatehouse, containerPort: {{ default 8443 .listenPort }}}
    - {name: manage, containerPort: 9080}
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
  resources:
    {{- toYaml (default .root.Values.gateway.resources .resources) | nindent 4 }}
  securityContext:
    {{- $securityContext := omit .root.Values.podSecurityContext "fsGroup" "fsGroupChangePolicy" "supplementalGroups" "sysctls" }}
    {{- merge $securityContext .root.Values.containerSecurityContext | toYaml | nindent 4 }}
  volumeMounts:
    - {name: gatehouse-data, mountPath: /var/lib/gatehouse}
    {{- if .configMap }}
    - {name: gatehouse-config, mountPath: /etc/gatehouse, readOnly: true}
    {{- end }}
    {{- if .certificateSecret }}
    - {name: gatehouse-tls, mountPath: /etc/gatehouse-tls, readOnly: true}
    {{- end }}
    {{- if .root.Values.bus.url }}
    {{- include "gatehouse.busMounts" $bus | nindent 4 }}
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
{{ include "gatehouse.busVolumes" (dict "root" .root "user" "proxy" "isForeignPod" true) }}
{{- end }}
{{- end }}
