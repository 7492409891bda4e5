{{- define "redis.selector" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}

{{- define "redis.labels" -}}
{{ include "redis.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* A digest beats a tag. */}}
{{- define "redis.image" -}}
{{- with .Values.image -}}
{{ .registry }}/{{ required "image.repository comes from VERSIONS.json" .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ required "image.tag comes from VERSIONS.json" .tag }}{{ end }}
{{- end }}
{{- end }}
