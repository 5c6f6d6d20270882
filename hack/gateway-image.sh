#!/usr/bin/env bash
# Builds the Gateway of the end-to-end tests (hack/tools/gateway) and loads its image into the local cluster. Another cluster gets none:
# the tests that need it are left out there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${LOCAL_CLUSTER:-no} == yes ]] || exit 0
mkdir -p build/gateway
cp "$(hack/tool.sh gateway)" build/gateway/gateway
hack/cluster.sh load-image "$(hack/build-image.sh middleware.hc.cn/gateway:3.7.13 test/gatewayapi/Dockerfile build/gateway -- gateway)"
