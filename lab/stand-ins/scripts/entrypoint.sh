#!/bin/bash
# Entry point of every stand-in. As in GitLab's images the chart's templates are rendered before whatever the pod runs;
# without a command, or with options only, the role of the image is served.
set -e
if [ $# -eq 0 ] || [[ "$1" == -* ]]; then exec tini -- /scripts/serve "$@"; fi
if [ -d "${CONFIG_TEMPLATE_DIRECTORY:-/nonexistent}" ]; then ruby /opt/stand-ins/lib/render_all.rb; fi
exec tini -g -- "$@"
