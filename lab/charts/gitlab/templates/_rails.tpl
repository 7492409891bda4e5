{{/* What every part with Rails in it reads: ERB files, rendered in the pod. */}}
{{- define "gitlab.rails" -}}
installation_type: gitlab-helm-chart
database.yml.erb: |
  production:
    main:
      adapter: postgresql
      encoding: unicode
      {{- with .Values.global.psql }}
      host: {{ .host | quote }}
      port: {{ .port }}
      database: {{ .database }}
      username: {{ .username }}
      {{- end }}
      password: <%= File.read("/etc/gitlab/postgres/psql-password-main").strip.to_json %>
      prepared_statements: false
      database_tasks: true
resque.yml.erb: |
  production:
    url: {{ include "gitlab.redis.url" . }}
cable.yml.erb: |
  production:
    adapter: redis
    url: {{ include "gitlab.redis.url" . }}
gitlab.yml.erb: |
  {{- include "gitlab.settings" . | nindent 2 }}
{{- end }}

{{/* With the password, for ERB. */}}
{{- define "gitlab.redis.url" -}}
{{- with .Values.global.redis -}}
<%= "redis://:#{ERB::Util.url_encode(File.read("/etc/gitlab/redis/redis-password").strip)}@{{ .host }}:{{ .port }}/0".to_json %>
{{- end }}
{{- end }}

{{/* gitlab.yml: where everything is. */}}
{{- define "gitlab.settings" -}}
{{- $app := .Values.global.appConfig -}}
{{- $stores := dict "artifacts" $app.artifacts "lfs" $app.lfs "uploads" $app.uploads "packages" $app.packages
    "terraform_state" $app.terraformState "ci_secure_files" $app.ciSecureFiles "dependency_proxy" $app.dependencyProxy -}}
production:
  gitlab:
    host: {{ include "gitlab.host" (list . "gitlab") }}
    https: true
    time_zone: UTC
  object_store:
    enabled: true
    proxy_download: {{ $app.object_store.proxy_download }}
    connection: <%= YAML.safe_load_file("/etc/gitlab/objectstorage/object_store").to_json %>
    objects:
      pages: {bucket: {{ .Values.global.pages.objectStore.bucket }}}
      {{- range $name, $store := $stores }}
      {{ $name }}: {bucket: {{ $store.bucket }}}
      {{- end }}
  {{- range $name, $store := $stores }}
  {{ $name }}: {enabled: {{ $store.enabled }}}
  {{- end }}
  external_diffs: {enabled: {{ $app.externalDiffs.enabled }}}
  agent_plan_content: {enabled: {{ $app.agentPlanContent.enabled }}}
  pages: {enabled: false}
  gitaly:
    token: <%= File.read("/etc/gitlab/gitaly/gitaly_token").strip.to_json %>
  repositories:
    storages:
      default:
        path: /var/opt/gitlab/repo
        gitaly_address: tcp://{{ .Release.Name }}-gitaly-0.{{ .Release.Name }}-gitaly.{{ .Release.Namespace }}.svc:8075
  gitlab_shell: {ssh_port: 22, secret_file: /etc/gitlab/shell/.gitlab_shell_secret}
  gitlab_kas:
    enabled: true
    secret_file: /etc/gitlab/kas/.gitlab_kas_secret
    external_url: wss://{{ include "gitlab.host" (list . "kas") }}
    internal_url: grpc://{{ .Release.Name }}-kas.{{ .Release.Namespace }}.svc:8153
  registry:
    enabled: true
    host: {{ include "gitlab.host" (list . "registry") }}
    api_url: http://{{ .Release.Name }}-registry.{{ .Release.Namespace }}.svc:5000
    key: /etc/gitlab/registry/gitlab-registry.key
    issuer: gitlab-issuer
  workhorse: {secret_file: /etc/gitlab/gitlab-workhorse/secret}
  openbao:
    url: https://{{ include "gitlab.host" (list . "openbao") }}
    authentication_token_secret_file_path: /etc/gitlab/openbao/.gitlab_openbao_authentication_token_secret
{{- end }}

{{/* Where the ERB files are and where they are rendered to. */}}
{{- define "gitlab.rails.env" -}}
- {name: CONFIG_TEMPLATE_DIRECTORY, value: /var/opt/gitlab/templates}
- {name: CONFIG_DIRECTORY, value: /srv/gitlab/config}
- {name: TZ, value: UTC}
{{- end }}

{{- define "gitlab.rails.mounts" -}}
- {name: config, mountPath: /var/opt/gitlab/templates, readOnly: true}
- {name: secrets, mountPath: /etc/gitlab, readOnly: true}
- {name: secrets, mountPath: /srv/gitlab/config/secrets.yml, subPath: rails-secrets/secrets.yml, readOnly: true}
{{ include "gitlab.certificates.mounts" . }}
{{- end }}

{{/* (list $ PIN RESOURCES): waits for the schema and for all that the settings name. */}}
{{- define "gitlab.dependencies" -}}
- name: dependencies
  image: {{ include "gitlab.image" (list (first .) (index . 1)) }}
  args: [/scripts/wait-for-deps]
  securityContext: {{ include "gitlab.container.security" . }}
  env: {{- include "gitlab.rails.env" . | nindent 4 }}
  volumeMounts: {{- include "gitlab.rails.mounts" . | nindent 4 }}
  resources: {{- toYaml (index . 2) | nindent 4 }}
{{- end }}
