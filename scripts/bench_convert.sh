#!/usr/bin/env bash
# How fast models are converted, next to copying the same file and to llama-quantize: seconds, GB/s and peak memory.
#
#   scripts/bench_convert.sh [ROUNDS]
#
# Runs are interleaved, so that a slow minute of the machine meets all of them; the figures are medians. LLAMA_QUANTIZE names
# llama.cpp's tool; without it those rows are left out. Needs about 3 GB below target/.
set -euo pipefail
cd "$(dirname "$0")/.."

for model in smollm2-135m-q4_1 gemma3-270m-q4_k_m; do
    [ -f "models/$model.gguf" ] || { echo "models/$model.gguf is missing: run \`make model\` first" >&2; exit 1; }
done
[ -x /usr/bin/time ] || scripts/apt.sh time
cargo build --quiet --release -p p64-cli
exec python3 scripts/bench_convert.py --p64 "${CARGO_TARGET_DIR:-target}/release/p64" --rounds "${1:-7}"
