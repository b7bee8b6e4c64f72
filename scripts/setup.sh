#!/usr/bin/env bash
# Everything that `make test` needs on a machine that has Rust and Python 3: build tools, the real models and vocabularies.
# What only one check needs, that check sets up (scripts/setup_cross.sh, scripts/setup_fuzz.sh). Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_build.sh
for tool in fmt clippy; do
    cargo "$tool" --version >/dev/null 2>&1 || { echo "cargo $tool is missing: rustup component add rustfmt clippy" >&2; exit 1; }
done
scripts/setup_models.sh
scripts/setup_vocabularies.sh
