#!/usr/bin/env bash
# Writes build/deploy, a kustomize overlay of config/default with an image of the operator:
#   hack/overlay.sh IMAGE [CONTENT]
# CONTENT identifies what is in the image; a change of it restarts the operator although the image's name stays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=${1:?usage: hack/overlay.sh IMAGE [CONTENT]}
content=${2:-}

name=${image%:*} tag=${image##*:}
[[ $name != "$image" && $tag != */* ]] || { echo "hack/overlay.sh: $image has no tag; write NAME:TAG" >&2; exit 2; }
mkdir -p build/deploy
{
  cat <<YAML
resources:
  - ../../config/default
images:
  - name: middleware.hc.cn/operator
    newName: $name
    newTag: "$tag"
YAML
  [[ -z $content ]] || cat <<YAML
patches:
  - target: {kind: Deployment, name: middleware-operator}
    patch: |-
      - op: add
        path: /spec/template/metadata/annotations/middleware.hc.cn~1image-content
        value: "$content"
YAML
} >build/deploy/kustomization.yaml
