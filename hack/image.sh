#!/usr/bin/env bash
# Builds the operator's image from the Dockerfile and prints the path of its archive.
#   hack/image.sh TAG [VERSION]
# TAG is the image's full name, such as localhost/middleware-operator:dev. Nothing is
# done if no input changed. It uses docker or podman if they work here, else buildah
# (which it installs on Debian). BASE sets the Dockerfile's base image; without it the
# image holds nothing but the operator, which needs no network.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tag=${1:?usage: hack/image.sh TAG [VERSION]}
version=${2:-${VERSION:-${tag##*:}}}
base=${BASE:-scratch}
cache=${MIDDLEWARE_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/middleware-operator}/images/operator
cd "$root"

echo "image: building bin/manager" >&2
make --silent build ${2:+VERSION="$2"} >&2

inputs() { { echo "$tag $version $base"; find Dockerfile .dockerignore bin/manager helm-charts watches.yaml -type f | LC_ALL=C sort | xargs sha256sum; } | sha256sum | cut -c1-16; }
name=$(tr '/:' '__' <<<"$tag")
archive=$cache/$name-$(inputs).tar
if [[ -f $archive ]]; then echo "$archive"; exit; fi
mkdir -p "$cache"
rm -f "$cache/$name"-*.tar

build=(build --build-arg "BASE=$base" --build-arg "VERSION=$version" --tag "$tag" --file Dockerfile .)
if docker info >/dev/null 2>&1; then
  docker "${build[@]}" >&2
  docker save --output "$archive.new" "$tag" >&2
elif command -v podman >/dev/null && podman info >/dev/null 2>&1; then
  podman "${build[@]}" >&2
  podman save --format docker-archive --output "$archive.new" "$tag" >&2
else
  if ! command -v buildah >/dev/null; then
    command -v apt-get >/dev/null && [[ $EUID -eq 0 ]] || {
      echo "image: needs docker, podman or buildah; install one of them" >&2
      exit 1
    }
    echo "image: installing the Debian package buildah" >&2
    install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends buildah)
    "${install[@]}" >/dev/null || { apt-get update -q >&2 && "${install[@]}" >/dev/null; }
  fi
  # A store of its own, emptied afterwards: the machine's stays as it is.
  store=$cache/.buildah
  buildah=(buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs)
  trap 'rm -rf "$store"' EXIT
  "${buildah[@]}" "${build[0]}" --isolation chroot "${build[@]:1}" >&2
  "${buildah[@]}" push "$tag" "docker-archive:$archive.new:$tag" >&2
fi
mv "$archive.new" "$archive"
echo "$archive"
