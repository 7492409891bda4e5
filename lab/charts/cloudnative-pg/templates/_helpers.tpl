{{- define "cnpg.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cnpg.labels" -}}
{{ include "cnpg.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "cnpg.name" -}}
{{ default (printf "%s-%s" .Release.Name .Chart.Name) .Values.fullnameOverride }}
{{- end }}

{{/* The operator's release manifest, as upstream made it. */}}
{{- define "cnpg.manifest" -}}
{{ required "files/cnpg-release.yaml is not in this chart: was it packed by the lab?" (.Files.Get "files/cnpg-release.yaml") }}
{{- end }}

{{/* (list $ KIND NAME): that object of the release manifest, as it stands there. */}}
{{- define "cnpg.object" -}}
{{- $head := printf "(?m)^kind: %s$" (index . 1) -}}
{{- $name := printf "(?m)^  name: %s$" (index . 2) -}}
{{- $found := "" -}}
{{- range splitList "\n---\n" (include "cnpg.manifest" (first .)) -}}
{{- if and (regexMatch $head .) (regexMatch $name .) -}}
{{- $found = . -}}
{{- end -}}
{{- end -}}
{{ required (printf "files/cnpg-release.yaml has no %s %s" (index . 1) (index . 2)) $found }}
{{- end }}
