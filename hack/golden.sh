#!/usr/bin/env bash
# Writes anew what tests compare with (make update): golden files, the page of flags, and what the charts of the chart kinds lack of
# their CRDs' fields. Tests that compare with real servers are left out. Read the difference like code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Charts first: they are compiled into the tests that render them. What else fails is for `make check` to tell.
go test -count=1 ./internal/chartkind -run '^TestSchemasAgree$' -update >/dev/null || true
# Tests that compare with a file name the flag themselves.
hack/packages.sh unit | sed 's|^middleware.hc.cn/operator/||' | while read -r dir; do
  tests=$({ grep -hsE '^func Test|\*update\b' "$dir"/*_test.go || true; } | awk '/^func/ {split($2, name, "("); next} {print name[1]}' | sort -u | paste -sd '|' -)
  [[ -z $tests ]] || go test -count=1 "./$dir" -run "^($tests)\$" -update </dev/null
done
