#!/usr/bin/env bash
# Runs every fuzz target for a time each, one after the other; without this their seeds alone run, with the unit tests.
#   hack/fuzz.sh TIME    such as 30s
# What fails is written to testdata/fuzz beside the test: it becomes a seed in the code (f.Add) with the fix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=()
while IFS=: read -r file line; do
  target=${line#func } target=${target%%(*}
  echo "fuzz: $target in $(dirname "$file")"
  go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1" </dev/null || failed+=("$(dirname "$file") $target")
done < <(git ls-files -co --exclude-standard '*_test.go' | xargs grep -o '^func Fuzz[A-Za-z]*(' | sort)
((${#failed[@]} == 0)) || { printf 'fuzz: failed: %s\n' "${failed[@]}" >&2; exit 1; }
