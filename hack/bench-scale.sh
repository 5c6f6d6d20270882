#!/usr/bin/env bash
# Builds bin/manager and measures what it costs with many RedisClusters, whose pods and Redis are simulated, on one API server (no cluster
# is needed):
#   hack/bench-scale.sh [--clusters 10,100] [--rest 1m] [--scrapes 50] [--losses 20] [--flood 30s] [--help]
# A small run of six minutes: --clusters 10 --rest 1m --scrapes 10 --losses 5 --flood 10s
# Progress goes to stderr, a table to stdout, all figures to build/bench-scale.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
make build >&2
assets=$(hack/envtest.sh)
mkdir -p build
go build -o build/bench-scale ./test/benchscale
KUBEBUILDER_ASSETS=$assets KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m exec build/bench-scale "$@"
