#!/bin/sh
# The chart calls `docker-entrypoint.sh bao server -config=…`; a bare sub-command works as well.
set -eu
[ "${1:-}" = bao ] || set -- bao "$@"
exec "$@"
