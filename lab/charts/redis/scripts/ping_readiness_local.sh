#!/bin/bash
# ping_readiness_local.sh SECONDS: ready is a PONG to the mounted password.
REDISCLI_AUTH=$(cat "$REDIS_PASSWORD_FILE")
export REDISCLI_AUTH
answer=$(timeout "$1" redis-cli -h 127.0.0.1 -p "$REDIS_PORT" ping 2>&1)
[ "$answer" = PONG ] || { echo "${answer:-no answer within $1 s}"; exit 1; }
