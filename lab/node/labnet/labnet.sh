#!/bin/bash
# The lab's pod network. On its own node it writes the CNI configuration from the node's podCIDR; for every other
# node it keeps a route to that node's pods. It watches the nodes, so routes follow a node whose address changed.
set -euo pipefail

conflist=/etc/cni/net.d/10-labnet.conflist

log() { echo "$(date -u +%FT%TZ) $*"; }

api() {
  local account=/var/run/secrets/kubernetes.io/serviceaccount
  # The control plane by its name: the service address needs kube-proxy, which may come up later than this.
  kubectl --server="https://${CONTROL_PLANE_ENDPOINT:-$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT}" \
    --certificate-authority="$account/ca.crt" --token="$(cat "$account/token")" "$@"
}

write_conflist() {
  local cidr=$1 text
  text=$(cat <<JSON
{
  "cniVersion": "0.3.1",
  "name": "labnet",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "mtu": 1500,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": "$cidr"}]]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
JSON
)
  if [ -f "$conflist" ] && [ "$(cat "$conflist")" = "$text" ]; then return; fi
  # Written beside and moved: containerd never reads half a file.
  printf '%s\n' "$text" > "$conflist.tmp"
  mv "$conflist.tmp" "$conflist"
  log "wrote $conflist for $cidr"
}

# Pods keep their address towards pods and nodes; towards the rest of the world they take the node's.
masquerade() {
  local rule=(-s "$POD_SUBNET" ! -d "$POD_SUBNET" -m addrtype ! --dst-type LOCAL -j MASQUERADE)
  iptables -w -t nat -C POSTROUTING "${rule[@]}" 2>/dev/null || iptables -w -t nat -A POSTROUTING "${rule[@]}"
}

follow() {
  local event name address cidr
  # One line an event: type, name, internal address, podCIDR. A watch starts with the nodes that exist.
  api get nodes --watch --output-watch-events --output \
    jsonpath='{.type}{" "}{.object.metadata.name}{" "}{.object.status.addresses[?(@.type=="InternalIP")].address}{" "}{.object.spec.podCIDR}{"\n"}' |
  while read -r event name address cidr; do
    if [ -z "${cidr:-}" ]; then continue; fi
    if [ "$name" = "$NODE_NAME" ]; then
      write_conflist "$cidr"
    elif [ "$event" = DELETED ]; then
      ip route del "$cidr" 2>/dev/null && log "removed the route to $cidr of $name" || true
    elif [ -z "$(ip route show "$cidr" via "$address")" ]; then
      ip route replace "$cidr" via "$address" && log "routed $cidr of $name via $address"
    fi
  done
}

trap 'exit 0' TERM INT
while true; do
  masquerade
  # A watch ends when the API server restarts, or after some minutes by itself.
  follow || true
  sleep 1 &
  wait $!
done
