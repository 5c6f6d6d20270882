#!/usr/bin/env bash
# What a change should pass before it is committed (make check), in a minute with warm caches: Go formats, lint, unit tests.
#   hack/check.sh [AREA]
# AREA leaves one room: hack/packages.sh areas. It needs no root, on any system.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
area=${1:-}
if [[ -n $area ]]; then
  packages=$(hack/packages.sh area "$area")
else
  packages=$(hack/packages.sh unit)
fi
# They take minutes when what they go through has changed: in `make test`, and here when they are named.
case $area in
simulation | model) ;;
*) packages=$(grep -vE '/test/(simulation|model)$' <<<"$packages") && echo "check: without the simulation and the model check" ;;
esac

echo "check: formats"
unformatted=$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [[ ! -e $f ]] || echo "$f"; done | xargs gofmt -l)
[[ -z $unformatted ]] || { echo "check: not in gofmt's form (gofmt -w): $unformatted" >&2; exit 1; }

echo "check: unit tests ($SECONDS s)"
# shellcheck disable=SC2086 # the packages are a list
go test $packages

echo "check: lint ($SECONDS s)"
linter=$(hack/tool.sh golangci-lint)
# shellcheck disable=SC2046 # the folders are a list
"$linter" run $([[ -z $area ]] || sed 's|^middleware.hc.cn/operator|.|' <<<"$packages")
echo "check: all is well ($SECONDS s); left to do before a commit: make update, make test"
