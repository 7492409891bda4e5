{{/* Secrets that parts of GitLab mount: name, key, and the file that it becomes. */}}
{{- define "gitlab.secrets" -}}
{{- $name := .Release.Name -}}
{{- with .Values.global -}}
rails: [{{ $name }}-rails-secret, secrets.yml, rails-secrets/secrets.yml]
shell: [{{ $name }}-gitlab-shell-secret, secret, shell/.gitlab_shell_secret]
gitaly: [{{ $name }}-gitaly-secret, token, gitaly/gitaly_token]
workhorse: [{{ $name }}-gitlab-workhorse-secret, shared_secret, gitlab-workhorse/secret]
registry-key: [{{ $name }}-registry-secret, registry-auth.key, registry/gitlab-registry.key]
registry-certificate: [{{ $name }}-registry-secret, registry-auth.crt, certificate.crt]
registry-http: [{{ $name }}-registry-httpsecret, secret, httpSecret]
registry-notification: [{{ $name }}-registry-notification, secret, registry/notificationSecret]
kas: [{{ $name }}-gitlab-kas-secret, kas_shared_secret, kas/.gitlab_kas_secret]
kas-private-api: [{{ $name }}-kas-private-api, kas_private_api_secret, kas/.gitlab_kas_private_api_secret]
kas-websocket-token: [{{ $name }}-kas-websocket-token, kas_websocket_token_secret, kas/.gitlab_kas_websocket_token_secret]
openbao-audit: [{{ $name }}-openbao-audit-secret, token, openbao/.gitlab_openbao_authentication_token_secret]
runner: [{{ $name }}-gitlab-runner-secret, runner-registration-token, migrations/gitlab_shared_runners_registration_token]
root-password: [{{ quote .initialRootPassword.secret }}, {{ quote .initialRootPassword.key }}, migrations/initial_root_password]
redis: [{{ quote .redis.auth.secret }}, {{ quote .redis.auth.key }}, redis/redis-password]
psql: [{{ quote .psql.password.secret }}, {{ quote .psql.password.key }}, postgres/psql-password-main]
object-store: [{{ quote .appConfig.object_store.connection.secret }}, {{ quote .appConfig.object_store.connection.key }}, objectstorage/object_store]
{{- end }}
registry-storage: [{{ quote .Values.registry.storage.secret }}, {{ quote .Values.registry.storage.key }}, storage/config]
{{- with .Values.gitlab.toolbox.backups.objectStorage.config }}
s3cfg: [{{ quote .secret }}, {{ quote .key }}, .s3cfg]
{{- end }}
{{- end }}

{{/* (list $ "NAME NAME …"): them as sources of a projected volume. */}}
{{- define "gitlab.sources" -}}
{{- $all := include "gitlab.secrets" (first .) | fromYaml -}}
{{- range splitList " " (index . 1) }}
{{- $secret := get $all . }}
- secret:
    name: {{ first $secret | quote }}
    items: [{key: {{ index $secret 1 | quote }}, path: {{ index $secret 2 }}}]
{{- end }}
{{- end }}

{{/* The script of the container `configure`: what is mounted in /init-config, as plain files in /init-secrets. */}}
{{- define "gitlab.configure" -}}
set -eu
umask 077
for entry in /init-config/* /init-config/.[!.]*; do
  if [ -e "$entry" ]; then cp -RL "$entry" /init-secrets/; fi
done
{{- end }}
