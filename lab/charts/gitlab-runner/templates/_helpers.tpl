{{- define "runner.labels" -}}
app: {{ .Release.Name }}
release: {{ .Release.Name }}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
heritage: {{ .Release.Service }}
{{- end }}

{{/* The values' image; without one the pin `gitlab-runner`: the real chart has it as its own default. */}}
{{- define "runner.image" -}}
{{- if .Values.image.tag -}}
{{ .Values.image.registry }}/{{ .Values.image.image }}:{{ .Values.image.tag }}
{{- else -}}
{{- $pin := dig "gitlab-runner" dict (.Files.Get "files/images.json" | fromJson) -}}
{{ required "files/images.json has no image gitlab-runner: was the chart packed by the lab?" $pin.repository }}:{{ $pin.tag }}
{{- with $pin.digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}
