#!/usr/bin/env bash
# Writes pkg/generated: clientset, listers and informers of the kinds in api/ whose types have the marker +genclient.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=$(go list -m)
out=pkg/generated
mapfile -t versions < <(grep -rlx --include='*.go' '// +genclient' api | xargs -n1 dirname | sort -u)
flags=(--go-header-file=hack/boilerplate.go.txt)
dir=$(dirname "$(hack/tool.sh code-generator client-gen)")

rm -rf "$out" # the generators remove nothing
"$dir/client-gen" "${flags[@]}" --clientset-name=versioned --input-base="$module" "${versions[@]/#/--input=}" \
  --output-dir="$out/clientset" --output-pkg="$module/$out/clientset"
"$dir/lister-gen" "${flags[@]}" --output-dir="$out/listers" --output-pkg="$module/$out/listers" "${versions[@]/#/./}"
"$dir/informer-gen" "${flags[@]}" --output-dir="$out/informers" --output-pkg="$module/$out/informers" \
  --versioned-clientset-package="$module/$out/clientset/versioned" --listers-package="$module/$out/listers" "${versions[@]/#/./}"
