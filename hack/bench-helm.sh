#!/usr/bin/env bash
# Measures chart kinds against the real helm-operator on one API server (no cluster is needed):
#   hack/bench-helm.sh [--crs 200,1000] [--rounds 2] [--help]
# A small run of less than two minutes: --crs 50 --rounds 1 --idle 0 --drifts 0 --crashes 0
# Progress goes to stderr, tables to stdout, all figures to build/bench-helm.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
assets=$(hack/envtest.sh)
helm_operator=$(hack/tool.sh helm-operator)
mkdir -p build
CGO_ENABLED=0 go build -trimpath -o build/bench-helm-manager ./cmd/manager
go build -o build/bench-helm ./test/benchhelm
export KUBEBUILDER_ASSETS=$assets
exec build/bench-helm --manager build/bench-helm-manager --helm-operator "$helm_operator" "$@"
