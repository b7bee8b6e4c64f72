#!/usr/bin/env bash
# Our products with one position beside ggml's, type by type: builds both and runs them in turns. Options go to kernels.py:
# --rounds 3, --threads 1,2, --types q4_0,q8_0, --levels avx512, --json FILE.
# A quarter of an hour; 1 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup_llama.sh
out=target/bench
mkdir -p "$out"
libraries=target/llama/build/ggml/src
c++ -std=c++17 -O2 -Wall -Wextra -Werror -isystem target/llama/source/ggml/include bench/ggml_kernels.cpp -o "$out/ggml_kernels" \
    "$libraries"/libggml{,-cpu,-base}.a -lpthread -ldl -lm
# Where cargo put the benchmark is in its messages.
ours=$(cargo bench -p p64-tests --bench kernels --no-run --message-format=json |
    python3 -c 'import json, sys; print(*[found for found in (json.loads(line).get("executable") for line in sys.stdin) if found])')
exec python3 bench/kernels.py --p64 "$ours" --ggml "$out/ggml_kernels" "$@"
