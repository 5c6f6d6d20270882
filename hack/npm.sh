#!/usr/bin/env bash
# Prints the folder that what hack/tools/NAME/package-lock.json pins is installed in; installs it first if the cache lacks it.
#
#   hack/npm.sh NAME
#
# They are programs for Node.js 20 or newer, which is not installed here: Debian 12 has an older one. Progress goes to stderr.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:?usage: hack/npm.sh NAME}
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || major=0
if [[ ${major:-0} -lt 20 ]] || ! command -v npm >/dev/null; then
  echo "$name: needs Node.js 20 or newer, with npm; install it" >&2
  exit 1
fi
cache=${MIDDLEWARE_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/middleware-operator}/$name
dir=$cache/$(sha256sum <"hack/tools/$name/package-lock.json" | cut -c1-16)
if [[ ! -d $dir ]]; then
  mkdir -p "$cache"
  building=$(mktemp -d "$cache/.building-XXXXXX")
  trap 'rm -rf "$building"' EXIT
  cp "hack/tools/$name"/package*.json "$building"
  echo "$name: installing" >&2
  (cd "$building" && npm ci --ignore-scripts --no-audit --no-fund >&2)
  mv -T "$building" "$dir" 2>/dev/null || [[ -d $dir ]] # somebody else may have been as quick
fi
echo "$dir"
