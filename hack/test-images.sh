#!/usr/bin/env bash
# Builds what the end-to-end tests run beside the operator, the Gateway (hack/tools/gateway) and an object store (hack/tools/minio), and
# loads their images into the local cluster. Another cluster gets none: the tests that need them are left out there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${LOCAL_CLUSTER:-no} == yes ]] || exit 0
for image in gateway:3.7.13 minio:2026.2.12; do
  name=${image%:*}
  mkdir -p "build/$name"
  cp "$(hack/tool.sh "$name")" "build/$name/$name"
  hack/cluster.sh load-image "$(hack/build-image.sh "middleware.hc.cn/$image" "test/images/$name.Dockerfile" "build/$name" -- "$name")"
done
