#!/usr/bin/env bash
# Ends a release that would be wrong before anything is built or pushed:
#   hack/release-check.sh VERSION
# Chart and bundle must be of the version, and CHANGELOG.md must know it, unless it is a dry run (SNAPSHOT=yes). With BRANCH, such as
# origin/main, the commit must be in it: what was never merged is not released.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:?usage: hack/release-check.sh VERSION} snapshot=${SNAPSHOT:-} branch=${BRANCH:-}
fail() { echo "release: $*" >&2; exit 1; }

for file in bundle/manifests/middleware-operator.clusterserviceversion.yaml deploy/middleware-operator/Chart.yaml; do
  grep -qxE " *version: ${version//./\\.}" "$file" || fail "$file is of another version: make update VERSION=$version, and commit it"
done
[[ -z $branch ]] || git merge-base --is-ancestor HEAD "$branch" || fail "the commit is not in $branch: merge it, and put the tag there"
notes=(--version="$version")
[[ $snapshot != yes ]] || notes+=(--snapshot)
go run ./hack/release notes "${notes[@]}" >/dev/null
