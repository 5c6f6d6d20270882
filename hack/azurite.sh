#!/usr/bin/env bash
# Prints the path of azurite-blob, Microsoft's emulator of Azure Blob Storage, as hack/tools/azurite pins it; installs it first if the cache
# lacks it. It is a program for Node.js 20 or newer, which is not installed here: Debian 12 has an older one. Progress goes to stderr.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || major=0
if [[ ${major:-0} -lt 20 ]] || ! command -v npm >/dev/null; then
  echo "azurite: needs Node.js 20 or newer, with npm; install it" >&2
  exit 1
fi
cache=${MIDDLEWARE_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/middleware-operator}/azurite
dir=$cache/$(cat hack/tools/azurite/package-lock.json | sha256sum | cut -c1-16)
if [[ ! -d $dir ]]; then
  mkdir -p "$cache"
  building=$(mktemp -d "$cache/.building-XXXXXX")
  trap 'rm -rf "$building"' EXIT
  cp hack/tools/azurite/package*.json "$building"
  echo "azurite: installing" >&2
  (cd "$building" && npm ci --ignore-scripts --no-audit --no-fund >&2)
  mv -T "$building" "$dir" 2>/dev/null || [[ -d $dir ]] # somebody else may have been as quick
fi
echo "$dir/node_modules/.bin/azurite-blob"
