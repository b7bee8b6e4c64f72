#!/usr/bin/env bash
# Every way in and out: round trips, safetensors and Hugging Face folders, quantisers, large files, split sets, comparisons,
# edits, servers; then the pages in a browser, and llama.cpp on what is exported.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
# One build for all of it: every other choice of packages and features compiles the crates anew.
cargo test -p p64-tests -p p64-cli --features p64-tests/remote,p64-cli/remote \
    --test convert --test round_trip --test safetensors --test arrays --test hf --test hf_back --test quantize --test large \
    --test split --test diff --test stats --test edit --test remote --test cli
export P64="${CARGO_TARGET_DIR:-target}/debug/p64"

scripts/arrays/check.sh tests/data/tiny/tiny-stories-q8_0.gguf
.ci/browser.sh

scripts/conformance/oracle.sh
python3 scripts/check_exports.py "$P64" target/conformance/oracle/oracle
