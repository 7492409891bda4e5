{{/*
The keys that something here follows; below an empty one anything goes. blueprint renders this chart without its schema, because the
real chart's cannot be read offline, so an unknown key is refused here.
*/}}
{{- define "gitlab.known" -}}
installCertmanager:
global:
  edition:
  hosts: {domain: , https: }
  gatewayApi: {enabled: , installEnvoy: , configureCertmanager: }
  ingress: {enabled: , configureCertmanager: , tls: {secretName: }}
  initialRootPassword: {secret: , key: }
  psql: {host: , port: , database: , username: , password: {secret: , key: }}
  redis: {host: , port: , auth: {enabled: , secret: , key: }}
  minio: {enabled: }
  registry: {bucket: }
  appConfig:
    object_store: {enabled: , proxy_download: , connection: {secret: , key: }}
    lfs: {enabled: , bucket: }
    artifacts: {enabled: , bucket: }
    uploads: {enabled: , bucket: }
    packages: {enabled: , bucket: }
    terraformState: {enabled: , bucket: }
    ciSecureFiles: {enabled: , bucket: }
    dependencyProxy: {enabled: , bucket: }
    externalDiffs: {enabled: }
    agentPlanContent: {enabled: }
    backups: {bucket: , tmpBucket: }
  pages: {enabled: , objectStore: {bucket: }}
  openbao: {enabled: , psql: {host: , port: , database: , username: , password: {secret: , key: }}}
gitlab-runner: {install: }
postgresql: {install: }
redis: {install: }
gitlab:
  webservice: {minReplicas: , maxReplicas: , workerProcesses: , resources: , workhorse: {resources: }, init: {resources: }}
  sidekiq: {minReplicas: , maxReplicas: , concurrency: , resources: , init: {resources: }}
  gitlab-shell: {minReplicas: , maxReplicas: , resources: , init: {resources: }}
  kas: {minReplicas: , maxReplicas: , resources: , init: {resources: }}
  gitlab-exporter: {resources: , init: {resources: }}
  toolbox: {backups: {objectStorage: {config: {secret: , key: }}}, resources: , init: {resources: }}
  migrations: {resources: , init: {resources: }}
  gitaly: {securityContext: , persistence: {storageClass: , size: }, resources: , init: {resources: }}
registry: {storage: {secret: , key: }, hpa: {minReplicas: , maxReplicas: }, resources: , init: {resources: }}
openbao: {install: , gatewayRoute: {gatewayName: }, autoscaling: {minReplicas: , maxReplicas: }, resources: }
prometheus: {server: {persistentVolume: {storageClass: , size: }, resources: }}
envoy-gateway:
gatewayApiResources: {envoy: {proxySpec: }}
{{- end }}

{{/* Values that this stand-in cannot follow otherwise than so. */}}
{{- define "gitlab.fixed" -}}
installCertmanager: false
global.edition: ce
global.hosts.https: true
global.gatewayApi.enabled: true
global.gatewayApi.installEnvoy: true
global.gatewayApi.configureCertmanager: false
global.ingress.enabled: false
global.ingress.configureCertmanager: false
global.redis.auth.enabled: true
global.minio.enabled: false
global.appConfig.object_store.enabled: true
global.pages.enabled: false
global.openbao.enabled: true
gitlab-runner.install: false
postgresql.install: false
redis.install: false
openbao.install: true
{{- end }}

{{/* (list VALUES KNOWN PATH): every key of VALUES that KNOWN has not, a line each. */}}
{{- define "gitlab.unknown" -}}
{{- $known := index . 1 -}}
{{- $path := index . 2 -}}
{{- range $key, $value := first . -}}
{{- $place := ternary $key (printf "%s.%s" $path $key) (empty $path) -}}
{{- if not (hasKey $known $key) }}
{{ $place }} is a key that this stand-in does not follow
{{- else if and (kindIs "map" $value) (kindIs "map" (get $known $key)) -}}
{{- include "gitlab.unknown" (list $value (get $known $key) $place) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Fails where a value would be ignored, or where what packing places is missing. */}}
{{- define "gitlab.check" -}}
{{- $known := include "gitlab.known" . | fromYaml -}}
{{- $wrong := include "gitlab.unknown" (list .Values.AsMap $known "") -}}
{{- range $place, $wanted := include "gitlab.fixed" . | fromYaml -}}
{{- $found := $.Values -}}
{{- range splitList "." $place -}}
{{- $found = get (default dict $found) . -}}
{{- end -}}
{{- if ne (toString $found) (toString $wanted) -}}
{{- $wrong = printf "%s\n%s can only be %v here, it is %v" $wrong $place $wanted $found -}}
{{- end -}}
{{- end -}}
{{- with trim $wrong -}}
{{- fail (printf "the stand-in for gitlab refuses these values:\n%s" .) -}}
{{- end -}}
{{- if not (hasKey .Subcharts "envoy-gateway") -}}
{{- fail "charts/gateway-helm is not in this chart: was it packed by the lab?" -}}
{{- end -}}
{{- end }}
