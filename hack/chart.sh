#!/usr/bin/env bash
# Writes the operator's Helm chart from config/, always in the same way:
#   hack/chart.sh VERSION [FLAG...]
# VERSION is that of the operator. FLAGs are those of `release chart`: without any it writes what is made of deploy/middleware-operator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:?usage: hack/chart.sh VERSION [FLAG...]}
shift
builds=build/chart
rm -rf "$builds" && mkdir -p "$builds"
hack/with-kubectl.sh kubectl kustomize config/default >"$builds/default.yaml"
for overlay in cert-manager host-path prometheus; do
  hack/with-kubectl.sh kubectl kustomize "config/overlays/$overlay" >"$builds/$overlay.yaml"
done
go run ./hack/release chart --builds="$builds" --version="$version" "$@"
