#!/bin/bash
# Started without the chart: a server on /data that takes its password from REDIS_PASSWORD or REDIS_PASSWORD_FILE through
# a file, never through its arguments. As entry point it just runs what it is given.
set -eu
[ $# -eq 0 ] || [ "$1" = "$0" ] || [ "$1" = /opt/bitnami/scripts/redis/run.sh ] || exec "$@"
umask 077
conf=/opt/bitnami/redis/tmp/redis.conf
if [ -n "${REDIS_PASSWORD_FILE:-}" ]; then REDIS_PASSWORD=$(cat "$REDIS_PASSWORD_FILE"); fi
{
  echo "port ${REDIS_PORT:-6379}"
  echo "dir /data"
  echo "bind * -::*"
  [ -z "${REDIS_PASSWORD:-}" ] || echo "requirepass \"$REDIS_PASSWORD\""
  [ -n "${REDIS_PASSWORD:-}" ] || [ "${ALLOW_EMPTY_PASSWORD:-no}" = yes ] || { echo "a password is needed: set REDIS_PASSWORD_FILE" >&2; exit 1; }
} > "$conf"
unset REDIS_PASSWORD
exec redis-server "$conf"
