#!/usr/bin/env bash
# Prints the path of a Chromium for `make test-browser`: CHROMIUM, else one that is there, else Debian's, which it installs as root.
set -euo pipefail
if [[ -n ${CHROMIUM:-} ]]; then echo "$CHROMIUM"; exit; fi
there() { for name in chromium-headless-shell chromium chromium-browser google-chrome; do command -v "$name" && return; done; return 1; }
there && exit
command -v apt-get >/dev/null && [[ $EUID -eq 0 ]] || {
  echo "browser: needs Chromium; install it, or name it in CHROMIUM" >&2
  exit 1
}
echo "browser: installing the Debian packages chromium-headless-shell and fonts-dejavu-core" >&2
install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium-headless-shell fonts-dejavu-core)
"${install[@]}" >/dev/null || { apt-get update -q >&2 && "${install[@]}" >/dev/null; }
there
