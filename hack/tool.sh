#!/usr/bin/env bash
# Prints the path of a pinned tool's binary; builds it first if the cache lacks it.
#
#   hack/tool.sh NAME           the binary NAME of the tool module hack/tools/NAME
#   hack/tool.sh NAME BINARY    another binary of the same module (containerd ctr)
#   hack/tool.sh DIR            of any module in a folder of this checkout (test/cluster)
#
# What a module may hold is told in hack/tools/README.md. Progress goes to stderr.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
usage="usage: hack/tool.sh NAME [BINARY]; the tools are: $(cd "$root/hack/tools" && echo */ | tr -d /)"
name=${1:?$usage}
module=$root/hack/tools/$name
[[ $name != */* ]] || { module=$root/$name && name=$(basename "$name"); }
binary=${2:-$name}
[[ -f $module/go.mod ]] || { echo "no module in $module; $usage" >&2; exit 2; }
command -v go >/dev/null || { echo "hack/tool.sh: the Go toolchain is not on PATH; install Go 1.26 or newer" >&2; exit 1; }

# The machine's own Go settings must not change what is built. (An empty GOFLAGS
# would fall back to what `go env -w` wrote, hence one harmless flag.)
export GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0

cache=${MIDDLEWARE_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/middleware-operator}/tools
digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-16; }
key=$(cd "$module" && {
  go version
  find . -type f ! -name '*_test.go' ! -name '*.md' | LC_ALL=C sort | while read -r f; do echo "$f"; cat "$f"; done
} | digest)
dir=$cache/$name/$key

# build compiles every command of the module into $1.
build() {
  local out=$1 log=$1/build.log flags=() packages f l ticks=0
  cd "$module"
  if [[ -f build.flags ]]; then while read -r f; do flags+=("$f"); done <build.flags; fi
  if [[ -f main.go ]]; then packages=.; else packages=$(go list -f '{{.ImportPath}}' tool); fi
  local target=$out/
  [[ $(wc -l <<<"$packages") -gt 1 ]] || target=$out/$name
  local total started=$SECONDS pid
  echo "$name: fetching modules (build log: $log)" >&2
  # shellcheck disable=SC2086 # the packages are a list
  total=$(go list -deps $packages 2>"$log" | wc -l) || { cat "$log" >&2; return 1; }
  # shellcheck disable=SC2086
  go build -buildvcs=false -v ${flags[@]+"${flags[@]}"} -o "$target" $packages 2>"$log" &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    sleep 0.2
    (((SECONDS - started) / 10 > ticks)) || continue
    ticks=$(((SECONDS - started) / 10))
    echo "$name: building, $(wc -l <"$log") of at most $total packages, $((SECONDS - started)) s" >&2
  done
  wait $pid || { echo "$name: the build failed:" >&2; tail -n 40 "$log" >&2; return 1; }
  rm -f "$log"
  if [[ -f links ]]; then while read -r l; do ln -s "$name" "$out/$l"; done <links; fi
  echo "$name: built in $((SECONDS - started)) s" >&2
}

if [[ ! -d $dir ]]; then
  mkdir -p "$cache/$name"
  exec 9>"$cache/$name.lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    echo "$name: waiting for another build of it" >&2
    flock 9
  fi
  if [[ ! -d $dir ]]; then # nobody built it while we waited
    rm -rf "$cache/$name/.building"
    mkdir "$cache/$name/.building"
    (build "$cache/$name/.building") || exit 1
    mv "$cache/$name/.building" "$dir"
  fi
fi
[[ -x $dir/$binary ]] || { echo "$name has no binary $binary, but: $(cd "$dir" && echo *)" >&2; exit 2; }
echo "$dir/$binary"
