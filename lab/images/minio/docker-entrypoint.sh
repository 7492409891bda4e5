#!/bin/bash
# MinIO's command line over versitygw: minio server DIR [-S CERTS] [--address A] [--console-address A]
set -eu
fatal() { echo "FATAL $*" >&2; exit 1; }

[ "${1:-}" != minio ] || shift
[ "${1:-}" = server ] || { echo "only 'minio server' is answered here, got: $*" >&2; exit 64; }
shift

folder='' address=:9000 console='' certs=''
while [ $# -gt 0 ]; do
  case $1 in
    -S|--certs-dir) certs=$2; shift 2 ;;
    --address) address=$2; shift 2 ;;
    --address=*) address=${1#*=}; shift ;;
    --console-address) console=$2; shift 2 ;;
    --console-address=*) console=${1#*=}; shift ;;
    -*) echo "unknown option $1" >&2; exit 64 ;;
    *) [ -z "$folder" ] || { echo "one folder only, got $folder and $1" >&2; exit 64; }; folder=$1; shift ;;
  esac
done
[ -n "$folder" ] || fatal "no data folder given"

# The chart hands the root Secret over twice: in the environment, and as files where MinIO looks for them.
user=${MINIO_ROOT_USER:-$(cat "${MINIO_ROOT_USER_FILE:-/tmp/credentials/rootUser}")}
password=${MINIO_ROOT_PASSWORD:-$(cat "${MINIO_ROOT_PASSWORD_FILE:-/tmp/credentials/rootPassword}")}
# MinIO's own limits: it refuses shorter ones, so a Secret that works here works there.
[ ${#user} -ge 3 ] && [ ${#password} -ge 8 ] || fatal "invalid credentials: the user needs 3 characters, the password 8"
[ -w "$folder" ] || fatal "unable to write to $folder as $(id -u):$(id -g): $(ls -ld "$folder")"

export ROOT_ACCESS_KEY="$user" ROOT_SECRET_KEY="$password" VGW_REGION="${MINIO_REGION:-us-east-1}"
[ -z "${MINIO_DOMAIN:-}" ] || export VGW_VIRTUAL_DOMAIN="$MINIO_DOMAIN"
set -- --port "$address" --health '/minio/health/*' --keep-alive
[ -z "$console" ] || set -- "$@" --webui "$console"
if [ -n "$certs" ] && [ -s "$certs/public.crt" ]; then
  set -- "$@" --cert "$certs/public.crt" --key "$certs/private.key"
fi
exec /usr/bin/versitygw "$@" posix "$folder"
