#!/usr/bin/env bash
# Prints packages of this module:
#   hack/packages.sh unit          those whose tests need nothing
#   hack/packages.sh areas         the names that an area can have: the parts of the paths of those packages
#   hack/packages.sh area NAME     the packages with NAME in their path, and those that import one of them, as far as their tests need
#                                  nothing: `app` is its API, its admission, and the charts, webhooks and bundle that know of it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
module=middleware.hc.cn/operator

# What needs an API server, a cluster or real servers; what is generated.
unit() { go list "$@" ./... | grep -vE "^$module/(pkg/generated|examples|test/(apiserver|browser|e2e|engine|olm))(/| |\$)"; }
areas() { unit | cut -d/ -f3- | tr / '\n' | grep -vE '^v[0-9]+(alpha|beta)?[0-9]*$' | LC_ALL=C sort -u; }
area() {
  unit -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' |
    awk -v name="$1" -v module="$module/" '
      function inside(path) { return index(path, module) == 1 && index("/" substr(path, length(module) + 1) "/", "/" name "/") }
      { for (i = 1; i <= NF; i++) if (inside($i)) { print $1; next } }'
}

case ${1:-} in
unit) unit ;;
areas) areas ;;
area)
  if ! areas | grep -qxF -- "${2:-}"; then
    echo "there is no area \"${2:-}\"; there are: $(areas | xargs)" >&2
    exit 2
  fi
  area "$2"
  ;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
