#!/usr/bin/env bash
# The local cluster: builds its command (test/cluster) if needed and runs it.
#   hack/cluster.sh up | down | status | --help
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export MIDDLEWARE_OPERATOR_PROJECT=${here%/hack}
command=$("$here/tool.sh" test/cluster)
exec "$command" "$@"
