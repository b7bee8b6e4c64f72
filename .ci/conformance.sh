#!/usr/bin/env bash
# Every model family against llama.cpp: the reference results made anew, then ours compared with them, a line a model.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_build.sh
scripts/conformance/make.sh
scripts/check_ggml_types.sh
cargo test -p p64-tests --test families --test kv_types -- --nocapture
