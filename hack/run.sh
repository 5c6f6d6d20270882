#!/usr/bin/env bash
# Runs bin/manager outside of the cluster (through hack/with-cluster.sh). On the local cluster it runs inside of the cluster's network,
# because it talks to Redis instances by their pod addresses; any other cluster must route those to this machine, or RedisClusters
# wait (--controllers='*,-rediscluster' leaves them out).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
manager=(bin/manager --leader-elect=false --install-crds --webhooks=off --metrics-bind-address=0 --zap-devel "$@")
if [[ ${LOCAL_CLUSTER:-no} == yes ]]; then
  exec hack/cluster.sh exec-net -- "${manager[@]}"
fi
exec "${manager[@]}"
