{{- define "gitlab.version" -}}
{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* (list $ APP): what selects the pods of GitLab's own parts. */}}
{{- define "gitlab.selector" -}}
app: {{ index . 1 }}
release: {{ (first .).Release.Name }}
{{- end }}

{{/* (list $ APP) */}}
{{- define "gitlab.labels" -}}
{{- $ := first . -}}
{{ include "gitlab.selector" . }}
chart: {{ printf "%s-%s" (index . 1) (include "gitlab.version" $) }}
heritage: {{ $.Release.Service }}
{{- end }}

{{/* (list $ APP): name, namespace and labels of the object that is called after its part. */}}
{{- define "gitlab.metadata" -}}
{{- $ := first . -}}
name: {{ printf "%s-%s" $.Release.Name (index . 1) }}
namespace: {{ $.Release.Namespace }}
labels: {{- include "gitlab.labels" . | nindent 2 }}
{{- end }}

{{/* (list $ NAME): what selects the pods of a chart within the real chart, as that writes it. */}}
{{- define "gitlab.part.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (first .).Release.Name }}
{{- end }}

{{/* (list $ NAME) */}}
{{- define "gitlab.part.labels" -}}
{{- $ := first . -}}
{{ include "gitlab.part.selector" . }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 1) (include "gitlab.version" $) }}
{{- end }}

{{/* (list $ PIN): what VERSIONS.json pins under this name. */}}
{{- define "gitlab.pin" -}}
{{- $pins := (first .).Files.Get "files/images.json" | default "{}" | fromJson -}}
{{- $pin := dig (index . 1) dict $pins -}}
{{- $_ := required (printf "files/images.json has no image %s: was the chart packed by the lab?" (index . 1)) $pin.repository -}}
{{ toJson $pin }}
{{- end }}

{{/* (list $ PIN) */}}
{{- define "gitlab.image" -}}
{{- with include "gitlab.pin" . | fromJson -}}
{{ .repository }}:{{ .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{/* GitLab's version: that of its web service. */}}
{{- define "gitlab.appVersion" -}}
{{ include "gitlab.pin" (list . "gitlab-webservice") | fromJson | dig "tag" "" | trimPrefix "v" }}
{{- end }}

{{- define "gitlab.host" -}}
{{ printf "%s.%s" (index . 1) (first .).Values.global.hosts.domain }}
{{- end }}

{{/* Where GitLab's parts find the web service. */}}
{{- define "gitlab.workhorse" -}}
http://{{ .Release.Name }}-webservice-default.{{ .Release.Namespace }}.svc:8181
{{- end }}

{{- define "gitlab.container.security" -}}
{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true}
{{- end }}

{{/* The user's id, which is its group's as well. */}}
{{- define "gitlab.pod.security" -}}
{runAsUser: {{ . }}, runAsGroup: {{ . }}, fsGroup: {{ . }}, seccompProfile: {type: RuntimeDefault}}
{{- end }}

{{/* (list $ APP): rather not beside another of its kind. */}}
{{- define "gitlab.spread" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "gitlab.selector" . | nindent 12 }}
{{- end }}

{{/* Annotations by which the chart's Prometheus finds a pod's metrics. */}}
{{- define "gitlab.scraped" -}}
gitlab.com/prometheus_scrape: "true"
gitlab.com/prometheus_port: {{ . | quote }}
gitlab.com/prometheus_path: /metrics
{{- end }}

{{/* (list $ RESOURCES): makes the bundle of trusted roots. */}}
{{- define "gitlab.certificates" -}}
- name: certificates
  image: {{ include "gitlab.image" (list (first .) "gitlab-certificates") }}
  securityContext: {{ include "gitlab.container.security" . }}
  volumeMounts:
    - {name: etc-ssl-certs, mountPath: /etc/ssl/certs}
    - {name: etc-pki-ca-trust, mountPath: /etc/pki/ca-trust/extracted/pem}
  resources: {{- toYaml (index . 1) | nindent 4 }}
{{- end }}

{{- define "gitlab.certificates.mounts" -}}
- {name: etc-ssl-certs, mountPath: /etc/ssl/certs, readOnly: true}
- {name: etc-pki-ca-trust, mountPath: /etc/pki/ca-trust/extracted/pem, readOnly: true}
{{- end }}

{{- define "gitlab.certificates.volumes" -}}
- {name: etc-ssl-certs, emptyDir: {medium: Memory}}
- {name: etc-pki-ca-trust, emptyDir: {medium: Memory}}
{{- end }}

{{/* (list $ RESOURCES): the two that come before a part of GitLab: trusted roots, and its Secrets where the part reads them. */}}
{{- define "gitlab.init" -}}
{{ include "gitlab.certificates" . }}
- name: configure
  image: {{ include "gitlab.image" (list (first .) "gitlab-base") }}
  command: [sh, /config/configure]
  securityContext: {{ include "gitlab.container.security" . }}
  volumeMounts:
    - {name: config, mountPath: /config, readOnly: true}
    - {name: init-secrets, mountPath: /init-config, readOnly: true}
    - {name: secrets, mountPath: /init-secrets}
  resources: {{- toYaml (index . 1) | nindent 4 }}
{{- end }}

{{/* (list $ CONFIGMAP SECRETS): the volumes of such a part. */}}
{{- define "gitlab.volumes" -}}
- name: config
  configMap: {name: {{ index . 1 }}}
- name: init-secrets
  projected:
    defaultMode: 0440
    sources: {{- include "gitlab.sources" (list (first .) (index . 2)) | nindent 6 }}
- name: secrets
  emptyDir: {medium: Memory}
{{ include "gitlab.certificates.volumes" . }}
{{- end }}
