#!/usr/bin/env bash
# Proves on a real Operator Lifecycle Manager what its users do with the operator (make test-olm): installation from a catalog in
# every install mode, all five kinds under the bundle's own rights, an upgrade under load, run bundle, bundle-upgrade, cleanup,
# scorecard, and that an uninstallation leaves nothing. It uses a local cluster of its own (root on Linux), which it takes down
# when all has passed; KEEP=yes leaves it up.
#   hack/test-olm.sh [RUN]
# RUN is a regular expression of test names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=${1:-}
current=${VERSION:?is set by make} previous=0.0.9
name=middleware.hc.cn/operator
export MIDDLEWARE_OPERATOR_CLUSTER=olm
unset KUBECONFIG
step() { printf '\n[%3d s] %s\n' "$SECONDS" "$*"; }

step "Starting a cluster with OLM"
hack/cluster.sh down
hack/cluster.sh up
KUBECONFIG=$(hack/cluster.sh kubeconfig)
hack/cluster.sh olm up
opm=$(hack/cluster.sh images --olm | grep '/opm-')

step "Building images, bundles and catalogs of $previous and $current"
load() { hack/cluster.sh load-image "$@"; }
for version in $previous "$current"; do
  folder=build/olm/$version
  mkdir -p "$folder"
  load "$(hack/image.sh "$name:$version" "$version")"
  hack/bundle.sh "$version" "$name:$version" "$folder"
  go run ./hack/olm pin --bundle="$folder/bundle" --resolver="hack/cluster.sh digest"
  load "$(hack/build-image.sh "$name-bundle:v$version" "$folder/bundle.Dockerfile" "$folder" -- bundle)"
done
make --silent build # bin/manager is that of this version again

# catalog VERSION VERSIONS... builds and loads a catalog of these versions, all of them in all channels.
catalog() {
  local version=$1 folder=build/olm/catalog-$1 v bundles=()
  shift
  mkdir -p "$folder"
  {
    echo "schema: olm.semver"
    for channel in candidate fast stable; do
      echo "$channel:"
      echo "  bundles:"
      for v in "$@"; do echo "    - image: $name-bundle:v$v"; done
    done
  } >"$folder/semver.yaml"
  for v in "$@"; do bundles+=("$name-bundle:v$v=build/olm/$v/bundle"); done
  hack/catalog.sh "$folder/semver.yaml" "$folder" "${bundles[@]}"
  load "$(hack/build-image.sh "$name-catalog:v$version" catalog/catalog.Dockerfile "$folder" "BASE=docker-archive:$opm" -- configs cache)"
}
catalog $previous $previous
catalog "$current" $previous "$current"
load "$(hack/scorecard-image.sh "$name-scorecard:v$current")"

step "Validating the bundle"
hack/bundle-validate.sh "build/olm/$current/bundle"

step "Testing"
registry=$(hack/cluster.sh registry)
export KUBECONFIG \
  OLM_SDK=$(hack/tool.sh operator-sdk) OLM_REGISTRY=$registry OLM_CA=$(hack/cluster.sh registry --ca) \
  OLM_CURRENT=$current OLM_PREVIOUS=$previous OLM_BUNDLE=$PWD/build/olm/$current/bundle \
  OLM_OPM_IMAGE=$registry/quay.io/operator-framework/opm:v1.72.0 \
  OLM_UNTAR_IMAGE=quay.io/operator-framework/scorecard-untar:v1.42.2 OLM_STORAGE_IMAGE=quay.io/operator-framework/scorecard-storage:v1.42.2
go test -count=1 -v -timeout 45m ${run:+-run "$run"} ./test/olm/... | { grep --line-buffered -v '^=== ' || true; }

if [[ ${KEEP:-no} != yes ]]; then hack/cluster.sh down; fi
printf '\n[%3d s] done\n' "$SECONDS"
