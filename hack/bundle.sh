#!/usr/bin/env bash
# Writes the OLM bundle and its Dockerfile from api/ (markers) and config/manifests, always in the same way:
#   hack/bundle.sh [VERSION [IMAGE [FOLDER]]]
# VERSION is that of the operator, IMAGE its image, FOLDER gets bundle/ and bundle.Dockerfile (default: the checkout itself).
# What people read about the operator is edited in config/manifests/bases, and nowhere else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:-${VERSION:?usage: hack/bundle.sh VERSION [IMAGE [FOLDER]]}}
image=${2:-middleware.hc.cn/operator:$version}
folder=${3:-.}
base=config/manifests/bases/middleware-operator.clusterserviceversion.yaml
sdk=$(hack/tool.sh operator-sdk)

# Descriptors and owned kinds in the base, from the markers.
"$sdk" generate kustomize manifests --quiet --interactive=false --apis-dir=api

# operator-sdk writes into the folder that it runs in, which must have the PROJECT.
work=build/bundle-work
rm -rf "$work" && mkdir -p "$work" "$folder"
cp PROJECT "$work"
hack/with-kubectl.sh kubectl kustomize config/manifests |
  sed -e "s|middleware.hc.cn/operator:dev$|$image|" -e "s|middleware.hc.cn/operator-scorecard:dev$|middleware.hc.cn/operator-scorecard:v$version|" |
  (cd "$work" && "$sdk" generate bundle --quiet --overwrite --version="$version" --channels=stable,fast,candidate --default-channel=stable)

# OLM makes a Service of its own for the webhooks; operator-sdk needed ours to find out which Deployment serves them.
rm "$work/bundle/manifests/middleware-operator-webhook_v1_service.yaml"
go run ./hack/olm finish --bundle="$work/bundle" --base="$base" --icon=config/manifests/icon.svg

rm -rf "$folder/bundle"
mv "$work/bundle" "$work/bundle.Dockerfile" "$folder"
rm -rf "$work"
