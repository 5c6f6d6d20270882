#!/usr/bin/env bash
# Runs layers of tests, which are make targets, in two lanes, and prints at the end how long each took (make test, make test-all):
#   hack/test.sh [--beside "LAYER..."] LAYER...
# A lane runs its layers one after the other. Those beside run at the lowest priority, on what the others leave of the processors; their
# output is printed when they end, and kept in build/layers. The first failure ends all. INCONCLUSIVE names the file where tests
# write what a machine that stalled kept from being judged: it is printed last. While they run, root's machine gives memory in huge
# pages: where page faults are dear, a test's API server takes a fifth less processor time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
beside=''
while [[ ${1:-} == --* ]]; do
  case $1 in
  --beside) beside=${2:?} ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
  shift 2
done
logs=build/layers
rm -rf "$logs"
mkdir -p "$logs"
touch "$logs/times"
[[ -z ${INCONCLUSIVE:-} ]] || : >"$INCONCLUSIVE"
lanes=()
pages=/sys/kernel/mm/transparent_hugepage/enabled mode=''

finish() {
  local code=$? lane
  [[ -z $mode ]] || echo "$mode" >"$pages"
  # Each lane is a process group of its own: nothing of it is left when a layer fails.
  for lane in "${lanes[@]}"; do
    kill -- "-$lane" || continue
    for _ in {1..100}; do kill -0 -- "-$lane" && sleep 0.1 || break; done
  done 2>/dev/null
  printf '\n%8s  %s\n' seconds layer
  cat "$logs/times"
  printf '%8d  %s\n' "$SECONDS" "in all"
  if [[ -n ${INCONCLUSIVE:-} && -s $INCONCLUSIVE ]]; then
    printf '\nInconclusive, so not passed:\n'
    cat "$INCONCLUSIVE"
  fi
  exit $code
}
trap finish EXIT
if [[ -w $pages && $(<"$pages") =~ \[(.*)\] ]]; then
  mode=${BASH_REMATCH[1]}
  echo always >"$pages" || mode=''
fi

# layer TARGET COMMAND... makes a target and notes its time.
layer() {
  local target=$1 started=$SECONDS code=0
  shift
  "$@" "$target" || code=$?
  printf '%8d  %s\n' $((SECONDS - started)) "$target$([[ $code == 0 ]] || echo " (failed)")" >>"$logs/times"
  return $code
}

# quietly TARGET makes a target on what others leave of the processors, and prints what it said in one piece.
quietly() {
  local code=0
  nice -n 19 make "$1" >"$logs/$1.log" 2>&1 || code=$?
  printf '\n== %s, beside\n%s\n' "$1" "$(cat "$logs/$1.log")"
  return $code
}

set -m
(
  for target in "$@"; do
    printf '\n== %s\n' "$target"
    layer "$target" make
  done
) </dev/null &
lanes+=($!)
if [[ -n $beside ]]; then
  (
    for target in $beside; do
      layer "$target" quietly
    done
  ) </dev/null &
  lanes+=($!)
fi
set +m
for _ in "${lanes[@]}"; do wait -n; done
