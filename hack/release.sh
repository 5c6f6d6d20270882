#!/usr/bin/env bash
# Builds what a release consists of, into dist/release:
#   hack/release.sh VERSION IMAGE [DIGEST]
# IMAGE is the operator's image, NAME:VERSION, and DIGEST its digest in the registry, by which chart, manifests and bundle then name it.
# With SNAPSHOT=yes it is a dry run: every artefact is built here, of any commit, and nothing is signed or published. Otherwise goreleaser
# publishes it as a draft (.github/workflows/release.yml), which takes the tag vVERSION, GITHUB_TOKEN, cosign, the network, and the programs
# that the image was made of (make image-index).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage="usage: hack/release.sh VERSION IMAGE [DIGEST]"
version=${1:?$usage} image=${2:?$usage} digest=${3:-} snapshot=${SNAPSHOT:-}
name=${image%:*}
work=build/release files=build/release/files
fail() { echo "release: $*" >&2; exit 1; }
said() { echo "release: $*" >&2; }

[[ $image == "$name:$version" ]] || fail "IMG=$image: the tag of the image must be the version, $version"
[[ -n $digest || $snapshot == yes ]] || fail "DIGEST is missing: push the image first (make image-index) and give its digest"
hack/release-check.sh "$version"

rm -rf "$work" dist/release && mkdir -p "$files"
export VERSION=$version SOURCE_DATE_EPOCH SOURCE_DATE
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
SOURCE_DATE=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
notes=(--version="$version")
[[ $snapshot != yes ]] || notes+=(--snapshot)
go run ./hack/release notes "${notes[@]}" >"$work/notes.md"

said "manifests"
hack/with-kubectl.sh hack/overlay.sh "$image"
[[ -z $digest ]] || printf '    digest: "%s"\n' "$digest" >>build/deploy/kustomization.yaml
hack/with-kubectl.sh kubectl kustomize build/deploy >"$files/install.yaml"
hack/with-kubectl.sh kubectl kustomize config/crd >"$files/crds.yaml"

said "chart"
cp -r deploy/middleware-operator "$work/"
hack/chart.sh "$version" --output="$work/middleware-operator" --image="$name${digest:+@$digest}" --changelog=CHANGELOG.md
helm=$(hack/tool.sh helm)
"$helm" lint --strict "$work/middleware-operator" >&2
"$helm" package "$work/middleware-operator" --destination "$files" >&2

said "bundle"
hack/bundle.sh "$version" "$image" "$work" 2>&1 | sed 's/^/  /' >&2
if [[ $snapshot != yes ]]; then
  go run ./hack/olm pin --bundle="$work/bundle" --resolver="$(hack/tool.sh crane) digest"
fi
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -czf \
  "$files/middleware-operator-bundle-$version.tgz" bundle bundle.Dockerfile

said "programs, SBOMs, checksums"
cyclonedx=$(hack/tool.sh cyclonedx-gomod)
goreleaser=$(hack/tool.sh goreleaser)
flags=(--clean --release-notes="$work/notes.md")
if [[ $snapshot == yes ]]; then flags+=(--snapshot --skip=sign,announce); fi
PATH=$(dirname "$cyclonedx"):$PATH "$goreleaser" release "${flags[@]}"
cp "$files"/* dist/release/
cp "$work/notes.md" dist/release/notes.md
go run ./hack/release krew --version="$version" --checksums=dist/release/checksums.txt \
  --downloads="${DOWNLOADS:-https://middleware.hc.cn/operator/releases/download/v$version}" >dist/release/middleware.yaml

if [[ $snapshot == yes ]]; then
  said "images"
  mkdir -p dist/release/images
  # shellcheck disable=SC2086 # a list
  index=$(hack/image-index.sh "$image" ${ARCHITECTURES:-amd64 arm64})
  mv "$index" "dist/release/images/operator-$version.oci.tar"
  bundle=$(hack/build-image.sh "$name-bundle:v$version" "$work/bundle.Dockerfile" "$work" -- bundle)
  cp "$bundle" "dist/release/images/operator-bundle-$version.tar"
fi
(cd dist/release && sha256sum --quiet --check checksums.txt)
for architecture in ${ARCHITECTURES:-amd64 arm64}; do
  for program in manager backup; do
    cmp "bin/linux-$architecture/$program" dist/release/"${program}_linux_$architecture"*/"$program" ||
      fail "the $program of the image is not that of the archive"
  done
done
said "dist/release has it all"
[[ $snapshot != yes ]] || said "a dry run: nothing was signed, attested or pushed; the bundle names images by tag"
