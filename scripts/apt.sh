#!/usr/bin/env bash
# Installs the named Debian packages that are not there yet: scripts/apt.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || { echo "this needs: ${missing[*]} (named as Debian names them)" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
root=()
[ "$(id -u)" -eq 0 ] || root=(sudo --preserve-env=DEBIAN_FRONTEND)
echo "installing ${missing[*]}"
"${root[@]}" apt-get update -qq
"${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
