#!/usr/bin/env bash
# Puts the real models into models/ (350 MB, digests checked); those already there stay. fetch_models.py --help says more.
set -euo pipefail
cd "$(dirname "$0")/.."

python3 -m pip --version >/dev/null 2>&1 || scripts/apt.sh python3 python3-pip
python3 scripts/fetch_models.py "$@"
