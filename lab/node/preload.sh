#!/bin/bash
# Runs in a container of the node image: puts the control plane's images into containerd's content store.
# Nothing is unpacked here; each node does that on its own disk.
set -euo pipefail
containerd >/tmp/containerd.log 2>&1 &
daemon=$!
for _ in $(seq 100); do
  if ctr version >/dev/null 2>&1; then break; fi
  sleep 0.2
done
ctr --namespace k8s.io images import --no-unpack /images.tar || { tail -n 20 /tmp/containerd.log; exit 1; }
kill "$daemon"
wait "$daemon" || true
rm -f /tmp/containerd.log
