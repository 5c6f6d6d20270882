#!/usr/bin/env bash
# Fails when something that can be generated or checked mechanically is not as it must be. Each check says what mends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0
fail() { echo "verify: $*" >&2; failed=1; }

echo "verify: generated files"
generated=(api bundle config/crd/bases config/manifests deploy docs/reference pkg/generated)
state() { find "${generated[@]}" -type f \( -name 'zz_generated*' -o -path 'pkg/generated/*' -o -name '*.yaml' -o -name '*.md' \) -print0 2>/dev/null | sort -z | xargs -0 sha256sum; }
before=$(state)
make -j1 generate manifests docs-api bundle chart >/dev/null
after=$(state)
[[ $before == "$after" ]] || { diff <(echo "$before") <(echo "$after") >&2 || true; fail "generated files were out of date; they are right now, commit them (make update)"; }

echo "verify: Go formats, licence headers, modules"
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
[[ -z $unformatted ]] || fail "not in gofmt's form (gofmt -w): $unformatted"
bare=$(git ls-files -co --exclude-standard '*.go' | grep -v /zz_generated | while read -r f; do cmp -s <(head -n 2 "$f") hack/boilerplate.go.txt || echo "$f"; done)
[[ -z $bare ]] || fail "without the two lines of hack/boilerplate.go.txt: $bare"
go mod tidy -diff >/dev/null || fail "go.mod or go.sum is not tidy (go mod tidy)"
[[ $(go list -m -f '{{.Version}}' k8s.io/client-go) == "$(cd hack/tools/code-generator && go list -m -f '{{.Version}}' k8s.io/code-generator)" ]] ||
  fail "hack/tools/code-generator is of another version than k8s.io/client-go"
go vet ./... || fail "go vet found mistakes"

echo "verify: kustomizations"
for overlay in config/default config/overlays/*/; do
  hack/with-kubectl.sh kubectl kustomize "$overlay" >/dev/null || fail "$overlay does not build"
done

echo "verify: shell scripts"
while read -r script; do
  bash -n "$script" || fail "$script is not valid bash"
done < <(git ls-files -co --exclude-standard '*.sh' '.ci/run')

echo "verify: workflows"
"$(hack/tool.sh actionlint)" -shellcheck= -pyflakes= .github/workflows/*.yml || fail "a workflow is not valid"

[[ $failed == 0 ]] && echo "verify: all is as it must be"
exit $failed
