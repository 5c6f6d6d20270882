#!/usr/bin/env bash
# Prints the path of azurite-blob, Microsoft's emulator of Azure Blob Storage, as hack/tools/azurite pins it (hack/npm.sh).
set -euo pipefail
dir=$("$(dirname "${BASH_SOURCE[0]}")/npm.sh" azurite)
echo "$dir/node_modules/.bin/azurite-blob"
