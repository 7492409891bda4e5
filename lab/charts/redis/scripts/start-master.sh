#!/bin/bash
# Configuration as mounted, then port and password. The password goes from its file into one that nobody else reads: never on an argument list.
set -eu
umask 077
mounted=/opt/bitnami/redis/mounted-etc
conf=/opt/bitnami/redis/etc/server.conf
# Redis reads double quotes with \ and " escaped.
password=$(sed 's/[\\"]/\\&/g' "$REDIS_PASSWORD_FILE")
{
  cat "$mounted/redis.conf"
  echo
  cat "$mounted/master.conf"
  printf '\nport %s\nrequirepass "%s"\n' "$REDIS_PORT" "$password"
} > "$conf"
exec redis-server "$conf"
