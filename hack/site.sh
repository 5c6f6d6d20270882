#!/usr/bin/env bash
# build/site: the documentation as a site, from README.md and docs/ (hack/tools/site).
#
#   hack/site.sh             of this checkout, as `latest`
#   hack/site.sh releases    and a folder for each release: the tags v* without a hyphen, which must have been fetched
#
# REPOSITORY is where files are that are no pages (https://github.com/OWNER/NAME).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
site=$(hack/tool.sh site)
versions=(latest=.)
if [[ ${1:-} == releases ]]; then
  trees=$(mktemp -d)
  trap 'rm -rf "$trees"' EXIT
  for tag in $(git tag --list 'v[0-9]*' --sort=-version:refname | grep -v -- - || true); do
    mkdir "$trees/$tag"
    git archive "$tag" | tar -x -C "$trees/$tag"
    versions+=("${tag#v}=$trees/$tag")
  done
fi
"$site" --out=build/site ${REPOSITORY:+--repository="$REPOSITORY"} "${versions[@]}"
echo "wrote build/site: ${versions[*]%%=*}"
