#!/usr/bin/env bash
# Builds the operator's image from the Dockerfile and prints the path of its archive.
#   hack/image.sh TAG [VERSION]
# TAG is the image's full name, such as localhost/middleware-operator:dev. BASE sets the
# Dockerfile's base image; without it the image holds nothing but the operator, which
# needs no network. What it is built with: hack/build-image.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=${1:?usage: hack/image.sh TAG [VERSION]}
version=${2:-${VERSION:-${tag##*:}}}

echo "image: building bin/manager and bin/backup" >&2
GOOS=linux make --silent build ${2:+VERSION="$2"} >&2
exec hack/build-image.sh "$tag" Dockerfile . "BASE=${BASE:-scratch}" "VERSION=$version" -- .dockerignore bin/manager bin/backup helm-charts watches.yaml
