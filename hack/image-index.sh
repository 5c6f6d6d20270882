#!/usr/bin/env bash
# Builds the operator's image for several architectures and prints the path of an OCI archive with their index:
#   hack/image-index.sh TAG ARCHITECTURE...
# skopeo copy --all oci-archive:FILE docker://TAG pushes it. BASE sets the Dockerfile's base image, as in hack/image.sh; one
# that is not scratch must exist for every architecture. Its times are SOURCE_DATE_EPOCH, by default the commit's: the same sources on the
# same base make the same image. It uses podman or buildah.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage="usage: hack/image-index.sh TAG ARCHITECTURE..."
tag=${1:?$usage}
shift
: "${1:?$usage}"
version=${VERSION:-${tag##*:}}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if command -v podman >/dev/null && podman info >/dev/null 2>&1; then
  build=(podman --root "$work/root" --runroot "$work/run")
elif command -v buildah >/dev/null; then
  build=(buildah --root "$work/root" --runroot "$work/run" --storage-driver vfs)
else
  echo "image-index: needs podman or buildah; install one of them" >&2
  exit 1
fi

"${build[@]}" manifest create "$tag" >&2
for architecture in "$@"; do
  bin=bin/linux-$architecture
  echo "image-index: building $bin" >&2
  GOOS=linux GOARCH=$architecture make --silent build BIN="$bin" VERSION="$version" >&2
  "${build[@]}" build --isolation chroot --platform "linux/$architecture" --manifest "$tag" --timestamp "$epoch" \
    --build-arg "BASE=${BASE:-scratch}" --build-arg "VERSION=$version" --build-arg "BIN=$bin" --file Dockerfile . >&2
done
mkdir -p build
archive=build/$(tr '/:' '__' <<<"$tag")-index.tar
rm -f "$archive"
"${build[@]}" manifest push --all "$tag" "oci-archive:$archive:$tag" >&2
echo "$archive"
