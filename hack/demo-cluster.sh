#!/usr/bin/env bash
# Runs a command against the cluster of the demonstration (make demo): the one of KUBECONFIG; else one in Docker, where that works and
# kind or k3d is installed; else the local one. The command finds what hack/with-cluster.sh gives it, and CLUSTER_DOWN, which ends the
# cluster if it was made here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=middleware-operator config=$PWD/build/demo/kubeconfig

# in_docker TOOL GET... -- CREATE... keeps the kubeconfig of a cluster that TOOL makes, unless it is there already.
in_docker() {
  local tool=$1 get=()
  shift
  while [[ $1 != -- ]]; do get+=("$1") && shift; done
  shift
  mkdir -p "$(dirname "$config")"
  "$tool" "${get[@]}" >"$config.new" 2>/dev/null || {
    echo "demo: making the cluster $name with $tool" >&2
    "$tool" "$@" >&2
    "$tool" "${get[@]}" >"$config.new"
  }
  mv "$config.new" "$config"
  export KUBECONFIG=$config
}

if [[ -n ${KUBECONFIG:-} ]]; then
  echo "demo: on the cluster of KUBECONFIG" >&2
elif docker info >/dev/null 2>&1 && command -v kind >/dev/null; then
  in_docker kind get kubeconfig --name "$name" -- create cluster --name "$name" --kubeconfig "$config.kind" --wait 3m
  export LOAD_IMAGE="kind load image-archive --name $name" CLUSTER_DOWN="kind delete cluster --name $name"
elif docker info >/dev/null 2>&1 && command -v k3d >/dev/null; then
  in_docker k3d kubeconfig get "$name" -- cluster create "$name" --wait --timeout 3m --kubeconfig-update-default=false
  export LOAD_IMAGE="k3d image import --cluster $name" CLUSTER_DOWN="k3d cluster delete $name"
else
  echo "demo: on the local cluster" >&2
  export CLUSTER_DOWN="make cluster-down"
fi
exec hack/with-cluster.sh "$@"
