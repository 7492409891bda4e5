{{- define "minio.selector" -}}
app: {{ .Chart.Name }}
release: {{ .Release.Name }}
{{- end }}

{{- define "minio.labels" -}}
{{ include "minio.selector" . }}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
heritage: {{ .Release.Service }}
{{- end }}
