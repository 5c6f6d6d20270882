#!/usr/bin/env bash
# Installs the CRDs and the operator and waits until it is ready (through hack/with-cluster.sh):
#   hack/deploy.sh IMAGE
# The image is built and loaded where hack/with-cluster.sh says how (LOAD_IMAGE); any other cluster must be able to pull it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=${1:?usage: hack/with-cluster.sh hack/deploy.sh IMAGE}
namespace=middleware-operator-system

content=
if [[ -n ${LOAD_IMAGE:-} ]]; then
  archive=$(hack/image.sh "$image")
  content=$(sha256sum "$archive" | cut -c1-16)
  # shellcheck disable=SC2086 # a command with its arguments
  $LOAD_IMAGE "$archive"
else
  echo "Deploying $image, which this cluster must be able to pull (IMG=... names another; \`make image\` builds it)."
fi

hack/overlay.sh "$image" "$content"
kubectl apply --server-side --force-conflicts -k build/deploy >build/deploy/applied.txt
echo "applied $(wc -l <build/deploy/applied.txt) objects; waiting for the operator"
kubectl wait --for=condition=Established --timeout=60s -f <(kubectl kustomize config/crd) >/dev/null
if ! kubectl -n "$namespace" rollout status deployment/middleware-operator --timeout=180s; then
  kubectl -n "$namespace" get pods -o wide
  kubectl -n "$namespace" describe pods | sed -n '/^Events:/,$p'
  kubectl -n "$namespace" logs deployment/middleware-operator --tail=40 || true
  exit 1
fi
