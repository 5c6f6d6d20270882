#!/usr/bin/env bash
# Measures what clients of RedisClusters notice: how fast they scale, against the engine's own means on the same cluster; rollouts;
# masters that are killed (through hack/with-cluster.sh, with the operator deployed):
#   hack/bench-redis.sh [--measure scaling,rollouts,failovers] [--keys N] [--engines redis-8.0,valkey-9.1] [--help]
# Progress goes to stderr, tables to stdout, all figures to build/bench-redis.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build
go build -o build/bench ./test/bench
exec build/bench "$@"
