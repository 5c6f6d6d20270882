#!/usr/bin/env bash
# Runs layers of tests, which are make targets, one after the other, and prints at the end how long each took (make test, make test-all):
#   hack/test.sh [--beside TARGET --until LAYER] LAYER...
# TARGET is made in the background from the start, with its output in build/layers; LAYER and what follows wait for it. The first
# failure ends all. INCONCLUSIVE names the file where tests write what a machine that stalled kept from being judged: it is
# printed last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
beside='' until=''
while [[ ${1:-} == --* ]]; do
  case $1 in
  --beside) beside=${2:?} ;;
  --until) until=${2:?} ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
  shift 2
done
logs=build/layers
mkdir -p "$logs"
[[ -z ${INCONCLUSIVE:-} ]] || : >"$INCONCLUSIVE"
times=()

report() {
  printf '\n%8s  %s\n' seconds layer
  printf '%8d  %s\n' "${times[@]}" "$SECONDS" "in all"
}
finish() {
  local code=$?
  # Its own process group: nothing of it is left when a layer fails.
  if [[ -n ${background:-} ]]; then
    kill -- "-$background" || true
    for _ in {1..100}; do kill -0 -- "-$background" && sleep 0.1 || break; done
  fi 2>/dev/null
  report
  if [[ -n ${INCONCLUSIVE:-} && -s $INCONCLUSIVE ]]; then
    printf '\nInconclusive, so not passed:\n'
    cat "$INCONCLUSIVE"
  fi
  exit $code
}
trap finish EXIT

# layer TARGET makes a target and notes its time.
layer() {
  local started=$SECONDS code=0
  printf '\n== %s\n' "$1"
  make "$1" || code=$?
  times+=($((SECONDS - started)) "$1$([[ $code == 0 ]] || echo " (failed)")")
  return $code
}

# joined waits for what was begun in the background.
joined() {
  local waited=$SECONDS code=0
  wait "$background" || code=$?
  times+=("$(cat "$logs/$beside.seconds" 2>/dev/null || echo 0)" "$beside, beside the layers above; waited for: $((SECONDS - waited)) s")
  background=
  [[ $code == 0 ]] || { echo "$beside failed:" >&2 && tail -n 60 "$logs/$beside.log" >&2; }
  return $code
}

if [[ -n $beside ]]; then
  echo "== $beside, in the background: $logs/$beside.log"
  rm -f "$logs/$beside.seconds"
  set -m
  { make "$beside" && echo "$SECONDS" >"$logs/$beside.seconds"; } </dev/null >"$logs/$beside.log" 2>&1 &
  background=$!
  set +m
fi
for target in "$@"; do
  [[ $target != "$until" ]] || joined
  layer "$target"
done
