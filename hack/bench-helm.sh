#!/usr/bin/env bash
# Builds bin/manager and measures it against the real helm-operator, with one chart on one API server (no cluster is needed):
#   hack/bench-helm.sh [--crs 200,1000] [--rounds 2] [--help]
# A small run of less than two minutes: --crs 50 --rounds 1 --idle 10s --drifts 0 --crashes 0
# Progress goes to stderr, tables to stdout, all figures to build/bench-helm.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
make build >&2
assets=$(hack/envtest.sh)
helm_operator=$(hack/tool.sh helm-operator)
mkdir -p build
go build -o build/bench-helm ./test/benchhelm
export KUBEBUILDER_ASSETS=$assets
exec build/bench-helm --helm-operator "$helm_operator" "$@"
