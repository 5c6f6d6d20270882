#!/usr/bin/env bash
# Builds an image from a Dockerfile and prints the path of its archive (docker-archive):
#   hack/build-image.sh TAG DOCKERFILE CONTEXT [NAME=VALUE...] -- FILE...
# TAG is the image's full name, CONTEXT the folder that the Dockerfile copies from, NAME=VALUE its build arguments,
# FILE... the files and folders of the context that it copies. Nothing is done if none of these changed.
# It uses docker or podman if they work here, else buildah (which it installs on Debian).
set -euo pipefail
usage="usage: hack/build-image.sh TAG DOCKERFILE CONTEXT [NAME=VALUE...] -- FILE..."
tag=${1:?$usage} dockerfile=$(realpath "${2:?$usage}") context=$(realpath "${3:?$usage}")
shift 3
arguments=()
while [[ ${1:?$usage} != -- ]]; do arguments+=(--build-arg "$1"); shift; done
shift
cache=${MIDDLEWARE_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/middleware-operator}/images/built
cd "$context"

# Paths are relative to the context, so that another checkout with the same files has the same key.
inputs() { { echo "$tag ${arguments[*]-}"; sha256sum <"$dockerfile"; find "$@" -type f | LC_ALL=C sort | xargs -d '\n' sha256sum; } | sha256sum | cut -c1-16; }
name=$(tr '/:' '__' <<<"$tag")
archive=$cache/$name-$(inputs "$@").tar
if [[ -f $archive ]]; then echo "$archive"; exit; fi
mkdir -p "$cache"
rm -f "$cache/$name"-*.tar

echo "image: building $tag" >&2
build=(build "${arguments[@]}" --tag "$tag" --file "$dockerfile" .)
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
  # A store of its own, removed afterwards: the machine's stays as it is, and two builds do not meet.
  store=$(mktemp -d "$cache/.buildah-XXXXXX")
  buildah=(buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs)
  trap 'rm -rf "$store"' EXIT
  "${buildah[@]}" "${build[0]}" --isolation chroot "${build[@]:1}" >&2
  rm -f "$archive.new"
  "${buildah[@]}" push "$tag" "docker-archive:$archive.new:$tag" >&2
fi
mv "$archive.new" "$archive"
echo "$archive"
