#!/usr/bin/env bash
# Runs every validator of operator-sdk that applies to the bundle; a warning is a failure.
#   hack/bundle-validate.sh [BUNDLE]
# Left out: `operatorhub` and `community`, which warn of nothing but their own deprecation (operatorhubv2, capabilities and categories
# took their place), and `multiarch`, which pulls every image, so that it works once a release is published.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bundle=${1:-bundle}
sdk=$(hack/tool.sh operator-sdk)
failed=0
validate() {
  local output
  output=$("$sdk" bundle validate "$bundle" "$@" 2>&1) || failed=1
  ! grep -q 'level=warning\|level=error' <<<"$output" || failed=1
  sed 's/^time="[^"]*" //' <<<"$output" | sed "s|^|bundle validate $*: |"
}
validate
validate --select-optional suite=operatorframework
for name in operatorhubv2 capabilities categories alpha-deprecated-apis good-practices; do
  validate --select-optional "name=$name"
done
exit $failed
