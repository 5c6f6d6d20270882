#!/usr/bin/env bash
# Prints the servers that `make test-engine` tests, as NAME=COMMAND words: those inside of the local cluster's images, unpacked
# into the cache. They bring their own C library, so they run on any Linux of this architecture and need no root.
# ENGINES in the environment replaces them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ -n ${ENGINES:-} ]]; then echo "$ENGINES"; exit; fi

cache=${MIDDLEWARE_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/middleware-operator}/engines

# unpack ARCHIVE ROOT unpacks all layers of an image.
unpack() {
  local archive=$1 root=$2 layer
  rm -rf "$root.new"
  mkdir -p "$root.new"
  tar -xOf "$archive" manifest.json | grep -o '[0-9a-f]*\.tar\.gz' | while read -r layer; do
    tar -xOf "$archive" "$layer" | tar -xzf - -C "$root.new"
  done
  mv "$root.new" "$root"
}

# wrap ROOT SERVER writes a command that starts the server with the libraries beside it.
wrap() {
  local root=$1 server loader libraries
  server=$(find "$root/usr" -name "$2" -print -quit)
  loader=$(find "$root"/usr/lib* "$root"/lib* -name 'ld-linux-*.so.*' -print -quit)
  libraries=$(find "$root/usr/lib" -name 'libc.so.6' -printf '%h' -quit)
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$libraries" "$server" >"$root/start"
  chmod +x "$root/start"
}

engines=()
for archive in $(hack/cluster.sh images | grep -E '/(redis|valkey)-[0-9.]+-[0-9a-f]+\.tar$'); do
  name=$(basename "$archive" .tar) server=${archive##*/}
  server=${server%%-*}-server
  root=$cache/$name
  if [[ ! -x $root/start ]]; then
    unpack "$archive" "$root"
    wrap "$root" "$server"
  fi
  engines+=("${name%-*}=$root/start")
done
[[ ${#engines[@]} -gt 0 ]] || { echo "hack/engines.sh: hack/cluster.sh images made no engine" >&2; exit 1; }
echo "${engines[*]}"
