#!/usr/bin/env bash
# Builds the image of the operator's own scorecard tests (test/scorecard) and prints the path of its archive:
#   hack/scorecard-image.sh TAG
# BASE sets the Dockerfile's base image; without it the image holds nothing but the binary, which needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=${1:?usage: hack/scorecard-image.sh TAG}

CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o build/scorecard/scorecard ./test/scorecard
exec hack/build-image.sh "$tag" test/scorecard/Dockerfile build/scorecard "BASE=${BASE:-scratch}" "VERSION=${tag##*:}" -- scorecard
