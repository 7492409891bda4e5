#!/bin/bash
# ping_liveness_local.sh SECONDS: alive is a PONG, and a server that still reads its data.
REDISCLI_AUTH=$(cat "$REDIS_PASSWORD_FILE")
export REDISCLI_AUTH
answer=$(timeout "$1" redis-cli -h 127.0.0.1 -p "$REDIS_PORT" ping 2>&1)
case $answer in
  PONG | *LOADING*) ;;
  *) echo "${answer:-no answer within $1 s}"; exit 1 ;;
esac
