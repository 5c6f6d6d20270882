#!/usr/bin/env bash
# Makes the file-based catalog, checks it, and fills the cache that its image serves from:
#   hack/catalog.sh [TEMPLATE [FOLDER]] [IMAGE=DIR...]
# TEMPLATE is catalog/semver.yaml or one like it, FOLDER gets configs/ and cache/ (default: build/catalog). Bundles are read from
# their registry; IMAGE=DIR takes one from a folder, which needs no registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
template=${1:-catalog/semver.yaml} folder=${2:-build/catalog}
shift $(($# < 2 ? $# : 2))
opm=$(hack/tool.sh opm)
local=()
for bundle in "$@"; do local+=(--bundle "$bundle"); done

rm -rf "$folder/configs" "$folder/cache"
go run ./hack/olm catalog --template="$template" --icon=config/manifests/icon.svg --opm="$opm" "${local[@]}" \
  --output="$folder/configs/middleware-operator/catalog.yaml"
"$opm" validate "$folder/configs"
"$opm" serve "$folder/configs" --cache-dir="$folder/cache" --cache-only --termination-log= 2>"$folder/serve.log" || { cat "$folder/serve.log" >&2; exit 1; }
rm "$folder/serve.log"
echo "catalog: $folder/configs is valid: $(grep -c '^schema: olm.bundle$' "$folder/configs/middleware-operator/catalog.yaml") bundle(s)" >&2
