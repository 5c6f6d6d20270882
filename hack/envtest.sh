#!/usr/bin/env bash
# Prints a folder that holds etcd, etcdutl, kube-apiserver and kubectl, for envtest:
#   KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./...
# The binaries are built on first use (about ten minutes with cold caches).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

etcd=$("$here/tool.sh" etcd)
etcdutl=$("$here/tool.sh" etcdutl)
apiserver=$("$here/tool.sh" kubernetes kube-apiserver)

# One folder for each pair of builds, so that a checkout of another version has its own.
cache=$(dirname "$(dirname "$(dirname "$(dirname "$etcd")")")")
assets=$cache/envtest/$(basename "$(dirname "$apiserver")")-$(basename "$(dirname "$etcd")")
mkdir -p "$assets"
for binary in "$etcd" "$etcdutl" "$apiserver" "$(dirname "$apiserver")/kubectl"; do
  ln -sfn "$binary" "$assets/$(basename "$binary")"
done
echo "$assets"
