#!/usr/bin/env bash
# Everything that searches for mistakes rather than check a change (make proof): it takes hours, and two cores at the least.
#   hack/proof.sh [PART...]
# Parts: simulation, transitions, apiserver, faults, backups, fuzz, mutation; all of them when none is named. build/proof/README.md gets
# where and when they ran and the tables that they print; what they say goes to a file each beside it. A part that fails does not
# keep the others from running, and fails the whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
all=(simulation transitions apiserver faults backups fuzz mutation)
(($# > 0)) || set -- "${all[@]}"
export SIMULATION=all E2E=all INCONCLUSIVE=
out=build/proof
mkdir -p "$out"

part() {
  case $1 in
  simulation) go test -v -count=1 -timeout 6h ./test/simulation ./test/model ;;
  transitions) go test -v -count=1 -timeout 6h ./test/transitions ;;
  apiserver) make test-apiserver RUN=. APISERVER_TIMEOUT=6h ;;
  faults) make test-e2e RUN=TestRedisClusterFaults ;;
  backups) make test-engine RUN=TestEveryBackupIsOneMoment && make test-e2e RUN=TestRedisClusterComesBack ;;
  fuzz) make fuzz FUZZTIME="${FUZZTIME:-5m}" ;;
  mutation) make mutation ;;
  *) echo "there is no part $1; there are: ${all[*]}" >&2 && return 2 ;;
  esac
}

failed=()
{
  printf '# Proof\n\nCommit %s, begun %s, %s, %d processors, %s.\n' "$(git describe --always --dirty)" "$(date -u +%FT%TZ)" "$(uname -sr)" \
    "$(getconf _NPROCESSORS_ONLN)" "$(go version | cut -d' ' -f3-)"
} >"$out/README.md"
for name in "$@"; do
  started=$SECONDS result=passed
  echo "== $name: $out/$name.log"
  part "$name" >"$out/$name.log" 2>&1 || { result=FAILED && failed+=("$name"); }
  {
    printf '\n## %s\n\n%s after %d s.\n\n' "$name" "$result" $((SECONDS - started))
    grep -oE '\|.*\|$' "$out/$name.log" || true # the tables that tests and tools print
    grep -oE '[0-9]+ writes.*map\[.*\]$' "$out/$name.log" || true # of crash points: how many there are, and what was tried
    grep -E '^ *--- FAIL' "$out/$name.log" || true
  } >>"$out/README.md"
  echo "   $result after $((SECONDS - started)) s"
done
echo "the tables are in $out/README.md"
((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}" >&2 && exit 1; }
