#!/usr/bin/env bash
# Compares our quantisers with llama-quantize on SmolLM2 in F16 and prints the table of whole models in docs/benchmarks.md. Builds both
# tools first; needs `make model`. Options go to compare.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/quantize/build.sh
cargo build --release -p p64-cli
command -v python3 >/dev/null || scripts/apt.sh python3
venv=target/quantize/venv
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv" 2>/dev/null || { scripts/apt.sh python3-venv; python3 -m venv --clear "$venv"; }
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/conformance/requirements.txt
exec "$venv/bin/python" scripts/quantize/compare.py "$@" "${CARGO_TARGET_DIR:-target}/release/p64"
