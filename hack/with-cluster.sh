#!/usr/bin/env bash
# Runs a command against a cluster: the one of KUBECONFIG, else the local one, which is brought up first.
# The command finds kubectl on its PATH, KUBECONFIG set, LOCAL_CLUSTER=yes or no, and in LOAD_IMAGE the command that puts the archive
# of an image into the cluster's nodes; it is empty where images are pulled.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export LOCAL_CLUSTER=no
if [[ -z ${KUBECONFIG:-} ]]; then
  "$root/hack/cluster.sh" up >&2
  KUBECONFIG=$("$root/hack/cluster.sh" kubeconfig)
  export KUBECONFIG LOCAL_CLUSTER=yes LOAD_IMAGE="hack/cluster.sh load-image"
fi
exec "$root/hack/with-kubectl.sh" "$@"
