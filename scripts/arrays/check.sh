#!/usr/bin/env bash
# Reads what `p64 export` writes with the programs it is meant for: NumPy and the safetensors library, values by gguf-py.
#
#   scripts/arrays/check.sh [MODEL.gguf...]      without a model, the one of tests/data
set -euo pipefail
cd "$(dirname "$0")/../.."
out=target/arrays
mkdir -p "$out"
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv" 2>/dev/null || { scripts/apt.sh python3-venv; python3 -m venv --clear "$out/venv"; }
"$out/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/arrays/requirements.txt
# P64 names a program that is built already.
[ -n "${P64:-}" ] || cargo build --quiet -p p64-cli
[ $# -gt 0 ] || set -- tests/data/tiny/tiny-stories-q8_0.gguf
"$out/venv/bin/python" scripts/arrays/check.py "${P64:-${CARGO_TARGET_DIR:-target}/debug/p64}" "$@"
