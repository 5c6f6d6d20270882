#!/usr/bin/env bash
# Writes the folder of a submission to https://github.com/k8s-operatorhub/community-operators:
#   hack/operatorhub.sh VERSION BUNDLE BUNDLE_IMAGE
# BUNDLE is the folder of the bundle, pinned by digests for a real release. REVIEWERS is the GitHub accounts, comma separated, whose
# pull requests are merged without waiting.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:?usage: hack/operatorhub.sh VERSION BUNDLE BUNDLE_IMAGE} bundle=${2:?BUNDLE is missing} image=${3:?BUNDLE_IMAGE is missing}
opm=$(hack/tool.sh opm)
folder=dist/operatorhub/operators/middleware-operator

rm -rf dist/operatorhub
mkdir -p "$folder/$version"
cp -r "$bundle"/{manifests,metadata,tests} "$folder/$version/"
cp catalog/operatorhub/ci.yaml "$folder/ci.yaml"
go run ./hack/olm submission --opm="$opm" --icon=config/manifests/icon.svg --bundle="$image=$bundle" --version="$version" --output="$folder"
if [[ -n ${REVIEWERS:-} ]]; then
  { echo "reviewers:"; tr ',' '\n' <<<"$REVIEWERS" | sed 's/^/  - /'; } >>"$folder/ci.yaml"
else
  echo "operatorhub: ci.yaml names no reviewers: add REVIEWERS=account,..." >&2
fi
grep -q 'image: .*@sha256:' "$folder/$version/manifests/"*.clusterserviceversion.yaml ||
  echo "operatorhub: the bundle names images by tag; submit one that is pinned (make bundle-pin)" >&2
echo "wrote $folder: copy it into a fork; catalog-templates/ only if this is the first version there"
