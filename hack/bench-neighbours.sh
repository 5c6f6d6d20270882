#!/usr/bin/env bash
# Measures what neighbours that mean harm cost an honest cluster: its masters are killed, first alone, then beside clusters
# of another namespace whose servers hang or answer with harm (local cluster only; through hack/with-cluster.sh, with the operator
# deployed). Flags are those of hack/bench-redis.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=middleware.hc.cn/hostile:7.4.0
mkdir -p build/hostile
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o build/hostile/sh ./test/hostile
hack/cluster.sh load-image "$(hack/build-image.sh "$image" test/hostile/Dockerfile build/hostile -- sh)"
exec hack/bench-redis.sh --measure neighbours --engines redis-8.0 --keys 20000 --kills 20 --out build/bench-neighbours.json "$@"
