#!/usr/bin/env bash
# Runs a command with kubectl on the PATH: the machine's own, else the one that is built with the local cluster.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if ! command -v kubectl >/dev/null; then
  kubectl=$("$root/hack/tool.sh" kubernetes kubectl)
  PATH=$(dirname "$kubectl"):$PATH
fi
cd "$root"
exec "$@"
